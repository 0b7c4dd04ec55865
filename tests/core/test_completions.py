"""Completions of our own making."""

from __future__ import annotations

import json

import pytest

from ctxproxy.core.completions import said, said_in_parts
from ctxproxy.core.reply import ReplyAssembler
from ctxproxy.core.sse import SseReader

FRAME = {"id": "chatcmpl-1", "created": 7, "model": "any"}
NOTHING = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@pytest.mark.parametrize("n", [1, 3])
def test_a_whole_one_says_the_text_for_each_choice_and_has_used_nothing(n: int) -> None:
    whole = said(FRAME, "hello", n)
    assert whole["choices"] == [
        {"index": at, "message": {"role": "assistant", "content": "hello", "refusal": None}, "logprobs": None, "finish_reason": "stop"}
        for at in range(n)
    ]
    assert {key: whole[key] for key in whole if key != "choices"} == {**FRAME, "object": "chat.completion", "usage": NOTHING}


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("with_usage", [False, True])
def test_a_streamed_one_says_the_same(n: int, *, with_usage: bool) -> None:
    reader, assembler = SseReader(), ReplyAssembler()
    events = list(reader.feed(b"".join(said_in_parts(FRAME, "hello", n, with_usage=with_usage))))
    for event in events:
        assembler.feed(event.data, event.name)
    reply = assembler.result()
    assert [(c.message.content, c.finish_reason) for c in reply.choices] == [("hello", "stop")] * n
    assert reply.complete
    assert (reply.usage is not None) is with_usage
    *chunks, end = [event.data for event in events]
    assert end.strip() == b"[DONE]"
    read = [json.loads(chunk) for chunk in chunks]
    assert all(chunk.items() >= {**FRAME, "object": "chat.completion.chunk"}.items() for chunk in read)
    assert all(("usage" in chunk) is with_usage for chunk in read)
    assert read[0]["choices"][0]["delta"]["role"] == "assistant"
