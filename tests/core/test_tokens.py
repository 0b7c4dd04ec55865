from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core import jsontext
from ctxproxy.core.budget import budget
from ctxproxy.core.images import vision_for
from ctxproxy.core.messages import make, read
from ctxproxy.core.policy import Policy
from ctxproxy.core.tokens import fixed_tokens, has_media, message_tokens, surely_fits
from ctxproxy.tokenizers import open_tokenizer
from tests.core.test_images import url
from tests.core.test_imagesize import png


def words(text: str) -> int:
    """A count that is easy to follow: one token a word."""
    return len(text.split())


def byte_count(text: str) -> int:
    """The worst byte-level encoding there can be: every byte a token."""
    return len(text.encode("utf-8", "replace"))


PICTURE = {"type": "image_url", "image_url": {"url": url(png(512, 512))}}
COOKBOOK = [
    # The example of OpenAI's cookbook, whose API answer it states: 129 tokens for gpt-3.5-turbo and gpt-4, 124 for gpt-4o
    {"role": "system", "content": "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
    {"role": "system", "name": "example_user", "content": "New synergies will help drive top-line growth."},
    {"role": "system", "name": "example_assistant", "content": "Things working well together will increase revenue."},
    {
        "role": "system",
        "name": "example_user",
        "content": "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
    },
    {"role": "system", "name": "example_assistant", "content": "Let's talk later when we're less busy about how to do better."},
    {
        "role": "user",
        "content": "This late pivot means we don't have time to boil the ocean for the client deliverable.",
    },
]


@pytest.mark.parametrize(("encoding", "tokens"), [("cl100k_base", 129), ("o200k_base", 124)])
def test_the_cookbooks_conversation_costs_what_the_api_said(encoding, tokens):
    count = open_tokenizer(encoding).count
    assert sum(message_tokens(make(one), count) for one in COOKBOOK) + fixed_tokens(None, None, None, count) == tokens


MESSAGES = [
    # fields, tokens beside the message's 3 and the role's 1
    ({"role": "user", "content": "one two three"}, 3),
    ({"role": "user", "content": "one", "name": "ann"}, 1 + 1 + 1),
    ({"role": "user", "content": "one", "name": ""}, 1),
    ({"role": "assistant", "content": None}, 0),
    ({"role": "assistant", "content": ""}, 0),
    ({"role": "assistant"}, 0),
    ({"role": "assistant", "content": None, "refusal": "I will not"}, 3),
    ({"role": "user", "content": [{"type": "text", "text": "one two"}]}, 2),
    ({"role": "user", "content": [{"type": "text", "text": "one two"}, {"type": "text", "text": "three"}]}, 3 + 1),
    ({"role": "assistant", "content": [{"type": "refusal", "refusal": "no way"}]}, 2),
    ({"role": "user", "content": ["one", 7, None, {"type": "text", "text": None}]}, 1 + 3),
    ({"role": "user", "content": [{"type": "strange", "inner": {"deep": ["one", "two three"]}, "id": "call it"}]}, 3),
    ({"role": "user", "content": [{"type": "strange", "blob": "data:x/y;base64,AAAA AAAA"}, {"type": "text", "text": "x" * 900}]}, 767),
    ({"role": "assistant", "content": [{"type": "thinking", "thinking": "a b", "signature": "s s s s"}]}, 2),
    ({"role": "assistant", "content": None, "reasoning_content": "a b c", "reasoning": "a b c", "reasoning_details": [{"text": "a b c"}]}, 3),
    ({"role": "assistant", "content": None, "thinking_blocks": [{"thinking": "a b c", "signature": "s s s s s"}]}, 3),
    ({"role": "assistant", "tool_calls": [{"id": "c d", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]}, 6 + 1 + 2),
    ({"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "one two"}}]}, 6 + 1 + 2),
    ({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": "one two"}}}]}, 6 + 1 + 2),
    ({"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "arguments": "one two"}]}, 6 + 1 + 2),
    ({"role": "assistant", "tool_calls": [{"id": "a long enough id for the bytes", "function": "one two"}]}, 6 + 2),
    ({"role": "assistant", "tool_calls": ["nonsense", None]}, 0),
    ({"role": "assistant", "tool_calls": "nonsense"}, 0),
    ({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, 6 + 1 + 1),
    ({"role": "tool", "tool_call_id": "call 1 2 3", "content": "one two"}, 2),
    ({"role": "user", "content": {"text": "one two"}}, 2),
    ({"role": "user", "content": "one", "unknown": "never shown to a model"}, 1),
    ({"role": "user", "content": [{"type": "text", "text": "look"}, PICTURE]}, 1 + 1 + 765),
    ({"role": "user", "content": [PICTURE, PICTURE]}, 1 + 2 * 765),
    ({"role": "tool", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "a b"}, PICTURE]}]}, 2 + 765),
]


@pytest.mark.parametrize(("fields", "tokens"), MESSAGES)
def test_a_message_of_any_shape_has_its_tokens(fields, tokens):
    assert message_tokens(make(fields), words) == 4 + tokens


def test_a_message_without_a_role_has_no_role_to_count():
    assert message_tokens(make({"content": "one two"}), words) == 5


def test_the_models_formula_counts_the_pictures():
    message = make({"role": "user", "content": [PICTURE]})
    assert message_tokens(message, words, vision_for("gpt-4o")) == 4 + 255


def test_a_message_is_never_counted_above_its_bytes():
    assert message_tokens(make({}), byte_count) == 3
    assert (
        message_tokens(make({"role": "assistant", "tool_calls": [{}] * 50}), words)
        == len(make({"role": "assistant", "tool_calls": [{}] * 50}).raw) + 1
    )


def test_a_value_nested_too_deeply_is_counted_by_its_bytes():
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]
    message = read(b'{"role":"user"}')
    nested = type(message)(b"x" * 10_000, {"role": "user", "content": deep})
    assert message_tokens(nested, words) == 10_001


FIXED = [
    (None, None, None, 0),
    (b"[]", b"[]", b"null", 0),
    (b'[ {"type": "function", "function": {"name": "f"}} ]', None, None, 12 + 1),  # compact: one "word"
    (None, b'[{"name": "look", "parameters": {}}]', None, 12 + 1),
    (None, None, b'{"type": "json_schema", "json_schema": {"name": "a b"}}', 2),
    (b"not json", None, None, 8),
    (b"[1]", None, None, 3),  # never above its bytes
    (b"[" * 50_000, None, None, 50_000),
]


@pytest.mark.parametrize(("tools", "functions", "response_format", "tokens"), FIXED)
def test_schemas_are_counted_as_compact_json_in_a_frame(tools, functions, response_format, tokens):
    assert fixed_tokens(tools, functions, response_format, words) == 3 + tokens


def test_blanks_and_escapes_in_a_schema_do_not_count():
    count = open_tokenizer("o200k_base").count
    tools = [{"type": "function", "function": {"name": "wetter", "description": "Das Wetter in München, 北京 oder 東京 von heute"}}]
    pretty, compact = json.dumps(tools, indent=8).encode(), json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode()
    assert fixed_tokens(pretty, None, None, count) == fixed_tokens(compact, None, None, count) == 3 + 12 + count(compact.decode())


def test_media_are_seen():
    assert has_media([make({"role": "user", "content": "x"}), make({"role": "user", "content": [PICTURE]})])
    assert has_media([make({"role": "tool", "content": [{"type": "tool_result", "content": [PICTURE]}]})])
    assert not has_media([make({"role": "user", "content": [{"type": "text", "text": "x"}, "y", None]}), make({"role": "user"})])


def test_a_body_with_media_is_never_sure_to_fit():
    assert surely_fits(1_000, 1_000, has_media=False)
    assert not surely_fits(1_001, 1_000, has_media=False)
    assert not surely_fits(10, 1_000_000, has_media=True)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20))
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)), max_leaves=6
)
PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=40)}),
    st.fixed_dictionaries({"type": st.sampled_from(["refusal", "thinking", "strange"]), "refusal": VALUES, "thinking": VALUES}),
    VALUES,
)
CALLS = st.one_of(
    st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": st.text(max_size=8), "arguments": VALUES})}),
    st.fixed_dictionaries({}, optional={"function": VALUES, "custom": VALUES, "id": st.text(max_size=4)}),
)
ANY_MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "role": st.one_of(st.sampled_from(["user", "assistant", "tool"]), VALUES),
        "content": st.one_of(st.text(max_size=60), st.lists(PARTS, max_size=4), VALUES),
        "name": st.one_of(st.text(max_size=8), VALUES),
        "refusal": VALUES,
        "tool_calls": st.one_of(st.lists(CALLS, max_size=4), VALUES),
        "function_call": VALUES,
        "reasoning_content": VALUES,
        "thinking_blocks": VALUES,
    },
)


