"""Every rule in force stands word for word in every prompt, over ten and more generations of compaction; the bar is all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core.kept_texts import DEMANDS_DELETION, LEFT_OUT
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy, Recovery
from ctxproxy.core.presets import PRESETS
from ctxproxy.core.rescue_plans import cleared, replanned, trimmed
from ctxproxy.core.rules import NAMED, ORDERED, rule_weight
from ctxproxy.core.situation import Situation
from ctxproxy.core.validity import violations
from tests.core.chains import Chain
from tests.core.histories import count, count_text
from tests.core.rule_histories import Told, told

GENERATIONS = 10
RULES_SHARE = 0.25
"""Of the limit: what all rules in force take at most."""
KEEPING = sorted(set(PRESETS) - DEMANDS_DELETION)
SUMMARIES = ["They spoke about the task.", "", "- a point of weight\n" * 20, "用户在修复错误。"]


def limit_for(story: Told, share: float = RULES_SHARE) -> int:
    """A limit in which the rules take this share, and that the longest message fits into."""
    rules = max(sum(count_text(rule) + 2 for rule in rules) for rules in story.in_force)
    return max(int(rules / share), int(1.5 * max(map(count, story.messages))))


def level(text: str) -> str:
    return " ".join(text.split())


def lost(sent: Plan, rules: tuple[str, ...]) -> list[str]:
    """The rules that stand in no message of the prompt."""
    text = level("\n".join(text_of(message) for message in sent.messages))
    return [rule for rule in rules if level(rule) not in text]


def survive(story: Told, chain: Chain, limit: int) -> int:
    """Ask at each user message; gives how often the prompt was compacted anew."""
    generations = 0
    for end, message in enumerate(story.messages, 1):
        if message.role != "user":
            continue
        sent = chain.ask(story.messages[:end], limit).plan
        generations += sent.checkpoint is not None and bool(sent.actions)
        assert lost(sent, story.in_force[end - 1]) == [], f"after {generations} generations, at message {end}"
        assert sent.failed == ()
        assert violations(sent.messages) == []
        assert LEFT_OUT not in dict(sent.actions)
    return generations


@pytest.mark.parametrize("summary", SUMMARIES)
@pytest.mark.parametrize("language", ["en", "zh", "mixed"])
def test_all_rules_survive_in_the_default_preset_whatever_the_summarizer_writes(language: str, summary: str) -> None:
    story = told(SUMMARIES.index(summary), language, turns=70, rate=0.3)
    assert survive(story, Chain(Policy(), late=2, summary_text=summary), limit_for(story)) >= GENERATIONS


@pytest.mark.parametrize("preset", KEEPING)
def test_all_rules_survive_in_each_preset_that_does_not_demand_deletion(preset: str) -> None:
    story = told(7, "mixed", turns=70, rate=0.25)
    chain = Chain(Policy(preset=preset), late=1)  # type: ignore[arg-type]
    assert survive(story, chain, limit_for(story)) >= GENERATIONS


@pytest.mark.parametrize("preset", ["lossless", "adaptive"])
@pytest.mark.parametrize("stage", ["compact_messages", "drop_oldest", "aggressive_trim", "middle_out", "keep_first_last"])
def test_all_rules_survive_a_stage_alone(preset: str, stage: str) -> None:
    story = told(3, "mixed", turns=40, rate=0.25)
    policy = Policy(preset=preset, pipeline=({"stage": stage},))  # type: ignore[arg-type]
    survive(story, Chain(policy), limit_for(story, 0.15))


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(100, 10_000), st.sampled_from(["en", "zh", "mixed"]), st.sampled_from(SUMMARIES), st.integers(0, 3))
def test_all_rules_survive_in_any_conversation(seed: int, language: str, summary: str, late: int) -> None:
    story = told(seed, language, turns=40, rate=0.3)
    survive(story, Chain(Policy(), late=late, summary_text=summary), limit_for(story))


@dataclass
class WithoutModel(Chain):
    """A chain whose summarizer is another than a model."""

    kind: Literal["extractive", "off"] = "off"

    def situation(self, history: Sequence[Message], limit: int, model: str = "m") -> Situation:
        return replace(super().situation(history, limit, model), summarizer=self.kind)


@pytest.mark.parametrize("kind", ["extractive", "off"])
def test_a_summarizer_without_a_model_or_none_loses_none(kind: Literal["extractive", "off"]) -> None:
    story = told(5, "mixed", turns=50, rate=0.25)
    assert survive(story, WithoutModel(Policy(), kind=kind), limit_for(story)) >= GENERATIONS


@pytest.mark.parametrize("language", ["en", "zh"])
def test_all_rules_survive_the_ladder_while_they_fit(language: str) -> None:
    story = told(9, language, turns=40, rate=0.1)
    chain = Chain(Policy())
    limit = limit_for(story, 0.05)
    situation = chain.situation(story.messages, limit)
    for sent in (plan(situation), replanned(situation, situation.budget), trimmed(situation, situation.budget, Recovery()), cleared(situation)):
        assert lost(sent, story.in_force[-1]) == []


@pytest.mark.parametrize("preset", sorted(DEMANDS_DELETION & set(PRESETS)))
def test_presets_that_demand_deletion_keep_pins_and_no_rules(preset: str) -> None:
    story = told(11, "en", turns=40, rate=0.2)
    rule = story.in_force[-1][0]
    chain = Chain(Policy(preset=preset), pins=[rule])  # type: ignore[arg-type]
    situation = chain.situation(story.messages, limit_for(story, 0.05))
    for sent in (trimmed(situation, situation.budget, Recovery()), cleared(situation)):
        assert rule not in lost(sent, story.in_force[-1])
        assert len(lost(sent, story.in_force[-1])) > 0


def test_where_rules_alone_are_too_many_the_user_is_told() -> None:
    story = told(13, "mixed", turns=60, rate=0.6)
    sent = Chain(Policy()).ask(story.messages, 2 * sum(map(count_text, story.in_force[-1]))).plan
    missing = lost(sent, story.in_force[-1])
    assert 0 < len(missing) <= dict(sent.actions)[LEFT_OUT]
    surest = [rule for rule in story.in_force[-1] if rule_weight(rule) >= NAMED] or [
        rule for rule in story.in_force[-1] if rule_weight(rule) >= ORDERED
    ]
    assert surest[-1] not in missing


def test_decisions_with_rules_are_replayed_byte_for_byte() -> None:
    story = told(17, "mixed", turns=60, rate=0.3)
    chain, limit = Chain(Policy(), late=1), limit_for(story)
    before: list[bytes] = []
    for end, message in enumerate(story.messages, 1):
        if message.role != "user":
            continue
        step = chain.ask(story.messages[:end], limit)
        if step.plan.checkpoint is None:
            assert step.sent[: len(before)] == before
        assert chain.ask(story.messages[:end], limit).sent == step.sent
        before = step.sent
