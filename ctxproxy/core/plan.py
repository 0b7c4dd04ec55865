"""What to send for a request. Pure; nothing stored is ever edited. What is sent after an overflow is in `rescue_plans`.

The order is ARCHITECTURE §5's: what fits goes out as it came; else earlier decisions are replayed; else reversible stages, and
when those gain too little or the prompt is nearly full, the lossy ones. The result is frozen in a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ctxproxy.core.budget import Budget
from ctxproxy.core.checkpoints import freeze, is_expansion, is_rescue, replay, resume
from ctxproxy.core.forgetting import expired, without
from ctxproxy.core.language import language_of
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.pairing import repair
from ctxproxy.core.pins import pins_tokens, with_pins
from ctxproxy.core.pipeline import Outcome, run
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import in_order, stages_of
from ctxproxy.core.records import Checkpoint, Summary
from ctxproxy.core.sessions import Reconciled
from ctxproxy.core.stages.base import REGISTRY, Context, Stage
from ctxproxy.core.stages.summarize import Summarize
from ctxproxy.core.transcript import CountMessage, Entry, Transcript

LAST_RESORTS = frozenset({"drop_oldest", "shrink_newest"})
"""Stages that run only while the prompt is over its budget: what they take out, nothing stands for."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a plan depends on; sizes in tokens as the upstream counts them."""

    leading: tuple[Message, ...]
    reconciled: Reconciled
    counts: tuple[int, ...]
    """One per message of the history."""
    budget: Budget
    """Its fixed part holds the leading messages, tools and response format."""
    policy: Policy
    variant: str
    count: CountMessage
    count_text: Callable[[str], int]
    now: float
    since: float
    """When the conversation began, as far as is known."""
    checkpoints: Collection[Checkpoint] = ()
    summaries: Sequence[Summary] = ()
    pins: Sequence[str] = ()
    forgotten: frozenset[Tip] = frozenset()
    summarizer: Literal["llm", "extractive", "off"] = "llm"
    summary_max_tokens: int = 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent for a request, and why."""

    transcript: Transcript
    messages: tuple[Message, ...]
    """The array to send, leading system messages first."""
    changed: bool
    """False: the client's own bytes go out (for a thin client: its stored history and its messages, each unedited)."""
    tokens_in: int
    """Logical size of the prompt: fixed parts and the whole history."""
    tokens_sent: int
    budget: Budget
    actions: tuple[tuple[str, int], ...] = ()
    failed: tuple[str, ...] = ()
    """Stages that failed and were left out."""
    checkpoint: Checkpoint | None = None
    """A new decision to keep; None if nothing new was decided."""
    wants: Tip = ""
    """A summary up to this tip should stand where an extractive stand-in stands now."""

    @property
    def fits(self) -> bool:
        return self.transcript.tokens <= self.budget.limit


def base_transcript(s: Situation) -> Transcript:
    """The history as it stands in the log, without what is to be forgotten (whole groups, so that no call loses its result)."""
    entries = tuple(
        Entry(message, tokens, tip, pinned=message.directives.pin)
        for message, tokens, tip in zip(s.reconciled.history, s.counts, s.reconciled.tips, strict=True)
    )
    whole = Transcript(entries)
    gone = gone_tips(s)
    return whole if gone.isdisjoint(s.reconciled.tips) else without(whole, gone, s.count)


def gone_tips(s: Situation) -> frozenset[Tip]:
    """The messages that are never sent: what somebody had forgotten, and what the client let expire."""
    return s.forgotten | expired(s.reconciled.history, s.reconciled.tips)


def plan(s: Situation) -> Plan:
    """What to send for a request: where a summary came late and no decision can be made with it, the one without it stands."""
    base = base_transcript(s)
    stands = resume(s.reconciled.tips, s.checkpoints, s.variant, forgotten=gone_tips(s))
    valid = resume(s.reconciled.tips, s.checkpoints, s.variant, s.summaries, gone_tips(s))
    planned = _planned(s, base, valid)
    return planned if stands is valid or planned.checkpoint else _planned(s, base, stands)


