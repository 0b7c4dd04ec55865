"""What holds for every registered stage, on any history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxproxy.core.stages
from ctxproxy.core.messages import Message
from ctxproxy.core.pairing import alternates
from ctxproxy.core.pipeline import run
from ctxproxy.core.stages.base import REGISTRY, Language, make_stage
from ctxproxy.core.transcript import Transcript
from ctxproxy.core.validity import violations
from tests.core.histories import context, count, long_turn, transcript, transcripts

NAMES = sorted(set(ctxproxy.core.stages.__all__) & set(REGISTRY))
CHANGEABLE = {"content", "tool_calls"}
laws = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
targets = st.sampled_from([0, 0.2, 0.6])
languages: st.SearchStrategy[Language] = st.sampled_from(["en", "zh"])


def messages(it: Transcript) -> list[Message]:
    return [entry.message for entry in it.entries]


def raws(it: Transcript) -> list[bytes]:
    return [message.raw for message in messages(it)]


def test_the_package_registers_every_stage_it_names() -> None:
    assert set(ctxproxy.core.stages.__all__) == set(REGISTRY)


@pytest.mark.parametrize("name", NAMES)
@laws
@given(before=transcripts(), share=targets, language=languages)
def test_a_stage_keeps_the_list_valid_and_what_must_stay_and_never_lengthens_it(
    name: str, before: Transcript, share: float, language: Language
) -> None:
    sent = raws(before)
    outcome = run(before, [REGISTRY[name]()], context(int(before.tokens * share), language=language))
    after = outcome.transcript
    assert outcome.failed == ()
    assert raws(before) == sent
    assert violations(messages(after)) == [] or violations(messages(before)) != []
    assert alternates(messages(after)) or not alternates(messages(before))
    assert messages(after)[0].role == "user" or messages(before)[0].role != "user"
    assert messages(after)[-1].role == messages(before)[-1].role
    assert in_order([before.entries[at].message.raw for at in sorted(before.untouchable)], raws(after))
    assert after.tokens <= before.tokens
    assert all(entry.tokens == count(entry.message) for entry in after.entries)


def in_order(wanted: list[bytes], found: Iterable[bytes]) -> bool:
    rest = iter(found)
    return all(one in rest for one in wanted)


@pytest.mark.parametrize("name", NAMES)
@laws
@given(before=transcripts(), share=targets, language=languages)
def test_a_stage_is_deterministic_and_a_second_pass_changes_nothing(name: str, before: Transcript, share: float, language: Language) -> None:
    told = context(int(before.tokens * share), language=language)
    once = run(before, [REGISTRY[name]()], told)
    assert run(before, [REGISTRY[name]()], told) == once
    again = run(once.transcript, [REGISTRY[name]()], told)
    assert raws(again.transcript) == raws(once.transcript), again.actions


@pytest.mark.parametrize("name", NAMES)
@laws
@given(before=transcripts())
def test_unknown_fields_and_all_but_text_and_arguments_survive(name: str, before: Transcript) -> None:
    originals = {entry.tip: entry.message.fields for entry in before.entries}
    for entry in run(before, [REGISTRY[name]()], context()).transcript.entries:
        if entry.origin == "edited":
            assert rest(entry.message.fields) == rest(originals[entry.tip])
            assert signed(entry.message.fields) == signed(originals[entry.tip])


def rest(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in CHANGEABLE}


def signed(fields: Mapping[str, Any]) -> list[Any]:
    return [call.get("extra_content") for call in fields.get("tool_calls") or []]


@pytest.mark.parametrize("name", NAMES)
def test_a_stage_that_is_not_due_leaves_a_prompt_within_its_target_alone(name: str) -> None:
    before = transcript(long_turn(5))
    told = context(before.tokens)
    assert run(before, [REGISTRY[name]()], told).transcript is before or REGISTRY[name]().due(before, told)


@laws
@given(before=transcripts(), share=targets)
def test_the_stages_after_one_another_settle_in_one_pass(before: Transcript, share: float) -> None:
    names = ["superseded_results", "duplicate_results", "compact_tool_results", "media_to_notes", "compact_messages", "drop_oldest", "shrink_newest"]
    stages = [make_stage({"stage": name}) for name in names]
    told = context(int(before.tokens * share))
    once = run(before, stages, told)
    assert once.failed == ()
    assert raws(run(once.transcript, stages, told).transcript) == raws(once.transcript)
