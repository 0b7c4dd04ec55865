from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core import messages
from ctxproxy.core.messages import (
    ROOT,
    Directives,
    Message,
    ToolCall,
    chain,
    digest,
    identity,
    leading_system,
    make,
    next_tip,
    read,
    text_of,
    tips_of,
    tool_calls,
)


def test_a_message_keeps_its_exact_bytes():
    raw = b'{ "role" : "user", "content":"a\\u0062" }'
    message = read(raw)
    assert message.raw is raw
    assert (message.role, message.content) == ("user", "ab")


def test_a_message_with_a_lone_surrogate_is_read():
    assert read(b'{"role":"user","content":"\\ud83c"}').content == "\ud83c"


@pytest.mark.parametrize("raw", [b"[]", b"null", b'"user"', b"{", b""])
def test_what_is_no_object_is_no_message(raw):
    with pytest.raises(ValueError):
        read(raw)


def test_a_role_that_is_no_text_is_empty():
    assert make({"role": 7}).role == "" and make({}).role == ""


def test_directives_travel_with_the_message_and_count_in_equality():
    pinned = read(b"{}", Directives(pin=True))
    assert pinned.directives.pin and pinned != read(b"{}")
    assert messages.with_fields(pinned, content="x").directives.pin


def test_changed_fields_leave_the_others():
    message = messages.with_fields(read(b'{"role":"tool","x_vendor":1.5,"content":"long"}'), content="short")
    assert message.raw == b'{"role":"tool","x_vendor":1.5,"content":"short"}'
    assert message.fields["content"] == "short"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"content": "plain"}, "plain"),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}, {"type": "refusal", "refusal": "no"}]},
            "a\nno",
        ),
        ({"content": ["bare", {"type": "text", "text": 7}]}, ""),
        ({"content": None, "refusal": "I will not"}, "I will not"),
        ({"content": "", "refusal": "I will not"}, "I will not"),
        ({"content": None, "refusal": 1}, ""),
        ({}, ""),
    ],
)
def test_the_text_of_a_message(fields, text):
    assert text_of(make(fields)) == text


@pytest.mark.parametrize(
    ("fields", "calls"),
    [
        ({"role": "user", "tool_calls": [{"id": "a"}]}, ()),
        ({"role": "assistant", "tool_calls": None}, ()),
        ({"role": "assistant", "tool_calls": ["x"]}, ()),
        ({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{ }"}}]}, (ToolCall("a", "f", "{ }"),)),
        ({"role": "assistant", "tool_calls": [{"id": "a", "custom": {"name": "f", "input": "go"}}]}, (ToolCall("a", "f", "go"),)),
        ({"role": "assistant", "tool_calls": [{"function": "f"}]}, (ToolCall("", "", ""),)),
        (
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": True}}}]},
            (ToolCall("a", "f", '{"x":true}'),),
        ),
    ],
)
def test_the_tool_calls_of_a_message(fields, calls):
    assert tool_calls(make(fields)) == calls


def test_leading_system_messages_are_counted_up_to_the_first_other():
    system, developer, user = make({"role": "system"}), make({"role": "developer"}), make({"role": "user"})
    assert leading_system([system, developer, user, system]) == 2
    assert leading_system([system, developer]) == 2
    assert leading_system([]) == 0


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SAME = [
    ({"role": "user", "content": "hi"}, {"content": "hi", "role": "user"}),
    ({"role": "user", "content": "hi"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}),
    ({"role": "user", "content": "hi"}, {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}),
    ({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "a", "refusal": None, "tool_calls": [], "annotations": []}),
    ({"role": "assistant", "content": "{}"}, {"role": "assistant", "content": "{}", "parsed": {}}),
    (
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "go"}}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "go"}, "index": 0}]},
    ),
    (
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", "parsed_arguments": {}}}]},
    ),
    ({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "a", "reasoning_content": "hm", "reasoning_details": [1]}),
    (
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
    ),
    ({"role": "assistant", "tool_calls": [CALL]}, {"role": "assistant", "content": "", "tool_calls": [{**CALL, "index": 0}]}),
    ({"role": "assistant", "content": None, "tool_calls": ["odd"]}, {"role": "assistant", "tool_calls": ["odd"]}),
    ({"role": "assistant", "audio": {"id": "x"}}, {"role": "assistant", "content": None, "audio": {"id": "x", "data": "UklG", "transcript": "hi"}}),
]
OTHER = [
    ({"role": "user", "content": "hi"}, {"role": "user", "content": "hi "}),
    ({"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}),
    ({"role": "user", "content": "hi"}, {"role": "user", "content": "hi", "name": "bob"}),
    ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, {"role": "user", "content": "ab"}),
    ({"role": "user", "content": ["a"]}, {"role": "user", "content": "a"}),
    ({"role": "tool", "tool_call_id": "a", "content": "x"}, {"role": "tool", "tool_call_id": "b", "content": "x"}),
    ({"role": "assistant", "tool_calls": [CALL]}, {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "{ }"}}]}),
    ({"role": "assistant", "audio": {"id": "x"}}, {"role": "assistant", "audio": {"id": "y"}}),
    ({"role": "assistant", "audio": "x"}, {"role": "assistant", "audio": {"id": "x"}}),
    ({"role": "user", "content": "x", "vendor": 0}, {"role": "user", "content": "x"}),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_known_re_serialisations_have_one_identity(one, two):
    assert identity(make(one)) == identity(make(two))


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_all_else_counts_in_the_identity(one, two):
    assert identity(make(one)) != identity(make(two))


