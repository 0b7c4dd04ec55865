from __future__ import annotations

import json

import pytest

from ctxproxy.core.plain_chunks import LONGEST_BYTES, plain_chunk

FIRST = b'{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}'
NEXT = b' {"choices": [{"delta": {"content": "\xe4\xbd\xa0 \\ud83c\\udf78"}, "index": 1, "logprobs": {"content": [1e999]}, "finish_reason": null}]}'
LAST = b'{"choices":[{"index":0,"delta":{"content":".","refusal":null,"tool_calls":null},"finish_reason":"stop"}],"usage":null,"timings":{"n":1}}'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (FIRST, ("m", 0, "assistant", "", None)),
        (NEXT, (None, 1, None, "你 🍸", None)),
        (LAST, (None, 0, None, ".", "stop")),
        (b'{"choices":[{"delta":{"content":"a"}}]}', (None, 0, None, "a", None)),
    ],
)
def test_a_chunk_that_goes_on_with_a_text_is_read(data: bytes, said: tuple[object, ...]) -> None:
    chunk = plain_chunk(data)
    assert chunk is not None
    choice = chunk.choices[0]
    assert (chunk.model, choice.index, choice.delta.role, choice.delta.content, choice.finish_reason) == said


@pytest.mark.parametrize(
    ("delta", "texts"),
    [
        ({"content": None, "reasoning_content": "b"}, (None, "b", None)),
        ({"reasoning": "c"}, (None, None, "c")),
        ({"content": "a", "reasoning": "", "reasoning_content": None}, ("a", None, "")),
    ],
)
def test_reasoning_is_read_too(delta: object, texts: tuple[object, ...]) -> None:
    chunk = plain_chunk(of(delta))
    assert chunk is not None
    found = chunk.choices[0].delta
    assert (found.content, found.reasoning_content, found.reasoning) == texts


def of(delta: object, **more: object) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": delta, **more}]}).encode()


TEXT = {"content": "a"}


@pytest.mark.parametrize(
    ("data", "because"),
    [
        (b"", "there is nothing"),
        (b"[DONE]", "it is no JSON"),
        (b"[]", "it is no object"),
        (b'{"choices":[]}', "it has no choice"),
        (b'{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}', "it has two choices"),
        (of({}), "it has no text"),
        (of({"content": None}), "it has no text"),
        (of({"content": [{"type": "text", "text": "a"}]}), "its text is in parts"),
        (of({"reasoning": "a", "reasoning_content": "b"}), "it reasons twice, and which is first?"),
        (of({**TEXT, "reasoning_content": 1}), "its reasoning is no text"),
        (of({**TEXT, "tool_calls": []}), "it may call a tool"),
        (of({**TEXT, "vendor": None}), "it has a field that is not known"),
        (of(TEXT, error={}), "its choice may have failed"),
        (of(TEXT, usage={"prompt_tokens": 1}), "its choice tells of usage"),
        (of(TEXT, index="0"), "its index is no number"),
        (of(TEXT, index=1.0), "its index is no whole number"),
        (of(TEXT, finish_reason=1), "its finish reason is no text"),
        (b'{"choices":[{"message":{"content":"a"}}]}', "it has no delta"),
        (b'{"choices":[{"delta":{"content":"a"}}],"error":{"code":1}}', "it is an error"),
        (b'{"choices":[{"delta":{"content":"a"}}],"object":"error"}', "it is an error"),
        (b'{"choices":[{"delta":{"content":"a"}}],"type":"error"}', "it is an error"),
        (b'{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}', "it tells of usage"),
        (b'{"choices":[{"delta":{"content":"a"}}],"x_groq":{"usage":{}}}', "it may tell of usage"),
        (b'{"choices":[{"delta":{"content":"a"}}],"model":1}', "its model is no text"),
        (b'{"choices":[{"delta":{"content":"\\ud83c"}}]}', "half a character is the whole reader's to keep"),
        (b'{"choices":[{"delta":{"content":"a"}}],"id":"\xff"}', "it is not UTF-8"),
        (b'{"choices":[{"delta":{"content":"a"}}],"id":"\n"}', "a line break stands in a text"),
        (b'{"choices":[{"delta":{"content":"a"}}],"id":NaN}', "it is no strict JSON"),
        (b'{"choices":[{"delta":{"content":"a"}}],"id":' + b"[" * 3000 + b"]", "it is nested too deeply"),
        (b'{"choices":[{"delta":{"content":"' + b"a" * LONGEST_BYTES + b'"}}]}', "it is long"),
    ],
)
def test_any_other_chunk_is_left_to_the_whole_reader(data: bytes, because: str) -> None:
    assert plain_chunk(data) is None, because