def _planned(s: Situation, base: Transcript, checkpoint: Checkpoint | None) -> Plan:
    """The plan that goes on from an earlier decision; the one made for this very request stands for as long as it fits."""
    if checkpoint and is_expansion(checkpoint):
        checkpoint = None
    if checkpoint and base.tokens <= s.budget.target and not is_rescue(checkpoint) and not _due(s, base):
        whole = freeze(base, s.reconciled.tip, s.variant, s.now, wants="", actions=())
        return replace(_as_is(s, base, base), checkpoint=whole)  # the budget has grown since, far enough not to come back soon
    current = replay(checkpoint, base, s.count) if checkpoint else base
    due = _due(s, current)
    repeated = checkpoint is not None and checkpoint.tip == s.reconciled.tip and current.tokens <= s.budget.limit
    if repeated or (current.tokens <= _trigger(s, checkpoint) and not due):
        return _as_is(s, base, current)
    outcome = _compacted(s, current)
    if outcome.transcript is current or not _worth_it(s, current, outcome.transcript, due=due):
        return replace(_as_is(s, base, current), failed=outcome.failed)
    return decided(s, base, outcome)


def _due(s: Situation, transcript: Transcript) -> bool:
    """Whether something has to be done however short the prompt is: too many turns, or a stage's own rule."""
    return _over_turns(s, transcript) or any(stage.due(transcript, context_of(s, transcript)) for stage in stages_of(s.policy))


def _over_turns(s: Situation, transcript: Transcript) -> bool:
    return s.policy.max_turns is not None and len(transcript.turns) > s.policy.max_turns


def _trigger(s: Situation, checkpoint: Checkpoint | None) -> int:
    """Where a prompt is compacted: after a decision of reversible stages only, not before it is to be summarized, or the cache would
    be broken again for the little that has grown old since.
    """
    names = [name for name, _ in checkpoint.actions] if checkpoint else []
    reversible = bool(names) and all(name in REGISTRY and REGISTRY[name].loss == "reversible" for name in names)
    return s.budget.summarize if reversible else s.budget.trigger


def _as_is(s: Situation, base: Transcript, current: Transcript) -> Plan:
    changed = current is not base or not gone_tips(s).isdisjoint(s.reconciled.tips)
    return Plan(current, _array(s, current, changed=changed), changed, _size(s, base.tokens), _size(s, current.tokens), s.budget)


def _array(s: Situation, transcript: Transcript, *, changed: bool) -> tuple[Message, ...]:
    messages = (*s.leading, *(entry.message for entry in transcript.entries))
    return tuple(repair(messages)) if changed else messages


def _size(s: Situation, history_tokens: int) -> int:
    return s.budget.fixed + history_tokens


def _worth_it(s: Situation, before: Transcript, after: Transcript, *, due: bool) -> bool:
    """Whether a change gains enough for the cache that it breaks (002-S3); what must fit or was asked for always is."""
    return due or before.tokens > s.budget.limit or before.tokens - after.tokens >= s.policy.min_gain * s.budget.limit


def _compacted(s: Situation, current: Transcript) -> Outcome:
    context, stages = context_of(s, current), stages_of(s.policy)
    return with_all_pins(current, _outcome(s, current, stages, context), context)


