"""What is sent after an overflow, case by case; what holds for all of them is in `test_laws`."""

from __future__ import annotations

from dataclasses import replace

from ctxproxy.core.budget import tightened
from ctxproxy.core.checkpoints import RESCUE
from ctxproxy.core.messages import Directives, make, text_of
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy, Recovery
from ctxproxy.core.rescue_plans import cleared, replanned, shortened, trimmed
from ctxproxy.core.situation import Situation
from tests.core.chains import Chain
from tests.core.histories import assistant, long_turn, talk, user

SYSTEM = make({"role": "system", "content": "be short"})


def situation(history_turns: int = 30, limit: int = 100_000) -> Situation:
    return Chain(Policy(), [SYSTEM]).situation(talk(history_turns), limit)


def tight(s: Situation, history_tokens: int) -> Plan:
    return replanned(s, tightened(s.budget, s.budget.fixed + history_tokens))


def test_a_tighter_budget_is_kept_to_and_the_decision_is_marked_as_a_rescue() -> None:
    s = situation()
    made = tight(s, 900)
    assert made.transcript.tokens <= 900
    assert made.actions[0] == (RESCUE, 1)
    assert made.checkpoint is not None
    assert made.checkpoint.actions == made.actions


def test_a_budget_in_which_all_fits_needs_no_decision() -> None:
    s = situation()
    assert tight(s, 90_000) == plan(replace(s, budget=tightened(s.budget, s.budget.fixed + 90_000)))
    assert tight(s, 90_000).checkpoint is None


def test_a_rescue_stands_although_the_believed_budget_has_room_for_all() -> None:
    chain, history = Chain(Policy(), [SYSTEM]), talk(30)
    rescued = chain.ask(history, 100_000, decide=lambda s: tight(s, 900))
    after = chain.ask([*history, assistant("well"), user("next")], 100_000)
    assert after.sent[: len(rescued.sent)] == rescued.sent
    assert after.plan.checkpoint is None


def test_trimming_summarizes_and_cuts_long_results_of_the_current_turn_too() -> None:
    s = Chain(Policy(), [SYSTEM]).situation([*talk(10)[:-1], *long_turn(3, 4000)], 100_000)
    made = trimmed(s, s.budget, Recovery(tool_result_chars=500, user_text_chars=500, max_turns=2))
    assert made.actions[0] == (RESCUE, 1)
    assert "aggressive_trim" in [name for name, _ in trimmed(s, tightened(s.budget, 600), Recovery(tool_result_chars=500)).actions]
    assert made.checkpoint is not None
    small = trimmed(s, tightened(s.budget, s.budget.fixed + 1500), Recovery(tool_result_chars=500, user_text_chars=500, max_turns=2))
    assert small.transcript.tokens <= 1500


def test_clearing_keeps_system_pins_and_the_last_user_message() -> None:
    pinned = user("Pinned words.", Directives(pin=True))
    chain = Chain(Policy(), [SYSTEM], pins=["q7 plain filler"])
    s = chain.situation([*talk(5)[:-1], pinned, *talk(30)[1:]], 100_000)
    made = cleared(s)
    texts = [text_of(message) for message in made.messages]
    assert texts[0] == "be short"
    assert "q7 plain filler" in texts[1]
    assert texts[-1] == "last question?"
    assert "Pinned words." in texts
    assert len(texts) <= 7
    assert made.checkpoint is not None
    assert made.checkpoint.actions[0] == (RESCUE, 1)


def lasting(last: str, limit: int = 100_000, **fields: object) -> Situation:
    return replace(Chain(Policy(), [SYSTEM]).situation([*talk(3)[:-1], user(last)], limit), **fields)  # type: ignore[arg-type]


def test_the_last_user_message_is_cut_to_the_budget() -> None:
    s = lasting("line of a pasted log\n" * 2000)
    made = shortened(s, tightened(s.budget, s.budget.fixed + 500))
    assert made.transcript.tokens <= 500
    assert made.transcript.entries[-1].stage == "shorten_last_user"
    assert made.actions == ((RESCUE, 1), ("shorten_last_user", 1))
    assert made.checkpoint is not None


def test_the_only_message_of_a_history_is_cut_too() -> None:
    s = Chain(Policy(), [SYSTEM]).situation([user("line of a pasted log\n" * 2000)], 100_000)
    made = shortened(s, tightened(s.budget, s.budget.fixed + 500))
    assert made.transcript.tokens <= 500
    assert made.actions == ((RESCUE, 1), ("shorten_last_user", 1))


def test_a_pin_in_the_cut_message_is_put_back() -> None:
    pin = "Ticket ABC-77 is the one that counts."
    text = "line of a pasted log\n" * 1000 + pin + "\nline of a pasted log" * 1000
    s = lasting(text, pins=[pin])
    made = shortened(s, tightened(s.budget, s.budget.fixed + 500))
    assert made.transcript.tokens <= 500
    assert any(pin in text_of(message) for message in made.messages)


def test_nothing_is_cut_where_clearing_is_enough_or_cutting_gains_nothing_or_nobody_asked() -> None:
    s = lasting("short")
    for limit in (0, 900):
        assert shortened(s, tightened(s.budget, s.budget.fixed + limit)) == cleared(s)
    pinned = lasting("line of a pasted log\n" * 2000)
    history = [*pinned.reconciled.history[:-1], pinned.reconciled.history[-1].with_directives(Directives(pin=True))]
    kept = replace(pinned, reconciled=replace(pinned.reconciled, history=tuple(history)))
    assert shortened(kept, tightened(kept.budget, kept.budget.fixed + 500)) == cleared(kept)
    unasked = Chain(Policy()).situation([assistant("hi " * 900)], 100_000)
    assert shortened(unasked, tightened(unasked.budget, 60)) == cleared(unasked)
