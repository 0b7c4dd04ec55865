"""Groups, turns, and what is protected."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ctxproxy.core.messages import Message, make
from ctxproxy.core.records import LeftOut
from ctxproxy.core.transcript import Entry, Span, Transcript, joined, opening
from tests.core.histories import assistant, call, histories, result, tool_call, transcript, user

SYSTEM = make({"role": "system", "content": "s"})
PAIR = [call("a"), result("a", "1")]
TWO = [assistant(None, tool_calls=[tool_call("a"), tool_call("b")]), result("b", "2"), result("a", "1")]
OLD_STYLE = [assistant(None, function_call={"name": "f", "arguments": "{}"}), make({"role": "function", "name": "f", "content": "1"})]
LATE = [call("a"), user("still waiting?"), result("a", "1")]


@pytest.mark.parametrize(
    ("messages", "groups"),
    [
        ([], []),
        ([user("q")], [(0, 1)]),
        ([user("q"), *PAIR, assistant("done")], [(0, 1), (1, 3), (3, 4)]),
        ([*TWO, *TWO], [(0, 3), (3, 6)]),
        (OLD_STYLE, [(0, 2)]),
        ([*LATE, user("q")], [(0, 3), (3, 4)]),
        ([call("a"), user("q"), assistant("x")], [(0, 1), (1, 2), (2, 3)]),
        ([call("a"), user("q")], [(0, 1), (1, 2)]),
        ([call("a"), result(["unhashable"], "1")], [(0, 2)]),
        ([*PAIR, result("a", "again")], [(0, 3)]),
        ([result("lost", "1"), user("q")], [(0, 1), (1, 2)]),
    ],
)
def test_a_group_is_an_assistant_message_with_all_its_results(messages: list[Message], groups: list[tuple[int, int]]) -> None:
    assert list(transcript(messages).groups) == groups


@pytest.mark.parametrize(
    ("messages", "turns"),
    [
        ([], []),
        ([user("q"), *PAIR, assistant("a"), user("r")], [(0, 4), (4, 5)]),
        ([assistant("hello"), user("q")], [(0, 1), (1, 2)]),
        ([assistant("hello")], [(0, 1)]),
        ([user("q"), user("r")], [(0, 1), (1, 2)]),
        ([user("q"), *LATE], [(0, 4)]),
    ],
)
def test_a_turn_begins_at_a_user_message_and_holds_whole_groups(messages: list[Message], turns: list[tuple[int, int]]) -> None:
    assert list(transcript(messages).turns) == turns


def test_an_inserted_user_message_begins_a_turn_only_at_the_front() -> None:
    ours = Entry(user("background"), 5, origin="inserted")
    theirs = Entry(user("q"), 5)
    assert Transcript((ours, theirs, ours)).turns == (Span(0, 1), Span(1, 3))


@pytest.mark.parametrize(
    ("messages", "newest", "last_user"),
    [
        ([], (0, 0), -1),
        ([user("q")], (0, 1), 0),
        ([user("q"), *PAIR], (1, 3), 0),
        ([user("q"), assistant("{")], (0, 2), 0),
        ([user("q"), *PAIR, assistant("{")], (1, 4), 0),
        ([assistant("{")], (0, 1), -1),
        ([user("q"), call("a")], (1, 2), 0),
    ],
)
def test_the_newest_is_the_last_group_with_a_prefill_and_its_request(messages: list[Message], newest: tuple[int, int], last_user: int) -> None:
    it = transcript(messages)
    assert (it.newest, it.last_user) == (newest, last_user)


@pytest.mark.parametrize(
    ("messages", "role"),
    [([], ""), ([SYSTEM], ""), ([user("q"), SYSTEM], "user"), ([SYSTEM, user("q")], "user"), ([SYSTEM, assistant("a"), user("q")], "assistant")],
)
def test_a_conversation_opens_with_its_first_message_that_is_no_system_message(messages: list[Message], role: str) -> None:
    assert opening(transcript(messages).entries) == role


def test_pins_the_last_user_message_and_the_newest_group_are_protected() -> None:
    it = transcript([user("q"), assistant("a"), user("r"), *PAIR, *PAIR], pinned=[1])
    assert it.protected == {1, 2, 5, 6}
    assert it.untouchable == {1, 2}
    assert transcript([assistant("a")]).protected == {0}
    assert transcript([assistant("a")]).untouchable == frozenset()


def test_tokens_are_the_sum_over_the_entries() -> None:
    assert transcript([user("x" * 40), assistant("y")]).tokens == 14 + 5


def test_what_one_stage_left_out_for_one_reason_is_told_once() -> None:
    told = joined([LeftOut(("a", "b"), "drop"), LeftOut(("c",), "drop", "why"), LeftOut((), "clear"), LeftOut(("b", "d"), "drop")])
    assert told == (LeftOut(("a", "b", "d"), "drop"), LeftOut(("c",), "drop", "why"))


@settings(max_examples=60, deadline=None)
@given(histories())
def test_groups_and_turns_cover_all_without_gaps(messages: list[Message]) -> None:
    it = transcript(messages)
    for spans in (it.groups, it.turns):
        assert [at for span in spans for at in range(*span)] == list(range(len(messages)))
    assert {turn.start for turn in it.turns} <= {group.start for group in it.groups}