@given(
    st.lists(ANY_MESSAGE, max_size=5),
    st.one_of(st.none(), st.lists(VALUES, max_size=3)),
    st.one_of(st.none(), VALUES),
    st.booleans(),
    st.integers(0, 2_000),
)
def test_a_body_that_surely_fits_never_has_more_tokens(messages, tools, response_format, ascii_only, max_tokens):
    body = {"messages": messages, **({"tools": tools} if tools is not None else {}), "response_format": response_format}

    def text(value: object) -> bytes:
        return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")).encode("utf-8", "surrogatepass")

    parsed = [read(text(one)) for one in messages]
    media = has_media(parsed)
    fixed = fixed_tokens(text(tools) if tools is not None else None, None, text(response_format), byte_count)
    history = sum(message_tokens(one, byte_count) for one in parsed)
    if surely_fits(len(text(body)), len(text(body)), has_media=media):
        assert fixed + history <= len(text(body))
    policy = Policy(max_tokens=max(1, max_tokens))
    if surely_fits(len(text(body)), budget(policy, 128_000, None, 0).trigger, has_media=media):
        assert history <= budget(policy, 128_000, None, fixed).trigger


@given(ANY_MESSAGE)
def test_any_message_can_be_counted_and_has_some_tokens(fields):
    message = make(fields)
    assert message_tokens(message, byte_count) >= 3
    assert message_tokens(message, byte_count) == message_tokens(read(jsontext.encode(fields)), byte_count)
