"""What a decision took out of a prompt, and what tells of it."""

from __future__ import annotations

from dataclasses import replace

from ctxproxy.core.leavings import TOLD_TOKENS, leavings, ready_text
from ctxproxy.core.messages import Directives, text_of
from ctxproxy.core.plan import compacted_now
from ctxproxy.core.policy import Policy, Recovery
from ctxproxy.core.records import Summary
from ctxproxy.core.rescue_plans import cleared, trimmed
from tests.core.chains import Chain, Step
from tests.core.histories import count, count_text, long_turn, talk, user

DROPPING = Policy(pipeline=({"stage": "drop_oldest"},), min_gain=0.0)


def dropped(turns: int = 30, share: float = 0.9) -> Step:
    history = talk(turns)
    return Chain(DROPPING).ask(history, int(sum(map(count, history)) * share))


def summary(tip: str, text: str, kind: str = "llm") -> Summary:
    return Summary(tip, text, kind, "m", 2, 5, 0.0, 1.0, 2.0)  # type: ignore[arg-type]


def test_what_was_left_out_is_told_oldest_first() -> None:
    step = dropped()
    left = leavings(step.situation, step.plan)
    assert left
    assert left.reason == "trimmed"
    end = left.first + len(left.messages)
    assert left.first <= 1
    assert left.messages == step.situation.reconciled.history[left.first : end]
    assert left.tip == step.situation.reconciled.tips[end - 1]


def test_a_prompt_that_fits_or_was_only_shortened_leaves_nothing() -> None:
    history = talk(5)
    step = Chain(Policy()).ask(history, sum(map(count, history)) * 3)
    assert leavings(step.situation, step.plan) is None
    compacted = Chain(Policy(keep_recent_turns=0)).ask(long_turn(20), 12_000)
    assert compacted.plan.actions
    assert leavings(compacted.situation, compacted.plan) is None


def test_what_left_before_is_not_told_again_by_whatever_model() -> None:
    chain, history = Chain(DROPPING), talk(30)
    limit = int(sum(map(count, history)) * 0.9)
    first = leavings(*_both(chain.ask(history, limit)))
    history += talk(30)[:-1]
    second = leavings(*_both(chain.ask(history, limit)))
    assert first and second
    assert not set(first.tips) & set(second.tips)
    assert second.first >= len(first.tips)
    other = chain.ask(history, limit, model="another")
    assert other.plan.checkpoint
    again = leavings(other.situation, other.plan)
    assert again is None or not (set(first.tips) | set(second.tips)) & set(again.tips)


def _both(step: Step) -> tuple[object, object]:
    return step.situation, step.plan


def test_the_reason_is_told() -> None:
    situation = Chain(Policy()).situation(talk(40), 2000)
    rescue = trimmed(situation, situation.budget, Recovery())
    for made, reason in ((rescue, "overflow"), (cleared(situation), "overflow"), (compacted_now(situation), "by hand")):
        left = leavings(situation, made)
        assert left and left.reason == reason


def test_what_is_kept_out_of_summaries_is_kept_out_of_notes() -> None:
    history = [user("secret", Directives(never_summarize=True)), *talk(30)[1:]]
    step = Chain(DROPPING).ask(history, int(sum(map(count, history)) * 0.8))
    left = leavings(step.situation, step.plan)
    assert left
    assert "secret" not in [text_of(m) for m in left.messages]
    assert left.first == 1


def test_a_models_summary_is_what_they_are_told_by_and_passages_tell_the_rest() -> None:
    step = dropped()
    left = leavings(step.situation, step.plan)
    assert left
    tips = step.situation.reconciled.tips
    whole = [summary(left.tip, "They spoke."), summary(left.tips[0], "Earlier."), summary(tips[-1], "Later."), summary("ff", "Elsewhere.")]
    assert ready_text(left, tips, whole, count_text) == "They spoke."
    half = left.tips[len(left.tips) // 2]
    parts = ready_text(left, tips, [summary(half, "The first half.")], count_text).split("\n\n")
    assert parts[0] == "The first half."
    assert parts[1]


def test_without_a_models_summary_the_best_passages_tell_within_their_bound() -> None:
    step = dropped()
    left = leavings(step.situation, step.plan)
    assert left
    told = ready_text(left, step.situation.reconciled.tips, [summary(left.tip, "By rules.", "extractive")], count_text)
    assert told
    assert "By rules." not in told
    assert count_text(told) <= TOLD_TOKENS
    assert ready_text(replace(left, messages=(user("ok"),), tips=left.tips[:1]), step.situation.reconciled.tips, [], count_text) == ""
