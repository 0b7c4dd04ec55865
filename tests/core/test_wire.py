from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from ctxproxy.core import jsontext, wire
from ctxproxy.core.messages import NO_DIRECTIVES, Directives, make
from ctxproxy.errors import BadRequest, WireError

BLANKS = st.sampled_from(["", "", " ", "\n", "\t ", "\r\n  "])
NUMBERS = st.sampled_from(
    ["0", "-0.0", "12345678901234567890123.00e5", "1E+2", "9007199254740993", "0.1000", "-1e-7", "123456789012345678901234567890"]
)
STRANGE = st.sampled_from(["NaN", "-Infinity", '"\\ud83c"', '"\\udf78 \\ud83c\\udf78"', "1e999"])
"""What msgspec refuses and the standard library reads: the slow path."""


@st.composite
def strings(draw):
    """JSON strings with each character plain or escaped."""
    out = []
    for char in draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=8)):
        escape = char in '"\\' or ord(char) < 32 or (ord(char) < 0x10000 and draw(st.booleans()))
        out.append(f"\\u{ord(char):04x}" if escape else char)
    return '"' + "".join(out) + '"'


def spaced(draw, opening, parts, closing):
    return opening + draw(BLANKS) + f"{draw(BLANKS)},{draw(BLANKS)}".join(parts) + draw(BLANKS) + closing


@st.composite
def json_texts(draw, depth=2):
    if depth and draw(st.booleans()):
        inner = draw(st.lists(json_texts(depth=depth - 1), max_size=3))
        if draw(st.booleans()):
            return spaced(draw, "[", inner, "]")
        return spaced(draw, "{", [f"{draw(strings())}{draw(BLANKS)}:{draw(BLANKS)}{text}" for text in inner], "}")
    return draw(strings() | NUMBERS | STRANGE | st.sampled_from(["true", "false", "null"]))


@st.composite
def requests(draw):
    """(body text, the texts of its messages, the texts of its other values by key)."""
    messages = [
        spaced(draw, "{", ['"role":"user"', f'"content"{draw(BLANKS)}:{draw(BLANKS)}{draw(json_texts())}', f'"odd":{draw(json_texts())}'], "}")
        for _ in range(draw(st.integers(0, 3)))
    ]
    keys = draw(st.lists(st.sampled_from(["a", "b", "ключ", "temperature", "vendor"]), max_size=4, unique=True))
    others = {key: draw(json_texts()) for key in keys}
    members = [f"{json.dumps(key, ensure_ascii=draw(st.booleans()))}{draw(BLANKS)}:{draw(BLANKS)}{text}" for key, text in others.items()]
    members.insert(draw(st.integers(0, len(members))), f'"messages":{spaced(draw, "[", messages, "]")}')
    return draw(BLANKS) + spaced(draw, "{", members, "}") + draw(BLANKS), messages, others


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests())
def test_a_request_without_changes_is_rendered_as_the_same_object(made):
    body = made[0].encode()
    assert wire.render(wire.parse(body)) is body


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests())
def test_every_message_and_value_keeps_its_exact_bytes(made):
    text, messages, others = made
    request = wire.parse(text.encode())
    assert [message.raw.decode() for message in request.messages] == messages
    assert {key: value.decode() for key, value in request.values.items() if key != "messages"} == others


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests(), st.integers(0, 2))
def test_replaced_messages_leave_all_other_bytes_and_the_key_order(made, kept):
    text, messages, others = made
    request = wire.parse(text.encode())
    chosen = [*request.messages[:kept], make({"role": "user", "content": "new"})]
    rendered = wire.render(request, chosen, {"max_tokens": b"7"})
    json.loads(rendered)
    again = wire.parse(rendered)
    assert [message.raw.decode() for message in again.messages] == [*messages[:kept], '{"role":"user","content":"new"}']
    assert {key: value.decode() for key, value in again.values.items() if key not in ("messages", "max_tokens")} == others
    assert list(again.values) == [*request.values, "max_tokens"]


