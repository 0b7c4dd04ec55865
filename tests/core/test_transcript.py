"""Groups, turns, what is protected, and how edits are applied."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ctxproxy.core.messages import Message, make, text_of
from ctxproxy.core.records import LeftOut
from ctxproxy.core.transcript import Edit, Entry, Fold, Replace, Span, Transcript, apply, joined, opening
from ctxproxy.errors import InvalidEdit
from tests.core.histories import assistant, call, count, histories, result, tool_call, transcript, user

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


BASE = transcript([user("old"), assistant("answer"), user("mid"), *PAIR, assistant("done"), user("now")], pinned=[1])


def replaced(at: int, message: Message) -> Replace:
    return Replace(at, message)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (Fold(Span(3, 4)), "parts a group"),
        (Fold(Span(4, 5)), "parts a group"),
        (Fold(Span(2, 4)), "parts a group"),
        (Fold(Span(3, 3)), "parts a group"),
        (Fold(Span(0, 2)), "drops a protected entry"),
        (Fold(Span(6, 7)), "drops a protected entry"),
        (Fold(Span(5, 9)), "out of range"),
        (replaced(1, assistant("x")), "edits the protected entry"),
        (replaced(6, user("x")), "edits the protected entry"),
        (replaced(2, assistant("x")), "changes role"),
        (replaced(4, result("other", "x")), "changes role or call ids"),
        (replaced(3, call("other")), "changes role or call ids"),
    ],
)
def test_an_edit_that_breaks_a_rule_is_refused(edit: Edit, why: str) -> None:
    with pytest.raises(InvalidEdit, match=why):
        apply(BASE, [edit], "test", count)


def test_two_edits_of_one_entry_are_refused() -> None:
    with pytest.raises(InvalidEdit, match="twice"):
        apply(BASE, [Fold(Span(2, 5)), replaced(2, user("x"))], "test", count)


def test_edits_are_applied_at_once_in_the_indexes_of_the_given_transcript() -> None:
    after = apply(BASE, [replaced(4, result("a", "short")), Fold(Span(0, 1), (user("note"), assistant("ok"))), Fold(Span(5, 6))], "test", count)
    assert [text_of(e.message) for e in after.entries] == ["note", "ok", "answer", "mid", "", "short", "now"]
    assert [e.origin for e in after.entries] == ["inserted", "inserted", "original", "original", "original", "edited", "original"]
    assert [e.covers for e in after.entries[:2]] == [(BASE.entries[0].tip,), ()]
    assert after.entries[5].tip == BASE.entries[4].tip
    assert after.entries[5].stage == "test"
    assert all(e.tokens == count(e.message) for e in after.entries)
    assert [text_of(e.message) for e in BASE.entries] == ["old", "answer", "mid", "", "1", "done", "now"]


def test_what_folds_over_a_fold_covers_what_that_covered() -> None:
    once = apply(BASE, [Fold(Span(2, 5), (user("note"),))], "test", count)
    twice = apply(once, [Fold(Span(2, 4), (user("n"),))], "test", count)
    assert twice.entries[2].covers == tuple(e.tip for e in BASE.entries[2:6])
    edited = apply(once, [replaced(2, user("n"))], "test", count)
    assert edited.entries[2].origin == "inserted"


def test_a_fold_may_keep_its_last_message_with_something_in_front_of_it() -> None:
    base = transcript([user("old"), assistant("answer"), user("mid"), assistant("done"), user("now")])
    once = apply(base, [Fold(Span(1, 3), (user("told: mid"),), "oldest", keeps_last=True)], "trim", count)
    kept = once.entries[1]
    assert (text_of(kept.message), kept.tip, kept.origin, kept.covers, kept.stage) == ("told: mid", base.entries[2].tip, "edited", (), "trim")
    assert once.left == (LeftOut((base.entries[1].tip,), "trim", "oldest"),)
    between = apply(base, [Fold(Span(0, 3), (user("a"), assistant("b"), user("told: mid")), keeps_last=True)], "trim", count)
    assert [e.origin for e in between.entries[:3]] == ["inserted", "inserted", "edited"]
    assert between.entries[0].covers == tuple(e.tip for e in base.entries[:2])
    with pytest.raises(InvalidEdit, match="role"):
        apply(base, [Fold(Span(1, 3), (assistant("x"),), keeps_last=True)], "trim", count)


def test_what_leaves_no_entry_behind_is_remembered_with_stage_and_reason() -> None:
    once = apply(BASE, [Fold(Span(2, 5), (), "too old")], "drop", count)
    assert once.left == (LeftOut(tuple(e.tip for e in BASE.entries[2:5]), "drop", "too old"),)
    framed = apply(BASE, [Fold(Span(2, 5), (user("note"),), "summary")], "sum", count)
    assert (framed.left, framed.entries[2].reason) == ((), "summary")
    twice = apply(framed, [Fold(Span(0, 1), (), "too old"), Fold(Span(2, 3), (), "too old")], "drop", count)
    assert twice.left == (LeftOut(tuple(BASE.entries[at].tip for at in (0, 2, 3, 4)), "drop", "too old"),)


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
