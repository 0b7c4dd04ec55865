"""Compactions that are worked out ahead: when, what of, and when they hold; that they keep the promises is in `test_laws`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from ctxproxy.core import foresight
from ctxproxy.core.foresight import foresee, is_due_soon, is_in_force
from ctxproxy.core.frames import parse
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.recalled import Passage, with_recalled
from ctxproxy.core.records import Foreseen, Summary
from ctxproxy.core.situation import Situation, base_transcript
from tests.core.chains import Chain, Decide, Step, request_ends
from tests.core.histories import FILLER, assistant, count, talk, user

LIMIT = 8000


def until_soon(policy: Policy, history: Sequence[Message], late: int = 0) -> tuple[Chain, int]:
    """A session up to the request after which a compaction is due soon, and how many messages that has."""
    chain = Chain(policy, late=late)
    for end in request_ends(history):
        step = chain.ask(history[:end], LIMIT)
        if is_due_soon(step.situation, step.plan):
            return chain, end
    raise AssertionError("never")


def foreseen(step: Step) -> Foreseen:
    made = foresee(step.situation, plan)
    assert made is not None
    return made


def asked(chain: Chain, history: Sequence[Message], end: int, limit: int = LIMIT) -> list[tuple[Plan, Plan]]:
    """The plans with what was foreseen and without, of the requests from `end` on up to the first that compacts."""
    plans: list[tuple[Plan, Plan]] = []
    for at in [one for one in request_ends(history) if one > end]:
        step = chain.ask(history[:at], limit)
        plans.append((step.plan, plan(replace(step.situation, foreseen=None))))
        if step.plan.compacts:
            return plans
    raise AssertionError("never compacted")


HISTORY = talk(300)


@pytest.mark.parametrize("policy", [Policy(), Policy(preset="hybrid"), Policy(preset="cowagent")])
def test_the_request_that_needs_it_sends_what_was_foreseen_with_what_came_since_behind_it(policy: Policy) -> None:
    chain, end = until_soon(policy, HISTORY, late=1000)
    chain.foreseen = made = foreseen(chain.steps[-1])
    *others, (compacting, unforeseen) = asked(chain, HISTORY, end)
    assert all(with_it.messages == without.messages for with_it, without in others), "nothing is decided sooner for it"
    assert len(others) <= foresight.REQUESTS_AHEAD
    decision = compacting.checkpoint
    assert decision is not None
    assert [entry.raw for entry in made.decision.entries] == [entry.raw for entry in decision.entries[: len(made.decision.entries)]]
    assert [entry.raw for entry in decision.entries[len(made.decision.entries) :]] == [None] * (len(decision.entries) - len(made.decision.entries))
    assert (compacting.actions, compacting.saved, compacting.wants) == (made.decision.actions, made.saved, made.decision.wants)
    assert unforeseen.compacts
    assert compacting.tokens_sent < compacting.tokens_in


def test_a_patient_preset_does_not_leave_out_more_before_it_has_to() -> None:
    chain, _ = until_soon(Policy(), HISTORY)
    made = foreseen(chain.steps[-1])
    early = chain.steps[-1].situation
    between = replace(early, foreseen=made, budget=replace(early.budget, trigger=1))
    assert not plan(between).compacts
    assert plan(replace(between, budget=replace(between.budget, summarize=1))).checkpoint is not None


def test_nothing_is_due_soon_after_a_compaction_or_where_nothing_fits() -> None:
    compacted = Chain(Policy()).ask(HISTORY[:391], LIMIT)
    assert compacted.plan.compacts
    assert not is_due_soon(compacted.situation, compacted.plan)
    alone = Chain(Policy()).ask([user(FILLER * 500)], 10)
    assert not alone.plan.fits
    assert not is_due_soon(alone.situation, replace(alone.plan, checkpoint=None))


@pytest.mark.parametrize(("filler", "due"), [(10, True), (45, False)])
def test_nothing_is_due_where_each_request_brings_too_much_for_it_to_be_in_force(filler: int, *, due: bool) -> None:
    pasted = [user(FILLER * 300), assistant("I see.")]
    steady = [message for n in range(80) for message in (user(f"q{n} " + FILLER * filler), assistant("Yes."))]
    chain = Chain(Policy())
    steps = [chain.ask([*pasted, *steady[: 2 * n + 1]], LIMIT) for n in range(len(steady) // 2)]
    until = next(n for n, step in enumerate(steps) if step.plan.compacts)
    assert any(is_due_soon(step.situation, step.plan) for step in steps[:until]) is due


def test_nothing_is_due_where_no_stage_would_act() -> None:
    full = Chain(Policy(preset="off")).ask(HISTORY[:119], LIMIT)
    assert full.plan.transcript.tokens > full.situation.budget.summarize
    assert full.plan.fits
    assert not is_due_soon(full.situation, full.plan)


def test_nothing_is_foreseen_where_nothing_would_be_left_out() -> None:
    step = Chain(Policy()).ask([user("hello")], LIMIT)
    assert foresee(step.situation, plan) is None


def test_a_decision_in_which_a_stage_failed_is_not_kept() -> None:
    chain, _ = until_soon(Policy(), HISTORY)
    last = chain.steps[-1]
    assert foresee(last.situation, lambda s: replace(plan(s), failed=("summarize",))) is None


def changed(s: Situation, change: str) -> Situation:
    """The situation after something that a decision rests on has changed."""
    tip = s.reconciled.tips[3]
    changes: dict[str, dict[str, Any]] = {
        "policy": {"policy": msgspec.structs.replace(s.policy, keep_recent_turns=9)},
        "pins": {"pins": ["Never."]},
        "budget": {"budget": replace(s.budget, limit=int(s.budget.limit * 1.1))},
        "output": {"budget": replace(s.budget, target=int(s.budget.limit * 0.4))},
        "model": {"variant": "another"},
        "forgotten": {"forgotten": frozenset({tip})},
        "cleared": {"cleared": frozenset({tip})},
        "nothing": {},
        "a little more in the system message": {"budget": replace(s.budget, limit=int(s.budget.limit * 0.97))},
    }
    return replace(s, **changes[change])


@pytest.mark.parametrize("change", ["policy", "pins", "budget", "output", "model", "forgotten", "cleared"])
def test_where_something_has_changed_it_is_worked_out_anew(change: str) -> None:
    chain, _ = until_soon(Policy(), HISTORY)
    assert not is_in_force(changed(chain.steps[-1].situation, change), foreseen(chain.steps[-1]))


@pytest.mark.parametrize("change", ["nothing", "a little more in the system message"])
def test_what_has_not_changed_is_in_force(change: str) -> None:
    chain, _ = until_soon(Policy(), HISTORY)
    assert is_in_force(changed(chain.steps[-1].situation, change), foreseen(chain.steps[-1]))


@pytest.mark.parametrize("said", [Directives(pin=True), Directives(never_summarize=True)])
def test_what_the_client_wants_kept_since_is_kept(said: Directives) -> None:
    chain, end = until_soon(Policy(), HISTORY)
    chain.foreseen = made = foreseen(chain.steps[-1])
    assert HISTORY[4].raw not in [entry.raw for entry in made.decision.entries]
    wanted = [*HISTORY[:4], HISTORY[4].with_directives(said), *HISTORY[5:]]
    compacting, _ = asked(chain, wanted, end)[-1]
    assert HISTORY[4].raw in [message.raw for message in compacting.messages]


@pytest.mark.parametrize(
    ("newest", "rules"),
    [
        ("Forget the rule about Mongolia.", []),
        ("The weather is fine.", ["You must never mention Mongolia."]),
        ("You must always write in British English.", ["You must never mention Mongolia."]),
    ],
)
def test_a_rule_that_is_taken_back_since_is_not_told_as_one_in_force(newest: str, rules: list[str]) -> None:
    history = [*HISTORY[:4], user("You must never mention Mongolia."), assistant("Right."), *talk(600)[4:]]
    chain, end = until_soon(Policy(), history)
    s = chain.situation([*history[:end], assistant("Done."), user(newest)], LIMIT)
    made = foreseen(chain.steps[-1])
    assert is_in_force(s, made) is bool(rules)
    reached = replace(s, foreseen=made, budget=replace(s.budget, trigger=1, summarize=1))
    frames = [found for message in plan(reached).messages if (found := parse(text_of(message)))]
    assert [rule for frame in frames for rule in frame.rules] == rules


def with_passages(s: Situation) -> Plan:
    """The plan, with a passage of the past for the newest message."""
    return with_recalled(s, plan(s), [Passage(("t", 0), "user", "It was blue.")], "en")


@pytest.mark.parametrize("before", [with_passages, plan])
def test_passages_of_the_past_are_left_out_again_and_do_not_keep_anything_from_being_foreseen(before: Decide) -> None:
    chain, due = Chain(Policy()), 0
    for end in request_ends(HISTORY):
        step = chain.ask(HISTORY[:end], LIMIT, decide=with_passages if due else before)
        recalled = step.plan.recalled
        if step.plan.compacts:
            break
        if recalled is not None:
            chain.checkpoints[recalled.tip, recalled.variant] = recalled
        if is_due_soon(step.situation, step.plan):
            due, chain.foreseen = due + 1, foreseen(step) if not due else chain.foreseen
    made = chain.foreseen
    assert made is not None
    assert recalled is not None
    assert due > 1, "the decision that brought the last passages is newer than what was foreseen"
    assert [name for name, _ in step.plan.actions] == [
        "recalled_out",
        *(name for name, _ in made.decision.actions if name != "recalled_out"),
        "retrieval",
    ]
    assert step.plan.checkpoint is not None
    assert [entry.raw for entry in step.plan.checkpoint.entries[: len(made.decision.entries)]] == [entry.raw for entry in made.decision.entries]
    by_hand = replace(recalled, actions=(("by_hand", 1), *recalled.actions))
    assert not is_in_force(step.situation, made, by_hand)


def test_another_branch_has_nothing_of_it() -> None:
    chain, end = until_soon(Policy(), HISTORY)
    made = foreseen(chain.steps[-1])
    other = [user("Another beginning."), assistant("Yes."), *HISTORY[:end]]
    assert not is_in_force(Chain(Policy()).situation(other, LIMIT), made)


def test_a_newer_decision_and_a_summary_that_has_come_since_go_before_it() -> None:
    chain, end = until_soon(Policy(), HISTORY, late=1000)
    made = foreseen(chain.steps[-1])
    later = chain.situation(HISTORY[: end + 2], LIMIT)
    assert is_in_force(later, made)
    assert not is_in_force(later, made, replace(made.decision, tip=later.reconciled.tips[-1]))
    assert made.decision.wants
    told = Summary(made.decision.wants, "told", "llm", "m", 1, 1, 0, 0, 0)
    assert not is_in_force(replace(later, summaries=[told]), made)


def test_a_turn_that_takes_much_of_the_budget_is_not_put_behind_it() -> None:
    chain, end = until_soon(Policy(), HISTORY)
    chain.foreseen = made = foreseen(chain.steps[-1])
    long = [*HISTORY[:end], assistant(FILLER * 40), user("What is next?")]
    assert count(long[-2]) > foresight.NEWER_SHARE * LIMIT
    step = chain.ask(long, LIMIT)
    assert step.plan.compacts
    assert not is_in_force(step.situation, made)


def test_what_would_be_no_shorter_is_not_taken() -> None:
    chain, end = until_soon(Policy(), HISTORY)
    s = replace(chain.situation(HISTORY[: end + 2], LIMIT), foreseen=foreseen(chain.steps[-1]))
    over = replace(s, budget=replace(s.budget, summarize=0))
    base = base_transcript(s)
    taken = foresight.come_true(over, base, base, None)
    assert taken is not None
    assert foresight.come_true(over, base, taken.transcript, None) is None