def _outcome(s: Situation, current: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    if any(stage.due(current, context) for stage in stages):
        return run(current, stages, context)
    if not _over_turns(s, current):
        return _to_target(s, current, stages, context)
    outcome = _fewer_turns(s, current, stages, context)
    if outcome.transcript.tokens > context.limit:
        outcome = _joined(outcome, _to_target(s, outcome.transcript, stages, context))
    return outcome


def _to_target(s: Situation, current: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    return run(current, stages, context) if in_order(s.policy) else _mild_first(s, current, stages, context)


def _mild_first(s: Situation, current: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    first = run(current, [stage for stage in stages if stage.loss == "reversible" and stage.name not in LAST_RESORTS], context)
    gained = current.tokens - first.transcript.tokens
    worth = s.policy.min_gain * s.budget.limit
    held = s.budget.limit - context.limit
    if gained >= max(worth, 1) and first.transcript.tokens + held <= s.budget.summarize - worth:
        return first
    second = run(first.transcript, [stage for stage in stages if stage.loss == "lossy" and stage.name not in LAST_RESORTS], context)
    if second.transcript.tokens <= context.limit:
        return _joined(first, second)
    third = run(second.transcript, [stage for stage in stages if stage.name in LAST_RESORTS], context)
    return _joined(_joined(first, second), third)


def _fewer_turns(s: Situation, current: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    """Over `max_turns` the oldest half of the turns goes (000-12: 21 turns become 11)."""
    keep = len(current.turns) - len(current.turns) // 2
    kept_tokens = sum(entry.tokens for entry in current.entries[current.turns[-keep].start :])
    narrowed = replace(context, target=min(context.target, kept_tokens + s.summary_max_tokens), keep_recent_turns=keep)
    return run(current, [stage for stage in stages if stage.loss == "lossy" and stage.name != "shrink_newest"], narrowed)


def _joined(first: Outcome, second: Outcome) -> Outcome:
    return replace(
        second,
        actions=(*first.actions, *second.actions),
        failed=(*first.failed, *second.failed),
        wants=second.wants or first.wants,
    )


def context_of(s: Situation, transcript: Transcript) -> Context:
    """What the stages get to know; room for the pinned texts is kept."""
    language = language_of([entry.message for entry in transcript.entries])
    held, gone = pins_tokens(s.pins, s.count, language), gone_tips(s)
    return Context(
        count=s.count,
        count_text=s.count_text,
        limit=max(s.budget.limit - held, 0),
        target=max(s.budget.target - held, 0),
        keep_recent_turns=s.policy.keep_recent_turns,
        max_turns=s.policy.max_turns,
        language=language,
        originals={tip: message for tip, message in zip(s.reconciled.tips, s.reconciled.history, strict=True) if tip not in gone},
        summaries=s.summaries,
        pins=s.pins,
        summarizer=s.summarizer,
        summary_max_tokens=min(s.summary_max_tokens, max(s.budget.limit // 4, 1)),
    )


def with_all_pins(before: Transcript, outcome: Outcome, context: Context) -> Outcome:
    """An outcome with the pinned texts that it lost; none at all where that would be longer than what was before."""
    held = with_pins(outcome.transcript, context.pins, context.count, context.language)
    if held is not outcome.transcript and held.tokens >= before.tokens:
        return Outcome(before, failed=outcome.failed)
    return replace(outcome, transcript=held)


def decided(s: Situation, base: Transcript, outcome: Outcome, marks: tuple[tuple[str, int], ...] = ()) -> Plan:
    """The plan that sends an outcome and has it frozen, `marks` before its actions."""
    done = outcome.transcript
    actions = (*marks, *outcome.actions)
    decision = freeze(done, s.reconciled.tip, s.variant, s.now, wants=outcome.wants, actions=actions)
    return Plan(
        transcript=done,
        messages=_array(s, done, changed=True),
        changed=True,
        tokens_in=_size(s, base.tokens),
        tokens_sent=_size(s, done.tokens),
        budget=s.budget,
        actions=actions,
        failed=outcome.failed,
        checkpoint=decision,
        wants=outcome.wants,
    )


def observed(s: Situation, planned: Plan) -> Plan:
    """What is sent where plans are only watched: the whole history as it is, with the actions that would have been taken."""
    base = base_transcript(s)
    return replace(_as_is(s, base, base), actions=planned.actions)


def background_tip(s: Situation, current: Plan) -> Tip:
    """The tip up to which a summary should be made in advance, from about 70 % of the budget on; "" if none is due."""
    stages = stages_of(s.policy)
    due = s.summarizer == "llm" and current.transcript.tokens > s.budget.background
    stage = next((stage for stage in stages if isinstance(stage, Summarize)), None)
    if not due or stage is None:
        return ""
    return stage.cut_tip(current.transcript, context_of(s, current.transcript))


def compacted_now(s: Situation) -> Plan:
    """The plan as if the trigger were met: what `POST …/manage` does (002-16)."""
    base = base_transcript(s)
    checkpoint = resume(s.reconciled.tips, s.checkpoints, s.variant, s.summaries, gone_tips(s))
    current = replay(checkpoint, base, s.count) if checkpoint else base
    outcome = _compacted(s, current)
    if outcome.transcript.tokens >= current.tokens:
        return replace(plan(s), failed=outcome.failed)
    return decided(s, base, outcome)
