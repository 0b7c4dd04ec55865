"""What is restored of a conversation after a restart, and what is left behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ctxproxy.core.carryover import Restore
from ctxproxy.core.forgetting import RESTORED
from ctxproxy.core.messages import ROOT, Directives, Message, chain, identity, text_of
from ctxproxy.core.plan import plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.restoring import Depth, left_behind, turns_of
from ctxproxy.core.validity import violations
from tests.core.chains import Chain
from tests.core.histories import assistant, call, result, user


def tips_of(history: Sequence[Message]) -> list[str]:
    return chain(ROOT, map(identity, history))


def turn(n: int) -> list[Message]:
    """A turn that called a tool twice before it answered."""
    return [user(f"q{n}"), call(f"{n}a"), result(f"{n}a", "x"), assistant(f"thinking {n}"), call(f"{n}b"), result(f"{n}b", "y"), assistant(f"a{n}")]


def left(history: Sequence[Message], turns: int, at: int = -1) -> list[str]:
    """The texts of what stays of a history that was restored at one of its messages."""
    tips = tips_of(history)
    gone = left_behind(history, tips, Restore(tips[at], turns))
    return [text_of(m) or m.role for m, tip in zip(history, tips, strict=True) if tip not in gone]


@pytest.mark.parametrize(
    ("depth", "max_turns", "turns"),
    [("all", 20, None), ("auto", 20, 3), ("auto", 30, 5), ("auto", 10, 3), ("auto", None, 3), (1, 20, 1), (50, None, 50)],
)
def test_000_28_how_many_turns_are_restored(depth: Depth, max_turns: int | None, turns: int | None) -> None:
    assert turns_of(depth, max_turns) == turns


def test_000_29_only_the_users_words_and_the_final_answers_of_the_newest_turns_are_restored() -> None:
    history = [message for n in range(10) for message in turn(n)]
    assert left(history, 3) == ["q7", "a7", "q8", "a8", "q9", "a9"]
    assert left(history[:14], 3) == ["q0", "a0", "q1", "a1"]


def test_what_came_after_the_restart_is_whole() -> None:
    history = [message for n in range(5) for message in turn(n)]
    assert left(history, 1, at=27) == ["q3", "a3", *(text_of(m) or m.role for m in turn(4))]


def test_a_turn_that_is_not_answered_yet_stays_whole_and_an_earlier_one_keeps_its_question() -> None:
    open_turn = [user("q2"), call("c"), result("c", "z")]
    assert left([*turn(0), user("q1"), call("b"), result("b", "y"), *open_turn], 2) == ["q1", "q2", "assistant", "z"]
    assert left([*turn(0), *open_turn[:2]], 1) == ["q2", "assistant"]
    assert left([*turn(0), user("q1")], 1) == ["q1"]


def test_pinned_messages_stay_and_a_history_without_a_user_is_left_as_it_is() -> None:
    assert left([user("keep", Directives(pin=True)), assistant("a"), *turn(1)], 1) == ["keep", "q1", "a1"]
    assert left([assistant("hello")], 1) == ["hello"]
    history = turn(0)
    assert left_behind(history, tips_of(history), None) == left_behind(history, tips_of(history), Restore("ff", 1)) == frozenset()


def test_the_prompt_after_a_restart_is_valid_and_tells_what_was_left_behind() -> None:
    history = [message for n in range(6) for message in turn(n)] + [user("next")]
    situation = Chain(Policy()).situation(history, 4000)
    tips = situation.reconciled.tips
    made = plan(replace(situation, restored=left_behind(history, tips, Restore(tips[-2], 2))))
    assert [text_of(m) for m in made.messages] == ["q4", "a4", "q5", "a5", "next"]
    assert violations(made.messages) == []
    assert made.changed
    assert [one.stage for one in made.transcript.left] == [RESTORED]
    cleared = replace(situation, restored=left_behind(history, tips, Restore(tips[-2], 2)), cleared=frozenset(tips[:-1]))
    assert [text_of(m) for m in plan(cleared).messages] == ["next"]