def request_of(**fields):
    return wire.parse(jsontext.encode({"messages": [], **fields}))


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"", "not a JSON object"),
        (b"\x28\xb5\x2f\xfd\x20\x00", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'{"messages":[]', "not a JSON object"),
        (b"{}", "no messages"),
        (b'{"messages":null}', "messages is not a list"),
        (b'{"messages":{}}', "messages is not a list"),
        (b'{"messages":[{},"x"]}', r"messages\[1\]"),
        (b'{"messages":[{"content":"\xff"}]}', r"messages\[0\]"),
        (b'{"messages":[],"model":"\xff"}', "model cannot be read"),
        (b'{"messages":[{"content":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}", "deeply"),
    ],
)
def test_what_we_cannot_read_says_where(body, where):
    with pytest.raises(WireError, match=where):
        wire.parse(body)


def test_of_equal_keys_the_last_one_wins_as_in_every_json_reader():
    request = wire.parse(b'{"model":"a","messages":[{"role":"x"}],"model":"b","messages":[{"role":"user","role":"tool"}]}')
    assert request.model == "b" and [message.role for message in request.messages] == ["tool"]
    assert json.loads(wire.render(request, request.messages)) == json.loads(request.body)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (None, None)),
        ({"max_tokens": 5}, ("max_tokens", 5)),
        ({"max_completion_tokens": 7}, ("max_completion_tokens", 7)),
        ({"max_tokens": 5, "max_completion_tokens": 7}, ("max_completion_tokens", 7)),
        ({"max_tokens": 5, "max_completion_tokens": None}, ("max_tokens", 5)),
        ({"max_tokens": 4096.0}, ("max_tokens", 4096)),
        ({"max_tokens": 0.5}, (None, None)),
        ({"max_tokens": -1}, (None, None)),
        ({"max_tokens": True}, (None, None)),
        ({"max_tokens": "5"}, (None, None)),
    ],
)
def test_the_newer_name_of_the_output_limit_wins(fields, expected):
    request = request_of(**fields)
    assert (request.output_key, request.max_output) == expected


@pytest.mark.parametrize(("value", "stream"), [(True, True), (False, False), (1, False), ("true", False), (None, False)])
def test_only_a_literal_true_streams(value, stream):
    assert request_of(stream=value).stream is stream


def test_the_rest_of_what_we_need_is_read():
    request = wire.parse(
        b'{"model":"m","n":2,"tools":[ {} ],"functions":null,'
        b'"response_format":{"type" :"text"},"stream_options":{"include_usage":true},"messages":[]}'
    )
    assert (request.model, request.n, request.include_usage) == ("m", 2, True)
    assert (request.tools, request.functions, request.response_format) == (b"[ {} ]", None, b'{"type" :"text"}')


@pytest.mark.parametrize("fields", [{}, {"model": 7, "n": "x", "stream_options": {"include_usage": 1}}, {"n": 0, "stream_options": []}])
def test_what_is_absent_or_of_another_type_reads_as_the_default(fields):
    request = request_of(**fields)
    assert (request.model, request.n, request.include_usage, request.tools) == ("", 1, False, None)


def test_changes_replace_values_in_place_and_new_ones_follow():
    request = wire.parse(b'{"max_tokens": 9 ,"messages":[ {"role":"user"} ],"seed":1}')
    changed = wire.render(request, changes={"max_tokens": b"3", "user": b'"u"'})
    assert changed == b'{"max_tokens":3,"messages":[{"role":"user"}],"seed":1,"user":"u"}'


def test_x_context_is_stripped_and_every_other_byte_of_the_values_stays():
    body = b'{"messages":[{ "role":"user", "x_context": {"pin": true}, "content": "a\\u0062", "v": 1.50 },{ "role":"tool" }],"seed": 1e3}'
    request = wire.parse(body)
    assert request.has_directives
    assert request.messages[0].raw == b'{"role":"user","content":"a\\u0062","v":1.50}'
    assert dict(request.messages[0].fields) == {"role": "user", "content": "ab", "v": 1.5}
    assert [message.directives for message in request.messages] == [Directives(pin=True), NO_DIRECTIVES]
    assert wire.render(request) == b'{"messages":[{"role":"user","content":"a\\u0062","v":1.50},{ "role":"tool" }],"seed":1e3}'
    assert b"x_context" not in wire.render(request, request.messages[:1])


