"""The whole classifier: the shared corpus, recorded wordings, look-alikes, channels, and laws over any bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.overflow import OTHER, classify, classify_event, classify_finish
from tests.core.overflow_samples import LOOK_ALIKES, WORDINGS
from tests.shared_dir import shared


def corpus() -> list[dict[str, object]]:
    return [json.loads(line) for line in shared("acceptance/overflow/corpus.jsonl").read_text(encoding="utf-8").splitlines() if line.strip()]


def test_every_line_of_the_shared_corpus_is_judged_right() -> None:
    wrong = []
    for line in corpus():
        verdict = classify(int(str(line["status"])), str(line["body"]).encode(), str(line["content_type"]))
        wanted = (line["kind"], line["shrink_helps"], line["limit_tokens"] if line["trust_limit"] else None)
        if (verdict.kind, verdict.shrink_helps, verdict.limit_tokens) != wanted:
            wrong.append((line["id"], wanted, verdict))
    assert not wrong


def test_every_figure_that_the_corpus_states_is_read_in_its_role() -> None:
    roles = ("prompt_tokens", "completion_tokens", "requested_tokens", "over_by_tokens")
    wrong = []
    for line in corpus():
        verdict = classify(int(str(line["status"])), str(line["body"]).encode())
        if line["kind"] == "overflow" and any(getattr(verdict, role) != line[role] for role in roles):
            wrong.append((line["id"], verdict))
    assert not wrong


@pytest.mark.parametrize(("window", "status", "body"), WORDINGS)
def test_a_wording_of_another_server_is_an_overflow_with_its_window(window: int | None, status: int, body: str) -> None:
    verdict = classify(status, body.encode())
    assert (verdict.kind, verdict.shrink_helps, verdict.limit_tokens) == ("overflow", True, window)


@pytest.mark.parametrize(("status", "body"), LOOK_ALIKES)
def test_a_look_alike_is_no_overflow_and_teaches_no_window(status: int, body: str) -> None:
    verdict = classify(status, body.encode())
    assert verdict.kind != "overflow"
    assert verdict.limit_tokens is None


SENTENCE = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."


@pytest.mark.parametrize(
    "body",
    [
        SENTENCE,
        json.dumps(SENTENCE),
        json.dumps([{"error": SENTENCE}]),
        json.dumps({"detail": SENTENCE}),
        json.dumps({"error": {"message": json.dumps({"error": {"message": json.dumps({"message": SENTENCE})}})}}),
        json.dumps({"error": {"metadata": {"raw": "upstream said: " + json.dumps({"error": SENTENCE})}}}),
        f"Error code: 400 - {{'error': {{'message': \"{SENTENCE}\", 'code': None}}}}",
        json.dumps({"error": {"message": "b'" + json.dumps({"error": {"message": SENTENCE}}).replace(" ", "\\n ") + "'"}}),
        "data: " + json.dumps({"error": {"message": SENTENCE}}) + "\n\ndata: [DONE]\n\n",
        "event: error\ndata: " + SENTENCE + "\n\n",
        "\ufeff" + json.dumps({"error": {"message": SENTENCE}}),
        SENTENCE.replace(" ", "\n"),
        json.dumps(
            {"error": {"message": f'Traceback (most recent call last):\n  File "/app/s.py", line 12, in run\n    raise\nValueError: {SENTENCE}'}}
        ),
        f"<Error><Code>InvalidRequest</Code><Message>{SENTENCE}</Message></Error>",
    ],
)
def test_the_same_sentence_is_found_in_any_wrapping(body: str) -> None:
    verdict = classify(400, body.encode())
    assert (verdict.kind, verdict.limit_tokens, verdict.prompt_tokens) == ("overflow", 8192, 9000)


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/json", "text/html; charset=latin-1"])
def test_the_content_type_changes_nothing(content_type: str) -> None:
    assert classify(400, json.dumps({"error": {"message": SENTENCE}}).encode(), content_type).limit_tokens == 8192


@pytest.mark.parametrize(
    "value",
    [
        {"error": {"message": "invalid request", "input": SENTENCE}},
        {"error": {"message": "invalid request"}, "messages": [{"role": "user", "content": SENTENCE}]},
        {"error": {"message": f'Invalid value for content: "{SENTENCE}"'}},
        {"error": {"message": f"Invalid value for content: '{SENTENCE}'"}},
        {"error": {"message": f"Invalid value for content: “{SENTENCE}”"}},
        {"detail": [{"msg": "Input should be a valid string", "type": "string_type", "input": SENTENCE}]},
    ],
)
def test_an_echo_of_what_the_user_wrote_is_not_read(value: object) -> None:
    assert classify(400, json.dumps(value).encode()).kind == "other"


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"message": {"role": "assistant", "content": SENTENCE}, "finish_reason": "stop"}], "usage": {"completion_tokens": 30}},
        {"choices": [{"message": {"content": None, "tool_calls": [{"function": {"arguments": SENTENCE}}]}, "finish_reason": "tool_calls"}]},
        {"object": "list", "data": [{"id": "m", "description": SENTENCE}]},
        {"id": "x", "status": "completed", "message": "", "output": [{"content": SENTENCE}]},
        {"choices": [], "usage": None},
        {"choices": "nonsense"},
        {},
        [],
        7,
        None,
    ],
)
def test_an_answer_of_the_model_is_no_error_whatever_it_says(answer: object) -> None:
    assert classify(200, json.dumps(answer).encode()) == OTHER


def test_plain_text_with_status_200_has_to_state_figures() -> None:
    assert classify(200, b"Context limit is 49152 tokens; prompt=49182 leaves 0 output tokens").limit_tokens == 49152
    assert classify(200, b"the prompt is too long") == OTHER


def test_an_error_in_an_answer_with_status_200_is_found() -> None:
    assert classify(200, json.dumps({"choices": [{"error": {"message": SENTENCE}}]}).encode()).limit_tokens == 8192
    assert classify(200, json.dumps({"object": "error", "message": SENTENCE}).encode()).limit_tokens == 8192
    assert classify(200, json.dumps({"code": 400, "message": SENTENCE}).encode()).limit_tokens == 8192
    assert classify(200, json.dumps({"Response": {"Error": {"Code": "X", "Message": SENTENCE}}}).encode()).limit_tokens == 8192
    assert classify(200, json.dumps({"errcode": 1, "errmsg": SENTENCE}).encode()).limit_tokens == 8192
    assert classify(200, json.dumps({"error": {"code": 429, "message": "Rate limit exceeded"}}).encode()).kind == "rate_limit"
    assert classify(200, b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: {"error":{"message":"prompt is too long"}}\n\n').kind == "overflow"
    assert classify(200, b'data: {"error":{"message":"overloaded"}}\n\n').sign == "overload"


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "prompt is too long", "overflow"),
        (500, "prompt is too long", "overflow"),
        (429, "prompt is too long", "rate_limit"),
        (429, "the prompt exceeds the context window", "overflow"),
        (401, "prompt is too long", "other"),
        (403, "the prompt exceeds the context window", "overflow"),
        (402, SENTENCE, "other"),
        (503, "the prompt exceeds the context window", "other"),
        (503, SENTENCE, "overflow"),
        (502, SENTENCE, "overflow"),
        (413, "something else", "field_too_long"),
        (413, "413 status code (no body)", "overflow"),
        (400, "400 status code (no body)", "other"),
    ],
)
def test_the_status_is_a_prior_and_no_proof(status: int, message: str, kind: str) -> None:
    assert classify(status, json.dumps({"error": {"message": message}}).encode()).kind == kind


def test_codes_in_words_speak_against_an_overflow_as_their_status_does() -> None:
    assert classify(400, b'{"error":{"message":"prompt is too long","type":"rate_limit_error"}}').kind == "rate_limit"
    assert classify(400, b'{"error":{"message":"prompt is too long","type":"overloaded_error"}}').kind == "other"


def test_a_body_without_anything_to_read_is_judged_by_its_status() -> None:
    assert classify(413, b"").kind == "overflow"
    assert classify(413, b" \n").kind == "overflow"
    assert classify(400, b"") == OTHER
    assert classify(200, b"") == OTHER
    assert classify(413, json.dumps({"error": {"message": SENTENCE, "pad": "x" * 1_100_000}}).encode()).sign == "status-413"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"error":{"message":"prompt is too long: 1200000 tokens"}}', "overflow"),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "other"),
        (b'{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"x"}}}', "overflow"),
        (b'{"choices":[{"delta":{},"finish_reason":"model_context_window_exceeded"}]}', "overflow"),
        (b'{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}', "overflow"),
        (b'{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"completion_tokens":0}}', "overflow"),
        (b'{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit"}}', "overflow"),
        (b'{"incomplete_details":{"reason":"context_length"}}', "overflow"),
    ],
)
def test_a_stream_event_that_is_an_error_is_classified(data: bytes, kind: str) -> None:
    verdict = classify_event(data)
    assert verdict is not None
    assert verdict.kind == kind


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[{"delta":{"content":"prompt is too long: 5 tokens > 4 maximum"}}]}',
        b'{"choices":[{"delta":{"content":"x"},"finish_reason":"length"}],"usage":{"completion_tokens":0}}',
        b'{"choices":[{"delta":{"tool_calls":[{}]},"finish_reason":"length"}],"usage":{"completion_tokens":0}}',
        b'{"choices":[{"delta":{"reasoning_content":"x"},"finish_reason":"length"}],"usage":{"completion_tokens":0}}',
        b'{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"completion_tokens":9}}',
        b'{"choices":[{"delta":{},"finish_reason":7}],"error":null}',
        b'{"base_resp":{"status_code":0},"choices":[]}',
        b'{"content":[{"type":"text","text":"prompt is too long"}],"code":400,"message":"prompt is too long"}',
        b"[DONE]",
        b"",
    ],
)
def test_any_other_stream_event_is_none(data: bytes) -> None:
    assert classify_event(data) is None


def test_an_event_named_error_may_be_plain_text_or_a_bare_object() -> None:
    assert classify_event(b"Trying to keep the first 9000 tokens", "error") is not None
    flat = classify_event(b'{"message":"prompt is too long"}', "error")
    assert flat is not None
    assert flat.kind == "overflow"
    whole = classify_event(b'{"error":{"message":"prompt is too long"}}', "error")
    assert whole is not None
    assert whole.kind == "overflow"


@pytest.mark.parametrize(
    ("reason", "made", "has_output", "text", "sign"),
    [
        ("model_length", 0, False, "", "finish-window-full"),
        ("MODEL_CONTEXT_WINDOW_EXCEEDED", None, True, "half", "finish-window-full"),
        ("length", 0, False, "", "finish-length-empty"),
        ("stop", 0, True, SENTENCE, "text:window-stated"),
        ("error", None, True, SENTENCE, "text:window-stated"),
    ],
)
def test_a_finished_answer_can_tell_of_an_overflow(reason: str, made: int | None, has_output: bool, text: str, sign: str) -> None:
    verdict = classify_finish(reason, completion_tokens=made, has_output=has_output, text=text)
    assert verdict is not None
    assert (verdict.kind, verdict.sign) == ("overflow", sign)


@pytest.mark.parametrize(
    ("reason", "made", "has_output", "text"),
    [
        (None, None, False, ""),
        ("stop", 12, True, SENTENCE),
        ("length", 4096, False, ""),
        ("length", None, False, ""),
        ("length", 0, True, ""),
        ("stop", 0, True, "the prompt is too long"),
        ("stop", 0, True, SENTENCE + "x" * 1000),
        ("error", None, True, "all is well"),
    ],
)
def test_other_finished_answers_tell_of_none(reason: str | None, made: int | None, has_output: bool, text: str) -> None:
    assert classify_finish(reason, completion_tokens=made, has_output=has_output, text=text) is None


KEYS = ("error", "message", "code", "choices", "usage", "detail", "delta")
WORDS = ("prompt", "tokens", "context", "length", "exceeds", "maximum", "8192", "9000", ">", "+", "(", "'", "{", "limit", "is", "超过", "too", "long")
NONSENSE = (b"[", b'{"error":', b"\\", b"'", b"\xff", b"prompt ")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=20,
)


@given(status=st.integers(100, 599), body=st.binary(max_size=400))
def test_no_bytes_make_it_raise(status: int, body: bytes) -> None:
    classify(status, body)
    classify_event(body)


@given(status=st.integers(100, 599), value=json_values)
def test_no_json_value_makes_it_raise(status: int, value: object) -> None:
    body = json.dumps(value).encode()
    classify(status, body)
    classify_event(body, "error")


@given(words=st.lists(st.sampled_from(WORDS), max_size=60))
def test_no_wording_makes_it_raise_or_teaches_a_window_out_of_bounds(words: list[str]) -> None:
    verdict = classify(400, " ".join(words).encode())
    assert verdict.limit_tokens is None or 128 <= verdict.limit_tokens <= 20_000_000
    assert verdict.kind in ("overflow", "output_cap") or verdict.limit_tokens is None


@pytest.mark.parametrize("piece", NONSENSE)
def test_a_megabyte_of_nonsense_is_no_overflow(piece: bytes) -> None:
    assert classify(400, piece * (1_000_000 // len(piece))).kind == "other"
