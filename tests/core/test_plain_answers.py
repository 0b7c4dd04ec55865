from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.overflow import OTHER, classify
from ctxproxy.core.plain_answers import LONGEST_BYTES, plain_answer
from ctxproxy.core.reply import reply_from_body

CHOICE = {"index": 0, "message": {"role": "assistant", "content": "good"}, "logprobs": None, "finish_reason": "stop"}
USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
ANSWER = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [CHOICE], "usage": USAGE}

PLAIN = [
    ANSWER,
    {**ANSWER, "usage": None},
    {"choices": [CHOICE]},
    {**ANSWER, "error": None, "choices": [{**CHOICE, "error": None, "finish_reason": "length"}]},
    {**ANSWER, "usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0}}},
    {**ANSWER, "usage": {**USAGE, "prompt_tokens_details": {}}},
    {**ANSWER, "model": None, "choices": [{**CHOICE, "index": 3, "message": {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}}]},
    {**ANSWER, "choices": [{**CHOICE, "message": {"role": "assistant", "content": "schön — 好"}}]},
]


@pytest.mark.parametrize("answer", PLAIN)
def test_a_plain_answer_is_read_as_the_whole_reader_reads_it(answer):
    for body in (json.dumps(answer).encode(), json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")):
        found = plain_answer(body)
        assert found is not None
        assert found == reply_from_body(body)
        assert classify(200, body) is OTHER


UNUSUAL = [
    ("two choices", {**ANSWER, "choices": [CHOICE, {**CHOICE, "index": 1}]}),
    ("no choice", {**ANSWER, "choices": []}),
    ("no end", {**ANSWER, "choices": [{**CHOICE, "finish_reason": None}]}),
    ("a full window", {**ANSWER, "choices": [{**CHOICE, "finish_reason": "model_context_window_exceeded"}]}),
    ("nothing written", {**ANSWER, "usage": {**USAGE, "completion_tokens": 0}}),
    ("usage that is none", {**ANSWER, "usage": {"prompt_tokens": "9"}}),
    ("a cache told of in another way", {**ANSWER, "usage": {**USAGE, "prompt_cache_hit_tokens": 3}}),
    ("an error beside it", {**ANSWER, "error": {"message": "too long"}}),
    ("an error in the choice", {**ANSWER, "choices": [{**CHOICE, "error": {"message": "too long"}}]}),
    ("an error's type", {**ANSWER, "type": "error"}),
    ("another error's type", {**ANSWER, "__type": "ValidationException"}),
    ("a status in another place", {**ANSWER, "base_resp": {"status_code": 1}}),
    ("usage in another place", {**ANSWER, "x_groq": {"usage": USAGE}}),
    ("a message that is none", {**ANSWER, "choices": [{**CHOICE, "message": "good"}]}),
    ("half a character", {**ANSWER, "choices": [{**CHOICE, "message": {"role": "assistant", "content": "\ud83c"}}]}),
    ("no object", [ANSWER]),
    ("too much to look at", {**ANSWER, "more": "x" * LONGEST_BYTES}),
]


@pytest.mark.parametrize(("why", "answer"), UNUSUAL)
def test_anything_else_is_left_to_the_whole_reader(why, answer):
    assert plain_answer(json.dumps(answer).encode()) is None, why


@pytest.mark.parametrize("body", [b"", b"{", b"no", json.dumps({**ANSWER, "id": "?"}).encode().replace(b"?", b"\xff")])
def test_what_is_no_json_is_left_to_the_whole_reader(body):
    assert plain_answer(body) is None


TEXTS = st.none() | st.text() | st.sampled_from(["error", "chat.completion", "stop", "length", "tool_calls"])
ANY = st.recursive(TEXTS | st.integers() | st.booleans(), lambda inner: st.lists(inner, max_size=2), max_leaves=3)
CHOICES = st.fixed_dictionaries({"message": st.fixed_dictionaries({"role": TEXTS, "content": ANY}), "finish_reason": TEXTS}, optional={"index": ANY})
ANSWERS = st.fixed_dictionaries(
    {"choices": st.lists(CHOICES, min_size=1, max_size=1)},
    optional={"object": TEXTS, "type": TEXTS, "error": ANY, "errors": ANY, "model": ANY, "response": ANY, "delta": ANY, "stop_reason": TEXTS},
)


@given(ANSWERS)
def test_whatever_is_found_plain_is_plain_to_the_whole_reader(answer):
    body = json.dumps(answer).encode()
    found = plain_answer(body)
    assert found is None or (found == reply_from_body(body) and classify(200, body) is OTHER)
