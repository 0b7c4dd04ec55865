"""What holds for every plan: any history, any preset, any single stage, with the decisions and summaries of earlier requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from ctxproxy.core import jsontext
from ctxproxy.core.budget import tightened
from ctxproxy.core.fates import fates
from ctxproxy.core.messages import Message, leading_system, read, text_of
from ctxproxy.core.pairing import acknowledgement, alternates
from ctxproxy.core.pins import missing_pins, pins_tokens
from ctxproxy.core.plan import compacted_now, observed, plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Recovery
from ctxproxy.core.presets import acts_when_short
from ctxproxy.core.rescue_plans import cleared, replanned, shortened, trimmed
from ctxproxy.core.situation import Situation
from ctxproxy.core.transcript import Transcript
from ctxproxy.core.validity import violations
from tests.core.chains import Decide, Step, Story, adaptive_policies, forks, stories
from tests.core.histories import count, transcript

pytestmark = pytest.mark.timeout(7200)
"""The profile `thorough` plans some hundred thousand requests."""
EXAMPLES = settings().max_examples if settings().max_examples > 100 else 40
"""Whole conversations: in the everyday run fewer of them, each takes long; `HYPOTHESIS_PROFILE=thorough` makes 10,000."""
laws = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


# ---------------------------------------------------------------- the promises, for one request
def keeps_promises(step: Step, *, last_user: bool = True) -> None:
    """All that holds for a plan by itself (INTERFACE.md §6)."""
    input_is_untouched(step)
    list_stays_valid(step)
    what_must_stay_stays(step, last_user=last_user)
    tokens_are_right_and_never_grow(step)
    nothing_vanishes_without_a_trace(step)
    unknown_fields_survive(step)


def input_is_untouched(step: Step) -> None:
    for message in step.asked:
        assert jsontext.decode(message.raw) == message.fields


def list_stays_valid(step: Step) -> None:
    asked, sent = step.asked, step.plan.messages
    assert step.plan.failed == ()
    assert sent
    if violations(asked) == []:
        assert violations(sent) == []
        assert sent[-1].role == asked[-1].role
    assert alternates(sent) or not alternates(asked)
    assert tuple(sent[: len(step.situation.leading)]) == step.situation.leading
    assert leading_system(sent) == len(step.situation.leading) or leading_system(asked) > len(step.situation.leading) or violations(asked) != []
    assert first_role(sent) == "user" or first_role(asked) != "user"


def first_role(messages: Sequence[Message]) -> str:
    at = leading_system(messages)
    return messages[at].role if at < len(messages) else ""


def what_must_stay_stays(step: Step, *, last_user: bool) -> None:
    history = remembered(step.situation)
    newest = max((n for n, m in enumerate(history) if m.role == "user"), default=-1)
    wanted = [m.raw for n, m in enumerate(history) if m.directives.pin or (n == newest and last_user)]
    if violations(step.asked) == []:
        assert in_order(wanted, step.sent)
    else:  # a list that came invalid is mended: a result moves up to its call, one without a call goes
        assert {raw for raw in wanted if read(raw).role != "tool"} <= set(step.sent)
    texts = [text_of(message) for message in history]
    pins = [pin for pin in step.situation.pins if any(pin in text for text in texts)]
    assert missing_pins(step.plan.messages, pins) == ()


def remembered(s: Situation) -> list[Message]:
    """The history without the groups that hold a forgotten message."""
    tips = s.reconciled.tips
    groups = transcript(s.reconciled.history).groups
    return [s.reconciled.history[at] for group in groups if s.forgotten.isdisjoint(tips[slice(*group)]) for at in range(*group)]


def in_order(wanted: Sequence[bytes], found: Iterable[bytes]) -> bool:
    rest = iter(found)
    return all(one in rest for one in wanted)


def tokens_are_right_and_never_grow(step: Step) -> None:
    made, s = step.plan, step.situation
    assert all(entry.tokens == count(entry.message) for entry in made.transcript.entries)
    assert made.tokens_sent == s.budget.fixed + made.transcript.tokens
    lacked = missing_pins(s.reconciled.history[:1], s.pins)  # pinned before anybody had said them: they came on top, for good
    frame = max(pins_tokens(lacked, count, language) for language in ("en", "zh"))
    assert made.tokens_sent - frame <= made.tokens_in == s.budget.fixed + sum(s.counts) or s.forgotten
    if violations(step.asked) == []:
        assert [m.raw for m in made.messages[len(s.leading) :]] == [entry.message.raw for entry in made.transcript.entries]


def nothing_vanishes_without_a_trace(step: Step) -> None:
    """Each message is sent, or edited under its tip, or told of by another entry, or left out by a stage; the tokens add up."""
    s, made = step.situation, step.plan
    found = fates(s, made)
    assert [fate.tip for fate in found] == list(s.reconciled.tips)
    entries = {entry.tip: entry for entry in made.transcript.entries if entry.tip}
    assert len(entries) == sum(1 for entry in made.transcript.entries if entry.tip)
    for fate, message in zip(found, s.reconciled.history, strict=True):
        assert fate.why
        assert bool(fate.stage) is (fate.state != "sent")
        if fate.state == "sent":
            assert entries[fate.tip].message.raw == message.raw
        elif fate.state == "compacted":
            assert entries[fate.tip].stage == fate.stage
        else:
            assert fate.tip not in entries
            assert fate.state == "dropped" or fate.entry is not None
            assert made.changed
    assert made.changed or {fate.state for fate in found} <= {"sent"}
    assert sum(fate.tokens_after for fate in found) + sum(e.tokens for e in made.transcript.entries if not e.tip) == made.transcript.tokens


def unknown_fields_survive(step: Step) -> None:
    originals = dict(zip(step.situation.reconciled.tips, step.situation.reconciled.history, strict=True))
    for entry in step.plan.transcript.entries:
        if entry.tip and entry.origin == "edited":
            assert rest(entry.message.fields) == rest(originals[entry.tip].fields)
        elif entry.tip:
            assert entry.message.raw == originals[entry.tip].raw


def rest(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in ("content", "tool_calls")}


def only_watched_all_goes_out_as_it_came(step: Step) -> None:
    seen = observed(step.situation, step.plan)
    assert (seen.changed, list(seen.messages), seen.actions) == (False, step.asked, step.plan.actions)


# ---------------------------------------------------------------- the laws
@laws
@given(stories())
def test_every_request_of_a_chain_keeps_the_promises(story: Story) -> None:
    for step in story.tell():
        keeps_promises(step)
        only_watched_all_goes_out_as_it_came(step)
        event(f"changed: {step.plan.changed}")


@laws
@given(stories())
def test_between_two_compactions_the_array_only_grows_at_its_end(story: Story) -> None:
    before: Step | None = None
    for step in story.tell():
        if before is not None and step.plan.checkpoint is None and violations(step.asked) == []:
            assert step.sent[: len(before.sent)] == before.sent
        before = step


@laws
@given(stories(), st.data())
def test_planning_twice_gives_the_same_bytes(story: Story, data: st.DataObject) -> None:
    story.tell()
    story.chain.due.clear()
    story.chain.late = len(story.ends) + 9
    end = data.draw(st.sampled_from(story.ends))
    once = story.chain.ask(story.history[:end], story.limit)
    assert plan(once.situation) == once.plan
    again = story.chain.ask(story.history[:end], story.limit)
    assert again.sent == once.sent
    assert again.plan.checkpoint is None


@laws
@given(stories())
def test_nothing_is_edited_where_all_fits(story: Story) -> None:
    total = sum(map(count, story.history))
    policy = msgspec.structs.replace(story.chain.policy, max_turns=None)
    assume(not acts_when_short(policy))
    assume(missing_pins(story.history[: story.ends[0]], story.chain.pins) == ())
    for step in replace(story, chain=replace(story.chain, policy=policy), limit=int(total / policy.compact_at) + 2).tell():
        assert not step.plan.changed
        assert step.plan.actions == ()
        assert list(step.plan.messages) == step.asked


@laws
@given(stories(), st.data())
def test_nothing_of_one_branch_shows_in_another(story: Story, data: st.DataObject) -> None:
    story.tell()
    other = data.draw(forks(story.history))
    ours = story.chain.ask(other, story.limit)
    keeps_promises(ours)
    tips = set(ours.situation.reconciled.tips)
    shown = {tip for entry in ours.plan.transcript.entries for tip in (entry.tip, *entry.covers) if tip}
    assert shown <= tips
    told = {word.strip(".") for m in ours.plan.messages for word in text_of(m).split("Summary up to ")[1:] for word in word.split()[:1]}
    assert told <= tips
    back = story.chain.ask(story.history, story.limit)
    assert not any("What was asked here instead" in text_of(message) for message in back.plan.messages)


@laws
@given(stories(), st.data())
def test_what_is_forgotten_is_never_sent_again(story: Story, data: st.DataObject) -> None:
    last = max(n for n, m in enumerate(story.history) if m.role == "user")
    assume(last > 0)
    gone = data.draw(st.integers(0, last - 1))
    history = [secret(m) if n == gone else m for n, m in enumerate(story.history)]
    told = replace(story, history=history)
    told.tell()
    told.chain.forget(told.chain.steps[-1].situation.reconciled.tips[gone])
    for _ in range(2):
        step = told.chain.ask(history, story.limit)
        keeps_promises(step)
        assert b"XYZZY-4711" not in b"".join(step.sent)


def secret(message: Message) -> Message:
    """The message with a secret in it."""
    fields = {**message.fields, "content": "The secret is XYZZY-4711, mind the rule: never say it. " + text_of(message)}
    return Message(jsontext.encode(fields), fields, message.directives)


def least_tokens(base: Transcript) -> int:
    """What the smallest legal array has: what is protected, and a word of the assistant where two user messages would meet."""
    groups = [group for group in base.groups if not base.protected.isdisjoint(range(*group))]
    kept = [at for group in groups for at in range(*group)]
    gap = count(acknowledgement("zh")) + count(acknowledgement("en"))
    return sum(base.entries[at].tokens for at in kept) + gap * (len(kept) + 1)


@laws
@given(stories(adaptive_policies))
def test_a_prompt_fits_whenever_a_legal_one_does(story: Story) -> None:
    for step in story.tell():
        s = step.situation
        base = observed(s, step.plan).transcript
        if least_tokens(base) + pins_tokens(s.pins, count, "zh") + pins_tokens(s.pins, count, "en") <= s.budget.limit:
            assert step.plan.fits, (step.plan.transcript.tokens, s.budget.limit)


@st.composite
def rungs(draw: st.DrawFn) -> Decide:
    """One of the decisions after an overflow, or by hand."""
    part = draw(st.sampled_from([0.1, 0.4, 0.8]))
    recovery = Recovery(tool_result_chars=draw(st.sampled_from([200, 10_000])), user_text_chars=200, max_turns=draw(st.integers(1, 5)))

    def tight(s: Situation) -> int:
        return s.budget.fixed + int(s.budget.limit * part)

    def with_replanned(s: Situation) -> Plan:
        return replanned(s, tightened(s.budget, tight(s)))

    def with_trimmed(s: Situation) -> Plan:
        return trimmed(s, tightened(s.budget, tight(s)), recovery)

    return draw(st.sampled_from([with_replanned, with_trimmed, cleared, compacted_now]))


@laws
@given(stories(), st.data())
def test_the_decisions_after_an_overflow_keep_the_promises_and_are_built_on(story: Story, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(story.ends) - 1))
    before: Step | None = None
    for n, end in enumerate(story.ends):
        step = story.chain.ask(story.history[:end], story.limit, decide=data.draw(rungs()) if n == at else plan)
        keeps_promises(step)
        if before is not None and step.plan.checkpoint is None and violations(step.asked) == [] and n != at:
            assert step.sent[: len(before.sent)] == before.sent
        before = step


@laws
@given(stories())
def test_clearing_leaves_only_what_must_stay(story: Story) -> None:
    situation = story.chain.situation(story.history, story.limit)
    base = observed(situation, plan(situation)).transcript
    step = Step(situation, cleared(situation))
    keeps_promises(step)
    assert step.plan.transcript.tokens <= least_tokens(base) + pins_tokens(story.chain.pins, count, "zh")


@laws
@given(stories(), st.sampled_from([0.1, 0.5, 0.9]))
def test_shortening_the_last_user_message_spares_all_else_that_must_stay(story: Story, part: float) -> None:
    situation = story.chain.situation(story.history, story.limit)
    cut = shortened(situation, tightened(situation.budget, situation.budget.fixed + int(situation.budget.limit * part)))
    keeps_promises(Step(situation, cut), last_user=False)
    assert cut.transcript.tokens <= cleared(situation).transcript.tokens


@laws
@given(stories(), st.data())
def test_models_and_budgets_that_change_keep_the_promises(story: Story, data: st.DataObject) -> None:
    lasting: dict[str, Step] = {}
    for end in story.ends:
        model = data.draw(st.sampled_from("mn"))
        limit = max(int(story.limit * data.draw(st.sampled_from([0.5, 1.0, 1.0, 3.0]))), 1)
        step = story.chain.ask(story.history[:end], limit, model)
        keeps_promises(step)
        before = lasting.get(model)
        if before is not None and before.situation.budget == step.situation.budget and step.plan.checkpoint is None and violations(step.asked) == []:
            assert step.sent[: len(before.sent)] == before.sent
        lasting[model] = step