def test_identity_stands_lone_surrogates_and_has_16_bytes():
    assert len(identity(read(b'{"role":"user","content":"\\ud83c"}'))) == 16


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.binary(min_size=16, max_size=16), max_size=8), st.integers(0, 8))
def test_a_chain_goes_on_from_any_of_its_tips(identities, cut):
    tips = chain(ROOT, identities)
    start = tips[: cut + 1][-1] if tips[: cut + 1] else ROOT
    assert tips == [*tips[: cut + 1], *chain(start, identities[cut + 1 :])]
    assert all(len(tip) == 32 for tip in tips)


def test_the_same_message_has_another_tip_behind_another_parent():
    one = identity(make({"role": "user", "content": "hi"}))
    assert next_tip(ROOT, one) != next_tip(next_tip(ROOT, one), one)


def test_a_digest_names_exact_bytes():
    assert digest(b"{}") == digest(b"{}") != digest(b"{ }")
    assert len(digest(b"")) == 16


def test_equal_bytes_are_equal_messages():
    assert read(b"{}") == Message(b"{}", {}) and len({read(b"{}"), Message(b"{}", {})}) == 1


def test_the_tips_of_messages_are_the_chain_of_their_identities_and_each_is_identified_once() -> None:
    asked: list[Message] = []

    def identify(message: Message) -> bytes:
        asked.append(message)
        return identity(message)

    messages = [make({"role": "user", "content": str(n)}) for n in range(3)]
    for parent in (ROOT, ROOT, "ab" * 16):
        assert tips_of(parent, messages, identify) == chain(parent, [identity(message) for message in messages])
    assert asked == messages


def test_a_message_is_counted_once_for_each_way_in_a_row() -> None:
    message, asked = make({"role": "user"}), []

    def count(one: Message) -> int:
        asked.append(one)
        return len(asked)

    assert not message.is_counted("a")
    assert [message.counted(way, count) for way in ("a", "a", "b", "b", "a")] == [1, 1, 2, 2, 3]
    assert (message.is_counted("a"), message.is_counted("b")) == (True, False)


def test_the_digest_of_a_message_is_that_of_its_bytes() -> None:
    message = read(b'{"role": "user"}')
    assert message.digest == message.digest == digest(b'{"role": "user"}')


def test_a_message_is_its_bytes_and_its_directives_whatever_is_known_of_it():
    one, other = make({"role": "user", "content": "hi"}), make({"role": "user", "content": "hi"})
    assert one.calls == () and one.digest and tips_of(ROOT, [one], identity)
    assert (one, hash(one), repr(one)) == (other, hash(other), repr(other))
    pinned = one.with_directives(Directives(pin=True))
    assert (pinned.raw, pinned.past, pinned == one, one == "hi") == (one.raw, None, False, False)
