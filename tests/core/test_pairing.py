"""Mending pairs and alternation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.core.markers import acknowledgement as acknowledged
from ctxproxy.core.markers import stray, unanswered
from ctxproxy.core.messages import Message, make
from ctxproxy.core.pairing import acknowledgement, alternates, in_turn, repair
from ctxproxy.core.validity import violations
from tests.core.histories import assistant, call, count, histories, result, tool_call, transcript, user

SYSTEM = make({"role": "system", "content": "s"})
A, B = user("a"), user("b")
CALL, RESULT = call("c"), result("c", "12 passed")
BOTH = assistant(None, tool_calls=[tool_call("c"), tool_call("d")])
NONE = result("d", unanswered("en"))

ALONE = [
    ([A, CALL, RESULT, assistant("x"), B], "in order"),
    ([A, BOTH, result("d", "2"), RESULT], "results in another order"),
    ([A, CALL, RESULT, CALL, result("c", "again")], "an id used again"),
    ([A, B, assistant("prefill")], "no calls at all"),
]
MENDED = [
    ([A, CALL, B, RESULT, A], [A, CALL, RESULT, B, A], "a late result moves up"),
    ([A, BOTH, RESULT, B], [A, BOTH, RESULT, NONE, B], "a missing result is noted"),
    ([A, BOTH, B, result("d", "2"), RESULT], [A, BOTH, result("d", "2"), RESULT, B], "late ones keep their order"),
    ([A, RESULT, B], [A, B], "an orphan goes"),
    ([A, CALL, RESULT, RESULT, B], [A, CALL, RESULT, B], "a second result of one call goes"),
    ([RESULT, A, CALL, RESULT], [A, CALL, RESULT], "a result before its call goes"),
    ([A, CALL, B, CALL, RESULT], [A, CALL, result("c", unanswered("en")), B, CALL, RESULT], "a result belongs to the last call of its id"),
    ([A, CALL], [A, CALL, result("c", unanswered("en"))], "a call at the end"),
    ([RESULT], [user(stray("12 passed", "en"))], "nothing but an orphan"),
    ([], [], "nothing at all"),
]


@pytest.mark.parametrize(("messages", "why"), ALONE, ids=[row[-1] for row in ALONE])
def test_a_list_in_order_comes_back_the_same_objects(messages: list[Message], why: str) -> None:
    assert all(new is old for new, old in zip(repair(messages), messages, strict=True)), why


@pytest.mark.parametrize(("messages", "mended", "why"), MENDED, ids=[row[-1] for row in MENDED])
def test_a_list_out_of_order_is_mended(messages: list[Message], mended: list[Message], why: str) -> None:
    assert [m.raw for m in repair(messages)] == [m.raw for m in mended], why


@settings(max_examples=80, deadline=None)
@given(histories(), st.randoms(use_true_random=False), st.integers(0, 3))
def test_any_list_is_valid_after_repair_and_repair_is_idempotent(messages: list[Message], random: object, gone: int) -> None:
    messages = [m for m in messages if m.role != "system"]
    random.shuffle(messages)  # type: ignore[attr-defined]
    mended = repair(messages[gone:])
    assert not mended or violations(mended) == []
    assert repair(mended) == mended
    spoken = [m.raw for m in messages[gone:] if m.role != "tool"]
    assert not spoken or [m.raw for m in mended if m.role != "tool"] == spoken


@pytest.mark.parametrize(
    ("messages", "whether"),
    [
        ([SYSTEM, A, assistant("x"), B], True),
        ([A, SYSTEM, B], False),
        ([A, CALL, RESULT, assistant("x"), B], True),
        ([A, assistant("x"), CALL, RESULT], False),
        ([], True),
    ],
)
def test_alternation_is_that_of_user_and_assistant(messages: list[Message], whether: bool) -> None:
    assert alternates(messages) is whether


X, Y = assistant("x"), assistant("y")
WORD, ANSWER = user(acknowledged("en")), acknowledgement("en")


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ([A, X, B], [A, X, B], [A, X, B]),
        ([A, X, B], [A, B], [A, ANSWER, B]),
        ([A, X, B, Y], [X, Y], [X, WORD, Y]),
        ([A, X, B, Y, A], [A, B, A], [A, ANSWER, B, ANSWER, A]),
        ([A, CALL, RESULT, X, B, Y], [A, SYSTEM, B, Y], [A, SYSTEM, ANSWER, B, Y]),
        ([A, B, X], [A, B], [A, B]),
    ],
    ids=["in turn", "users meet", "assistants meet", "twice", "across a system message", "they met before"],
)
def test_where_two_messages_of_a_role_meet_a_word_of_ours_stands_between(before: list[Message], after: list[Message], outcome: list[Message]) -> None:
    told = in_turn(transcript(before), transcript(after), "stage", count, "en")
    assert [entry.message.raw for entry in told.entries] == [m.raw for m in outcome]
    ours = [entry for entry in told.entries if entry.origin == "inserted"]
    assert len(ours) == len(outcome) - len(after)
    assert all((entry.stage, entry.tokens, entry.tip) == ("stage", count(entry.message), "") for entry in ours)