def test_an_escaped_x_context_and_one_beside_a_lone_surrogate_are_stripped_too():
    request = wire.parse(b'{"messages":[{"\\u0078_context":{"pin":true},"content":"\\ud83c"},{"x_context":null,"content":NaN,"x_context":{}}]}')
    assert wire.render(request) == b'{"messages":[{"content":"\\ud83c"},{"content":NaN}]}'
    assert request.messages[0].directives.pin


def test_x_context_inside_a_text_or_a_deeper_object_is_none():
    body = b'{"messages":[{"role":"user","content":"say \\"x_context\\"","meta":{"x_context":5}}]}'
    assert wire.render(wire.parse(body)) is body


@pytest.mark.parametrize(
    ("value", "directives"),
    [
        (None, NO_DIRECTIVES),
        ({}, NO_DIRECTIVES),
        ({"pin": False, "expire_after_turns": None}, NO_DIRECTIVES),
        ({"drop_first": True, "never_summarize": True}, Directives(drop_first=True, never_summarize=True)),
        ({"expire_after_turns": 3}, Directives(expire_after_turns=3)),
    ],
)
def test_directives_are_parsed(value, directives):
    assert request_of(messages=[{"role": "user", "x_context": value}]).messages[0].directives == directives


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (True, "must be an object with any of pin, drop_first, never_summarize, expire_after_turns"),
        ({"pinn": True}, "pinn is unknown; known are pin, "),
        ({"pin": 1}, "pin must be true or false"),
        ({"never_summarize": "true"}, "never_summarize must be true or false"),
        ({"pin": None}, "pin must be true or false"),
        ({"expire_after_turns": 0}, "expire_after_turns must be a whole number of turns, 1 or more"),
        ({"expire_after_turns": True}, "expire_after_turns must be a whole number"),
        ({"expire_after_turns": 1.5}, "expire_after_turns must be a whole number"),
    ],
)
def test_a_malformed_x_context_says_which_message_and_what_would_be_right(value, advice):
    with pytest.raises(BadRequest, match=r"messages\[1\]\.x_context") as caught:
        request_of(messages=[{"role": "system"}, {"role": "user", "x_context": value}])
    assert advice in caught.value.message
    assert caught.value.param == "messages[1].x_context"


@pytest.mark.parametrize("odd", ["", "\ud83c"])
def test_a_large_body_is_parsed_without_copies_of_the_whole(odd):
    body = json.dumps({"messages": [{"role": "user", "content": f"{n} {odd} " + "x" * 1_300} for n in range(3_000)]}).encode()
    tracemalloc.start()
    try:
        request = wire.parse(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(request.messages) == 3_000
    assert peak < 8 * len(body)


def test_what_a_request_says_is_there_without_its_bytes():
    request = request_of(messages=[{"role": "user", "content": "hi"}], max_tokens=7, tools=[{"type": "function"}])
    bare = wire.without_bytes(request)
    assert (bare.model, bare.messages, bare.max_output) == (request.model, request.messages, 7)
    assert (bare.body, bare.values, bare.tools, bare.array) == (b"", {}, None, None)


def test_the_log_keeps_what_the_client_said_of_a_message_and_gives_it_back():
    (message,) = request_of(messages=[{"role": "user", "content": "hi", "x_context": {"pin": True, "expire_after_turns": 2}}]).messages
    raw = wire.logged(message)
    assert json.loads(raw) == {"role": "user", "content": "hi", "x_context": {"pin": True, "expire_after_turns": 2}}
    assert wire.from_log(raw) == message
    plain = make({"role": "user", "content": "hi"})
    assert wire.logged(plain) is plain.raw


def test_two_requests_are_the_same_however_much_of_them_was_read_at_once_and_show_no_text():
    whole = wire.parse(b'{"model":"m","messages":[{"role":"user","content":"a secret"}]}')
    assert (structs.replace(whole, array=None) == whole, structs.replace(whole, n=2) == whole, whole == "m") == (True, False, False)
    assert "secret" not in repr(whole)
