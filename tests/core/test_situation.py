"""What follows from a situation at once: the history as a transcript, the stages' context."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxproxy.core.messages import Directives, Message
from ctxproxy.core.policy import Policy
from ctxproxy.core.situation import Situation, base_transcript, context_of, gone_tips, recent_turns
from tests.core.chains import Chain
from tests.core.histories import count, talk, user


def situation(messages: list[Message], *, limit: int = 1000, policy: Policy | None = None) -> Situation:
    return Chain(policy or Policy()).situation(messages, limit)


def test_the_base_is_the_history_with_its_pins_and_counts() -> None:
    messages = [*talk(2), user("kept").with_directives(Directives(pin=True))]
    base = base_transcript(situation(messages))
    assert [entry.message for entry in base.entries] == messages
    assert [entry.pinned for entry in base.entries] == [False] * 5 + [True]
    assert base.tokens == sum(map(count, messages))


def test_what_is_forgotten_or_expired_is_neither_in_the_base_nor_among_the_originals() -> None:
    messages = [user("for one turn").with_directives(Directives(expire_after_turns=1)), *talk(2)[1:]]
    s = situation(messages)
    forgotten = replace(s, forgotten=frozenset({s.reconciled.tips[2]}))
    assert gone_tips(forgotten) == {s.reconciled.tips[0], s.reconciled.tips[2]}
    assert {entry.tip for entry in base_transcript(forgotten).entries}.isdisjoint(gone_tips(forgotten))
    assert set(context_of(forgotten, base_transcript(forgotten)).originals) == set(s.reconciled.tips) - gone_tips(forgotten)


def test_the_context_keeps_room_for_pinned_texts() -> None:
    s = situation(talk(3))
    base = base_transcript(s)
    free, held = context_of(s, base), context_of(replace(s, pins=("Never forget this.",)), base)
    assert held.limit < free.limit
    assert free.limit - held.limit == free.target - held.target


@pytest.mark.parametrize(("newest", "above"), [("short", False), ("long " * 150, True)])
def test_the_target_is_not_given_up_for_what_must_stay(newest: str, above: bool) -> None:
    s = situation([*talk(2), user(newest)], limit=400)
    assert (context_of(s, base_transcript(s)).target > 1.3 * s.budget.target) is above


def test_a_summary_takes_no_more_than_a_quarter_of_a_small_budget() -> None:
    s = replace(situation(talk(2), limit=100), summary_max_tokens=1000)
    assert context_of(s, base_transcript(s)).summary_max_tokens == 25


def test_what_was_cleared_is_left_out_beside_what_was_forgotten_and_told_apart() -> None:
    s = situation(talk(4))
    tips = s.reconciled.tips
    gone = replace(s, cleared=frozenset(tips[:4]), forgotten=frozenset({tips[0], tips[4]}))
    base = base_transcript(gone)
    assert gone_tips(gone) == set(tips[:5])
    assert [entry.tip for entry in base.entries if entry.tip] == list(tips[5:])
    assert {left.stage: set(left.tips) for left in base.left} == {"context_clear": set(tips[:4]), "forget": {tips[4]}}
    assert set(context_of(gone, base).originals) == set(tips[5:])


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        (["go on"] * 8, 3),
        ([f"Move /srv/app{n}/a.yaml to db-{n}.example.net by 2026-11-{n + 10}, it costs $4,{n}00." + " word" * n * n for n in range(9)], 5),
    ],
)
def test_003_41_the_more_complex_a_conversation_is_the_more_turns_are_left_alone(said: list[str], turns: int) -> None:
    s = situation([user(text) for text in said], limit=9000, policy=Policy(keep_recent_turns="auto"))
    assert recent_turns(s) == context_of(s, base_transcript(s)).keep_recent_turns == turns
    assert recent_turns(situation([user("x")], policy=Policy(keep_recent_turns=9))) == 9
