"""The recall tool: how a request carries it, how its calls are read, what the model gets, and what the client does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ctxproxy.core import wire
from ctxproxy.core.messages import Message, make, read
from ctxproxy.core.recall_tool import (
    DESCRIPTION,
    NAME,
    TOOL,
    RecallCall,
    answered,
    asked,
    asks_only,
    can_offer,
    has_tools,
    is_taken,
    no_room,
    offered,
    original_text,
    plain_answer,
    recalled,
    unreadable,
    without_calls,
)
from ctxproxy.core.validity import violations

MARKER = "0123456789abcdef"
MESSAGES = b'"messages": [ {"role":"user",  "content":"hi"} ]'
OWN = {"type": "function", "function": {"name": "read"}}


def request(rest: bytes = b"") -> wire.ChatRequest:
    return wire.parse(b'{"model":"m",' + MESSAGES + rest + b"}")


def called(*arguments: str, name: str = NAME, **fields: Any) -> Message:
    """An answer that calls a tool with these arguments."""
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": text}} for n, text in enumerate(arguments)]
    return make({"role": "assistant", "content": None, "tool_calls": calls, **fields})


def words(text: str) -> int:
    return len(text.split())


# --- the request -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "before"),
    [(b"", b""), (b',"tools":null', b""), (b',"tools":[ ]', b""), (b',"tools": [{"type":  "function"} ] ,"x":1.0', b'{"type":  "function"},')],
)
def test_the_tool_stands_behind_the_requests_own_and_no_other_byte_changes(rest: bytes, before: bytes) -> None:
    chat = request(rest)
    with_tool = offered(chat)
    assert with_tool.tools == b"[" + before + json.dumps(TOOL, ensure_ascii=False, separators=(",", ":")).encode() + b"]"
    assert {**with_tool.values, "tools": b""} == {**chat.values, "tools": b""}
    assert wire.parse(with_tool.body).messages == chat.messages
    assert wire.render(with_tool) is with_tool.body


def test_directives_are_gone_from_a_request_with_the_tool() -> None:
    chat = wire.parse(b'{"messages":[{"role":"user","content":"hi","x_context":{"pin":true}}]}')
    assert b"x_context" not in wire.render(offered(chat)) and b"x_context" not in offered(chat).body


@pytest.mark.parametrize(
    ("rest", "offers", "taken"),
    [
        (b"", True, False),
        (b',"tools":[{"type":"function","function":{"name":"read"}}, 3, {"type":"web"}, {"function":"odd"}]', True, False),
        (b',"tools":[{"type":"function","function":{"name":"ctxproxy_recall"}}]', False, True),
        (b',"n":2', False, False),
        (b',"functions":[]', False, False),
        (b',"tools":{"a":1}', False, False),
    ],
)
def test_some_requests_cannot_carry_it(rest: bytes, *, offers: bool, taken: bool) -> None:
    chat = request(rest)
    assert (can_offer(chat), is_taken(chat)) == (offers, taken)


def test_tools_that_cannot_be_read_are_none() -> None:
    chat = structs.replace(request(), tools=b"[nonsense")
    assert (can_offer(chat), has_tools(chat)) == (False, False)


def test_whether_a_request_has_tools_of_its_own() -> None:
    assert [has_tools(request(rest)) for rest in (b"", b',"tools":[]', b',"tools":[{"a":1}]')] == [False, False, True]


def test_the_tool_names_both_spellings_of_a_marker_and_orders_nothing() -> None:
    assert "[COMPACTED: " in DESCRIPTION and "[已压缩: " in DESCRIPTION
    assert TOOL["function"]["parameters"]["required"] == ["marker"]


# --- the calls -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "marker", "offset"),
    [
        (f'{{"marker":"{MARKER}"}}', MARKER, 0),
        (f'{{"marker":"{MARKER.upper()}","offset":12}}', MARKER, 12),
        (f'{{"marker":"[COMPACTED: result of read a · 12 tokens · {MARKER}]","offset":"40"}}', MARKER, 40),
        (f'{{"marker":"{MARKER * 2}","offset":40.0}}', MARKER * 2, 40),
        (f'{{"marker":"{MARKER}","offset":-3}}', MARKER, 0),
        (f'{{"marker":"{MARKER}","offset":true}}', MARKER, 0),
        (f'{{"marker":"{MARKER}","offset":1e300}}', MARKER, 0),
        (f'{{"marker":"{MARKER}","offset":"{"9" * 40}"}}', MARKER, 0),
        (f'{{"marker":"{MARKER[:15]}"}}', "", 0),
        (f'{{"marker":"{MARKER}zz"}}', "", 0),
        (f'{{"marker":["{MARKER}"]}}', "", 0),
        ("{}", "", 0),
        ("", "", 0),
        ("null", "", 0),
        ('{"marker":"\\ud800"}', "", 0),
        (f'{{"marker":"{MARKER}"', MARKER, 0),
        (MARKER, MARKER, 0),
    ],
)
def test_marker_and_offset_are_read_however_a_model_writes_them(arguments: str, marker: str, offset: int) -> None:
    asking, calls = asked(called(arguments))
    assert calls == (RecallCall("c0", marker, offset),)
    assert isinstance(json.loads(asking.fields["tool_calls"][0]["function"]["arguments"]), dict)


def test_a_sound_call_goes_back_as_it_came() -> None:
    message = called(f'{{"marker":"{MARKER}"}}', reasoning_content="hm")
    assert asked(message)[0] is message


def test_each_call_gets_an_id_of_its_own() -> None:
    message = called("{}", "{}", "{}")
    calls = [{**call, "id": call_id} for call, call_id in zip(message.fields["tool_calls"], ("", "a", "a"), strict=True)]
    asking, made = asked(make({**message.fields, "tool_calls": calls}))
    assert [call["id"] for call in asking.fields["tool_calls"]] == [call.id for call in made] == ["recall_0", "a", "recall_2"]


def test_an_answer_without_its_role_is_read_all_the_same() -> None:
    fields = {key: value for key, value in called("{}").fields.items() if key != "role"}
    assert asks_only(make(fields))
    asking, calls = asked(make(fields))
    assert (asking.role, len(calls)) == ("assistant", 1)


@pytest.mark.parametrize(
    ("message", "only"),
    [
        (called("{}", "{}"), True),
        (called("{}", name="read"), False),
        (make({"role": "assistant", "tool_calls": [*called("{}").fields["tool_calls"], *called("{}", name="read").fields["tool_calls"]]}), False),
        (called("{}", function_call={"name": "read"}), False),
        (make({"role": "assistant", "content": NAME}), False),
        (make({"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": NAME}}]}), False),
    ],
)
def test_the_proxy_goes_on_by_itself_only_where_nothing_else_is_called(message: Message, *, only: bool) -> None:
    assert asks_only(message) is only


def test_a_round_leaves_the_prompt_valid() -> None:
    asking, calls = asked(called("{}", f'{{"marker":"{MARKER}"}}'))
    added = answered(asking, calls, [recalled(calls[0], None, 9, words), recalled(calls[1], make({"role": "user", "content": "the text"}), 9, words)])
    assert violations([make({"role": "user", "content": "hi"}), *added]) == []
    assert [m.fields["content"] for m in added[1:]] == ["[no marker: it is the 16 hex digits at the end of a shortened form]", "the text"]


# --- the originals ---------------------------------------------------------------------------------------------------------------


def text_message(text: str) -> Message:
    return make({"role": "tool", "tool_call_id": "x", "content": text})


@pytest.mark.parametrize(
    ("original", "text"),
    [
        (text_message(" a\n\x00b "), " a\n\x00b "),
        (make({"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}, 3]}),
         "look\n[image_url that cannot be shown here]"),
        (make({"role": "user", "content": [{"type": "text", "text": ""}, {"type": "refusal", "refusal": "no"}]}), "no"),
        (called('{"path":"a"}', name="read", content="I read."), 'I read.\n[call of read: {"path":"a"}]'),
        (make({"role": "assistant", "content": None, "refusal": "no"}), "no"),
    ],
)  # fmt: skip
def test_an_original_is_its_own_text(original: Message, text: str) -> None:
    assert original_text(original) == text
    assert recalled(RecallCall("c", MARKER), original, 1000, words).text == text


def test_what_cannot_be_had_is_said() -> None:
    call = RecallCall("c", MARKER)
    said = [recalled(call, None, 100, words), no_room(call), unreadable(call), recalled(call, text_message("a " * 99), 3, words)]
    assert [one.found for one in said] == ["not_found", "no_room", "not_found", "no_room"]
    assert all(MARKER in one.text for one in said)


def test_a_page_begins_at_its_offset_and_names_the_next() -> None:
    text = " ".join(f"w{n}" for n in range(100))
    found = recalled(RecallCall("c", MARKER, 0), text_message(text), 60, words)
    page, note = found.text.rsplit("\n", 1)
    assert found.found == "in_part"
    assert (text.startswith(page), note) == (True, f"[characters 0 to {len(page)} of {len(text)}; the next offset is {len(page)}]")
    last = recalled(RecallCall("c", MARKER, len(text) - 3), text_message(text), 60, words)
    assert last.text == f"{text[-3:]}\n[characters {len(text) - 3} to {len(text)} of {len(text)}; this is its end]"
    beyond = recalled(RecallCall("c", MARKER, 10**9), text_message(text), 60, words)
    assert beyond.text == f"\n[characters {len(text)} to {len(text)} of {len(text)}; this is its end]"


@given(text=st.text(min_size=1, max_size=600), room=st.integers(min_value=41, max_value=200))
def test_the_pages_one_after_the_other_are_the_original_and_none_is_larger_than_its_room(text: str, room: int) -> None:
    original, pages, offset = text_message(text), "", 0
    while True:
        found = recalled(RecallCall("c", MARKER, offset), original, room, len)
        if found.found != "in_part":
            assert found.found == "no_room" or (pages == "" and found.text == text)
            return
        page, note = found.text.rsplit("\n", 1)
        assert len(page) <= room
        pages += page
        if "this is its end" in note:
            assert pages == text
            return
        offset = int(note.rsplit(" ", 1)[1].rstrip("]"))
        assert offset == len(pages)


# --- the plain answer ------------------------------------------------------------------------------------------------------------


def body_of(message: Message, finish: str = "tool_calls") -> bytes:
    return b'{"id": "x", "choices": [ {"index":0,"message": ' + message.raw + b',"finish_reason":"' + finish.encode() + b'"}], "usage": {"a":1.0}}'


def test_an_answer_without_such_calls_keeps_its_bytes() -> None:
    body = body_of(called("{}", name="read"))
    assert plain_answer(body, []) is body
    message = called("{}", name="read")
    assert without_calls(message) is message


def test_calls_are_taken_out_and_what_is_left_keeps_its_bytes() -> None:
    both = make(
        {"role": "assistant", "content": None, "tool_calls": [*called("{}").fields["tool_calls"], *called("1", name="read").fields["tool_calls"]]}
    )
    shown = json.loads(plain_answer(body_of(both), []))["choices"][0]
    assert (shown["message"]["tool_calls"], shown["finish_reason"]) == (called("1", name="read").fields["tool_calls"], "tool_calls")
    alone = plain_answer(body_of(called("{}")), [])
    assert json.loads(alone)["choices"][0] == {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
    assert b'"usage":{"a":1.0}' in alone
    assert b'"finish_reason":"length"' in plain_answer(body_of(called("{}"), "length"), [])


@pytest.mark.parametrize(
    ("content", "together"),
    [("then", "first\n\nsecond\n\nthen"), (None, "first\n\nsecond"), ("", "first\n\nsecond"),
     ([{"type": "text", "text": "then"}], [{"type": "text", "text": "first\n\nsecond"}, {"type": "text", "text": "then"}])],
)  # fmt: skip
def test_what_was_said_in_earlier_rounds_stands_before(content: Any, together: Any) -> None:
    message = read(json.dumps({"role": "assistant", "content": content, "x": 1}).encode())
    shown = json.loads(plain_answer(body_of(message, "stop"), ["first", "second"]))["choices"][0]
    assert shown == {"index": 0, "message": {"role": "assistant", "content": together, "x": 1}, "finish_reason": "stop"}


def test_a_choice_without_a_message_stays() -> None:
    body = b'{"choices":[{"index":0,"text":"old"}]}'
    assert plain_answer(body, []) is body
