"""A plan as a value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxproxy.core.plan import plan
from ctxproxy.core.planned import as_decided
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import LeftOut
from ctxproxy.core.situation import base_transcript
from ctxproxy.core.transcript import Transcript
from tests.core.chains import Chain
from tests.core.histories import talk


@pytest.mark.parametrize(
    ("actions", "compacts"),
    [
        ((("summarize", 1),), True),
        ((("pins", 1),), False),
        ((("retrieval", 3),), False),
        ((("recalled_out", 1),), False),
        ((("recalled_out", 1), ("drop_oldest", 2)), True),
        ((), False),
    ],
)
def test_a_plan_compacts_where_a_new_decision_shortens_it(actions: tuple[tuple[str, int], ...], *, compacts: bool) -> None:
    made = Chain(Policy(preset="trim")).ask(talk(30), 300).plan
    assert made.checkpoint is not None
    assert replace(made, actions=actions).compacts is compacts
    assert not replace(made, actions=actions, checkpoint=None).compacts


def test_a_plan_replays_where_it_sends_what_was_decided_before_and_decides_nothing() -> None:
    chain, history = Chain(Policy(preset="trim")), talk(30)
    decided = chain.ask(history, 300).plan
    again = chain.ask(history, 300).plan
    assert (decided.replays, again.replays) == (False, True)
    untouched = replace(Chain(Policy()).ask(history, 100_000).plan, changed=True)
    assert not untouched.replays, "only what the session began with was added"
    shorter = Transcript(untouched.transcript.entries[1:], (LeftOut(("ab" * 16,), "drop_oldest", "oldest"),))
    assert replace(untouched, transcript=shorter).replays


def test_a_plan_fits_up_to_the_limit() -> None:
    s = Chain(Policy()).situation(talk(3), 1000)
    made = plan(s)
    tokens = made.transcript.tokens
    assert replace(made, budget=replace(made.budget, limit=tokens)).fits
    assert not replace(made, budget=replace(made.budget, limit=tokens - 1)).fits


def test_a_history_stands_as_the_newest_decision_has_it() -> None:
    chain = Chain(Policy(preset="trim"))
    s = chain.situation(talk(30), 300)
    base = base_transcript(s)
    assert as_decided(s, base) is base
    made = chain.ask(talk(30), 300).plan
    after = chain.situation(talk(30), 300)
    assert [entry.message for entry in as_decided(after, base_transcript(after)).entries] == [entry.message for entry in made.transcript.entries]
