"""The driver of the stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.pipeline import Outcome, is_due, run
from ctxproxy.core.stages.base import Context, Stage
from ctxproxy.core.transcript import Edit, Fold, Replace, Span, Transcript
from tests.core.histories import assistant, call, context, count, result, talk, transcript, user

BASE = transcript(talk(4, 6))
"""Entries 0 to 8: four turns and a question; 64 tokens each but the last."""


class Scripted(Stage, frozen=True):
    """Proposes what a test tells it, and notes how many edits were taken from it."""

    edits: list[Edit | Exception]
    taken: list[Edit]

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        for edit in self.edits:
            if isinstance(edit, Exception):
                raise edit
            self.taken.append(edit)
            yield edit


Scripted.name = "scripted"


def scripted(*edits: Edit | Exception) -> Scripted:
    return Scripted(list(edits), [])


def shorter(at: int, text: str = "s") -> Replace:
    message = BASE.entries[at].message
    return Replace(at, (user if message.role == "user" else assistant)(text))


def words(outcome: Outcome) -> list[str]:
    return [text_of(entry.message)[:2] for entry in outcome.transcript.entries]


def test_nothing_is_asked_of_a_stage_when_the_target_is_met() -> None:
    stage = scripted(shorter(0))
    outcome = run(BASE, [stage], context(BASE.tokens))
    assert outcome == Outcome(BASE)
    assert stage.taken == []


def test_edits_are_taken_one_by_one_until_the_target_is_met() -> None:
    stage = scripted(shorter(0), shorter(1), shorter(2))
    outcome = run(BASE, [stage, scripted(shorter(3))], context(BASE.tokens - 100))
    assert stage.taken == [shorter(0), shorter(1)]
    assert (outcome.actions, outcome.saved) == ((("scripted", 2),), (("scripted", BASE.tokens - outcome.transcript.tokens),))
    assert outcome.transcript.tokens <= BASE.tokens - 100


class Thorough(Scripted, frozen=True):
    thorough = True


Thorough.name = "thorough"


def test_all_edits_of_a_thorough_stage_are_taken_but_only_over_the_target() -> None:
    edits: list[Edit | Exception] = [shorter(0), shorter(1), shorter(2)]
    assert run(BASE, [Thorough(edits, [])], context(BASE.tokens - 1)).actions == (("thorough", 3),)
    assert run(BASE, [Thorough(edits, [])], context(BASE.tokens)).transcript is BASE


def test_an_edit_that_gains_nothing_is_dropped() -> None:
    outcome = run(BASE, [scripted(shorter(0, "longer " * 99), Fold(Span(2, 4), (user("x " * 500),)))], context())
    assert outcome == Outcome(BASE)


def test_the_next_stage_sees_what_the_one_before_made() -> None:
    outcome = run(BASE, [scripted(Fold(Span(0, 2))), scripted(Fold(Span(0, 2)))], context())
    assert words(outcome) == ["q2", "a2", "q3", "a3", "la"]
    assert outcome.actions == (("scripted", 1), ("scripted", 1))


def test_a_harder_edit_takes_the_place_of_a_milder_one() -> None:
    mild, hard = shorter(1, "x" * 100), shorter(1)
    outcome = run(BASE, [scripted(mild, hard, mild)], context())
    assert outcome.transcript.entries[1].message == hard.message
    assert outcome.actions == (("scripted", 1),)


def test_a_fold_takes_the_place_of_the_edits_inside_it() -> None:
    outcome = run(BASE, [scripted(shorter(0), shorter(1), Fold(Span(0, 1)), Fold(Span(0, 4)), Fold(Span(2, 4)))], context())
    assert words(outcome) == ["q2", "a2", "q3", "a3", "la"]
    assert outcome.actions == (("scripted", 1),)


def test_roles_stay_in_turn_whatever_a_stage_takes_out() -> None:
    outcome = run(BASE, [scripted(Fold(Span(1, 2)), Fold(Span(5, 6)))], context())
    assert [entry.message.role for entry in outcome.transcript.entries] == [m.role for m in talk(4)]
    assert words(outcome)[::2] == ["q0", "q1", "q2", "q3", "la"]
    assert [at for at, entry in enumerate(outcome.transcript.entries) if entry.origin == "inserted"] == [1, 5]
    assert outcome.saved == (("scripted", BASE.tokens - outcome.transcript.tokens),)


def test_what_is_longer_with_the_words_that_keep_roles_in_turn_is_not_taken() -> None:
    base = transcript([user("a"), assistant("ok"), user("b"), assistant("ok"), user("c")])
    assert run(base, [scripted(Fold(Span(1, 2)), Fold(Span(3, 4)))], context()) == Outcome(base)


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([shorter(0), ValueError("a fault of the stage")], "it raises"),
        ([shorter(0), Fold(Span(7, 9))], "it drops the last user message"),
        ([shorter(0), Fold(Span(0, 20))], "it is out of range"),
        ([shorter(0), Fold(Span(2, 2))], "it edits nothing"),
        ([Fold(Span(0, 2)), Fold(Span(1, 3))], "two edits overlap in part"),
        ([shorter(8, "")], "it edits the last user message"),
    ],
)
def test_a_stage_that_fails_is_undone_and_named_and_the_others_go_on(edits: list[Edit | Exception], why: str) -> None:
    outcome = run(BASE, [scripted(*edits), scripted(shorter(4))], context())
    assert outcome.failed == ("scripted",), why
    assert outcome.actions == (("scripted", 1),)
    assert words(outcome) == ["q0", "a0", "q1", "a1", "s", "a2", "q3", "a3", "la"]


def test_a_group_is_never_parted() -> None:
    base = transcript([user("q"), call("c", path="x" * 99), result("c", "y" * 99), *talk(1)])
    assert run(base, [scripted(Fold(Span(1, 2)))], context()).failed == ("scripted",)


def test_the_summary_that_a_stand_in_waits_for_is_told() -> None:
    outcome = run(BASE, [scripted(Fold(Span(0, 2), wants="cafe")), scripted(Fold(Span(0, 2)))], context())
    assert outcome.wants == "cafe"
    assert run(BASE, [scripted(Fold(Span(0, 2), (user("x " * 500),), wants="cafe"))], context()).wants == ""


def test_no_message_is_counted_twice() -> None:
    seen: list[bytes] = []

    def counting(message: Message) -> int:
        seen.append(message.raw)
        return count(message)

    counted: Callable[[Message], int] = counting
    run(BASE, [scripted(shorter(0), shorter(2), shorter(4, "other"))], replace(context(), count=counted))
    assert len(seen) == len(set(seen)) == 2


class Ruled(Scripted, frozen=True):
    def due(self, transcript: Transcript, context: Context) -> bool:
        if context.max_turns is None:
            raise KeyError("no limit")
        return len(transcript.turns) > context.max_turns


def test_a_stage_that_fails_when_asked_whether_it_is_due_is_not_and_is_named_when_it_would_act() -> None:
    stage, told = Ruled([], []), context()
    assert is_due(stage, transcript(talk(3)), replace(told, max_turns=2))
    assert not is_due(stage, transcript(talk(1)), replace(told, max_turns=2))
    assert not is_due(stage, transcript(talk(2)), told)
    assert run(transcript(talk(2)), [stage], told).failed == (stage.name,)
