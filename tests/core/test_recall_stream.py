"""A stream without the calls of the recall tool: what passes as it is, what goes, what is changed, and when another round is due."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core import recall_stream
from ctxproxy.core.recall_stream import RecallFilter, Shown
from ctxproxy.core.recall_tool import NAME, asked
from ctxproxy.core.reply import Reply, ReplyAssembler
from ctxproxy.core.sse import SseReader

DONE = b"data: [DONE]\n\n"
ROLE = {"role": "assistant", "content": ""}
USAGE = {"prompt_tokens": 5, "completion_tokens": 2}


def event(value: Any, end: bytes = b"\n\n") -> bytes:
    return b"data: " + json.dumps(value).encode() + end


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return event({"id": "x", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def fragment(index: int = 0, name: str | None = NAME, arguments: str = "", call_id: str | None = "r1") -> dict[str, Any]:
    """A piece of a call; a first one has an id and a name."""
    function = {**({"name": name} if name is not None else {}), "arguments": arguments}
    return {"index": index, **({"id": call_id, "type": "function"} if call_id else {}), "function": function}


def more(arguments: str, index: int = 0) -> dict[str, Any]:
    return fragment(index, None, arguments, None)


def filtered(data: bytes, shown: Shown | None = None, *, may_recall: bool = True, may_restart: bool = False) -> tuple[bytes, RecallFilter]:
    one = RecallFilter(shown or Shown(), may_recall=may_recall, may_restart=may_restart)
    return one.feed(data) + one.finish(), one


def reply(data: bytes) -> Reply:
    """What a client makes of a stream."""
    reader, assembler = SseReader(), ReplyAssembler()
    for one in [*reader.feed(data), *([last] if (last := reader.finish()) else [])]:
        assembler.feed(one.data, one.name)
    return assembler.result()


RECALL = [delta(tool_calls=[fragment()]), delta(tool_calls=[more('{"marker":')]), delta(tool_calls=[more('"0123456789abcdef"}')])]
OWN = [delta(tool_calls=[fragment(0, "read", "", "c1")]), delta(tool_calls=[more('{"path":1}')])]
STREAMS = {
    "text": [delta(**ROLE), delta(content="Hel"), delta(content="lo"), delta("stop"), event({"choices": [], "usage": USAGE}), DONE],
    "a call": [delta(**ROLE), *OWN, delta("tool_calls"), DONE],
    "comments and odd ends": [b": ping\n\n", b"\n", delta(content="x").replace(b"\n", b"\r\n"), b"data: a\rdata: b\r\r",
                              delta("stop").replace(b"\n", b"\r")],
    "no end": [delta(**ROLE), delta(content="x")],
    "an event without its blank line": [delta(content="x"), b'data: {"choices":[]}'],
    "nothing but a role": [event({"choices": [], "prompt_filter_results": []}), delta(**ROLE), DONE],
    "an error": [delta(**ROLE), b"event: error\ndata: overloaded\n\n"],
    "an error object": [event({"error": {"message": "no"}}), DONE],
    "a name in pieces": [delta(tool_calls=[fragment(0, "ctxproxy_", "", "c1")]), delta(tool_calls=[fragment(0, "re", "", None)]),
                         delta(tool_calls=[fragment(0, "ad", "{}", None)]), delta("tool_calls"), DONE],
    "a name that begins like ours": [delta(tool_calls=[fragment(0, "ctx", "", "c1")]), delta(tool_calls=[more("{}")]), delta("tool_calls"), DONE],
    "a call that begins like ours and has no arguments": [delta(tool_calls=[fragment(0, "ctx", "", "c1")]), delta("tool_calls")],
    "one whole completion": [event({"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}), DONE],
    "odd values": [event([1]), event({"choices": None}), event({"choices": [1, {"index": 0, "delta": None}]}), delta(content=["x"]), DONE],
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("may_recall", [True, False])
def test_a_stream_that_does_not_call_it_keeps_every_byte(name: str, *, may_recall: bool) -> None:
    data = b"".join(STREAMS[name])
    shown, one = filtered(data, may_recall=may_recall)
    assert (shown, one.is_due) == (data, False)


def test_each_event_is_shown_as_soon_as_it_has_come_but_for_a_bare_role() -> None:
    one = RecallFilter(Shown(), may_recall=True)
    parts = STREAMS["text"]
    assert [one.feed(part) for part in parts] == [b"", parts[0] + parts[1], *parts[2:]]
    comments = RecallFilter(Shown(), may_recall=True)
    assert [comments.feed(part) for part in (b": ping\n\n", delta(**ROLE), b": ping\n\n")] == [b": ping\n\n", b"", b": ping\n\n"]


@pytest.mark.parametrize(
    "end", [[delta("tool_calls"), event({"choices": [], "usage": USAGE}), DONE], [delta("stop")], [DONE], [delta("length"), DONE]]
)
def test_a_round_that_only_asks_shows_nothing_and_another_is_due(end: list[bytes]) -> None:
    shown, one = filtered(b"".join([delta(**ROLE), *RECALL, *end]))
    assert (shown, one.is_due) == (b"", True)
    _, calls = asked(one.message())
    assert [(call.id, call.marker) for call in calls] == [("r1", "0123456789abcdef")]


def test_the_call_may_come_whole_with_role_and_finish_in_one_event() -> None:
    for data in (
        delta("tool_calls", role="assistant", content=None, tool_calls=[fragment(arguments="{}")]),
        event({"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [fragment(arguments="{}")]}, "finish_reason": "tool_calls"}]}),
        delta(tool_calls=[fragment(0, "ctxproxy_", "", "r1")]) + delta(tool_calls=[fragment(0, "recall", "{}", None)]) + delta("tool_calls"),
    ):
        shown, one = filtered(data + DONE)
        assert (shown, one.is_due) == (b"", True)


def test_what_is_said_before_the_call_is_shown_and_nothing_of_the_rounds_end() -> None:
    shown, one = filtered(b"".join([delta(**ROLE), delta(reasoning_content="hm"), delta(content="Look."), *RECALL, delta("tool_calls"), DONE]))
    assert shown == delta(**ROLE) + delta(reasoning_content="hm") + delta(content="Look.")
    assert one.is_due
    together = delta("tool_calls", content="Look.", tool_calls=[fragment(arguments="{}")])
    shown, one = filtered(event({**json.loads(together[6:]), "usage": USAGE}) + DONE)
    assert json.loads(shown[6:]) == {"id": "x", "choices": [{"index": 0, "delta": {"content": "Look."}, "finish_reason": None}]}
    assert one.is_due


@pytest.mark.parametrize("end", [[delta("content_filter"), DONE], [event({"error": {"message": "no"}}), delta("tool_calls"), DONE], []])
def test_a_round_that_ended_otherwise_is_not_gone_on_with(end: list[bytes]) -> None:
    shown, one = filtered(b"".join([delta(**ROLE), *RECALL, *end]))
    assert (one.is_due, NAME.encode() in shown) == (False, False)
    assert reply(shown).choices[0].message.fields.get("tool_calls") is None


def test_without_another_round_the_answer_ends_as_if_nothing_had_been_called() -> None:
    for reason, told in (("tool_calls", "stop"), ("length", "length"), ("stop", "stop")):
        shown, one = filtered(b"".join([delta(**ROLE), *RECALL, delta(reason), DONE]), may_recall=False)
        choice = reply(shown).choices[0]
        assert (one.is_due, choice.finish_reason, choice.message.fields) == (False, told, {"role": "assistant", "content": ""})
        assert shown.endswith(DONE)


def test_starting_over_is_possible_only_while_nothing_is_shown() -> None:
    end = b"".join([*RECALL, delta("tool_calls"), DONE])
    assert filtered(end, may_recall=False, may_restart=True)[1].is_due
    assert not filtered(delta(content="Look.") + end, may_recall=False, may_restart=True)[1].is_due


@pytest.mark.parametrize("ours_first", [True, False])
def test_beside_calls_of_the_clients_it_is_taken_out_and_theirs_are_numbered_without_a_gap(*, ours_first: bool) -> None:
    ours, theirs = (0, 1) if ours_first else (1, 0)
    parts = [
        delta(role="assistant", content=None, tool_calls=[fragment(0, *((NAME, "") if ours_first else ("read", "")), "a" if ours_first else "b")]),
        delta(tool_calls=[more("{}", 0)]),
        delta(tool_calls=[fragment(1, "read" if ours_first else NAME, "", "b" if ours_first else "a")]),
        delta(tool_calls=[more('{"a":', ours), more('{"path":', theirs)] if not ours_first else [more('{"path":', theirs)]),
        delta("tool_calls"),
        DONE,
    ]
    shown, one = filtered(b"".join(parts))
    events = [json.loads(line[6:]) for line in shown.splitlines() if line.startswith(b"data: {")]
    fragments = [one for value in events for one in value["choices"][0]["delta"].get("tool_calls", [])]
    assert {one["index"] for one in fragments} == {0}
    (call,) = reply(shown).choices[0].message.fields["tool_calls"]
    assert (one.is_due, call["id"], call["function"]["name"], reply(shown).choices[0].finish_reason) == (False, "b", "read", "tool_calls")


def test_calls_without_an_index_are_parted_too() -> None:
    first, second = {**fragment(arguments="{}")}, {**fragment(0, "read", "{}", "b")}
    del first["index"], second["index"]
    shown, _ = filtered(delta("tool_calls", tool_calls=[first, second]) + DONE)
    assert [call["id"] for call in reply(shown).choices[0].message.fields["tool_calls"]] == ["b"]


def test_an_event_keeps_its_name_when_it_is_changed() -> None:
    shown, _ = filtered(b"event: chunk\n" + delta("tool_calls", content="x", tool_calls=[fragment(), fragment(1, "read", "{}", "b")]))
    assert shown.startswith(b"event: chunk\ndata: {")


# --- later rounds ----------------------------------------------------------------------------------------------------------------


def rounds(*streams: Sequence[bytes]) -> tuple[bytes, Shown]:
    """Rounds one after the other, as the client sees them."""
    shown, out = Shown(), b""
    for stream in streams:
        piece, _ = filtered(b"".join(stream), shown)
        out += piece
    return out, shown


def test_a_round_behind_text_has_no_second_role_and_begins_a_paragraph() -> None:
    asks = [delta(**ROLE), delta(content="Look."), *RECALL, delta("tool_calls"), DONE]
    filter_results = event({"choices": [], "prompt_filter_results": []})
    out, _ = rounds(asks, [filter_results, delta(**ROLE), delta(content="So"), delta(content=" it is."), delta(), delta("stop"), DONE])
    assert reply(out).choices[0].message.fields == {"role": "assistant", "content": "Look.\n\nSo it is."}
    assert (out.count(b"role"), out.count(b"filter_results"), out.count(b"[DONE]"), out.count(b'"\\n\\n"')) == (1, 0, 1, 1)
    assert out.endswith(delta(content="So") + delta(content=" it is.") + delta() + delta("stop") + DONE)


def test_no_paragraph_is_made_up_where_the_text_has_ended_a_line_or_there_was_none() -> None:
    ends = [*RECALL, delta("tool_calls"), DONE]
    for said in (delta(content="Look:\n"), delta(reasoning_content="hm")):
        out, _ = rounds([delta(**ROLE), said, *ends], [delta(**ROLE), delta(content="So."), DONE])
        assert out == delta(**ROLE) + said + delta(content="So.") + DONE
    out, _ = rounds([delta(**ROLE), *ends], [delta(**ROLE), delta(content="So."), DONE])
    assert out == delta(**ROLE) + delta(content="So.") + DONE


def test_a_later_round_may_call_the_clients_tools() -> None:
    out, _ = rounds([delta(content="Look."), *RECALL, delta("tool_calls"), DONE], STREAMS["a call"])
    assert out == delta(content="Look.") + b"".join([*OWN, delta("tool_calls"), DONE])


# --- any chunking, and faults ----------------------------------------------------------------------------------------------------


@given(data=st.data())
def test_any_chunking_shows_the_same(data: st.DataObject) -> None:
    ours, theirs = b"".join(RECALL), b"".join(delta(tool_calls=[{**one, "index": 1}]) for one in (fragment(1, "read", "{", "c1"), more("}", 1)))
    odd = [delta(), b": c\r\n\r\n", b"data: x\r\r", delta("tool_calls"), DONE]
    pieces = st.sampled_from([delta(**ROLE), delta(content="a b"), ours, theirs, *odd])
    stream = b"".join(data.draw(st.lists(pieces, max_size=8, unique=True)))
    whole = filtered(stream)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=12)))
    one = RecallFilter(Shown(), may_recall=True)
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert (b"".join([one.feed(part) for part in parts]) + one.finish(), one.is_due) == (whole[0], whole[1].is_due)
    assert NAME.encode() not in whole[0]


def test_an_event_without_end_is_given_up_and_nothing_of_it_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_stream, "MAX_EVENT_BYTES", 100)
    one = RecallFilter(Shown(), may_recall=True)
    begun = delta(**ROLE) + delta(tool_calls=[fragment(0, "ctx", "", "c1")])
    assert one.feed(begun) == b""
    with pytest.raises(ValueError, match="100 bytes"):
        one.feed(b"data: " + b"x" * 100)
    assert (one.give_up(), one.is_due) == (begun + b"data: " + b"x" * 100, False)
