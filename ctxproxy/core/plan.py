"""What to send: `plan` for a request, `tighten` for the next rung after an overflow. Pure; nothing stored is ever edited.

The order is ARCHITECTURE §5's: what fits goes out as it came; else earlier decisions are replayed; else reversible stages, and
when those gain too little or the prompt is nearly full, the lossy ones. The result is frozen in a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ctxproxy.core.budget import Budget
from ctxproxy.core.checkpoints import freeze, replay, resume
from ctxproxy.core.language import language_of
from ctxproxy.core.markers import topic_of_text
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.pairing import repair
from ctxproxy.core.pipeline import Outcome, run
from ctxproxy.core.policy import Policy, Recovery
from ctxproxy.core.presets import stages_of
from ctxproxy.core.records import Checkpoint, Summary
from ctxproxy.core.rewrites import fitted
from ctxproxy.core.sessions import Reconciled
from ctxproxy.core.stages.aggressive_trim import AggressiveTrim
from ctxproxy.core.stages.base import Context, Stage
from ctxproxy.core.stages.clear import Clear
from ctxproxy.core.stages.drop_oldest import DropOldest
from ctxproxy.core.stages.shrink_newest import ShrinkNewest
from ctxproxy.core.stages.summarize import Summarize
from ctxproxy.core.transcript import CountMessage, Entry, Transcript

RESCUE = "rescue"
"""The action that marks a decision of the ladder: it stands even where the believed window says that more would fit."""
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
    if s.forgotten.isdisjoint(s.reconciled.tips):
        return whole
    kept = [span for span in whole.groups if all(entries[i].tip not in s.forgotten for i in range(*span))]
    return Transcript(tuple(entries[i] for span in kept for i in range(*span)))


def plan(s: Situation) -> Plan:
    """What to send for a request."""
    base = base_transcript(s)
    checkpoint = resume(s.reconciled.tips, s.checkpoints, s.variant, s.summaries)
    if checkpoint and base.tokens <= s.budget.target and all(name != RESCUE for name, _ in checkpoint.actions):
        checkpoint = None  # the budget has grown since, far enough not to come back soon
    current = replay(checkpoint, base, s.count) if checkpoint else base
    over_turns = s.policy.max_turns is not None and len(current.turns) > s.policy.max_turns
    if current.tokens <= s.budget.trigger and not over_turns:
        return _as_is(s, base, current)
    outcome = _compacted(s, current, over_turns=over_turns)
    if outcome.transcript is current or not _worth_it(s, current, outcome.transcript, over_turns=over_turns):
        return replace(_as_is(s, base, current), failed=outcome.failed)
    return _decided(s, base, outcome, ())


def _as_is(s: Situation, base: Transcript, current: Transcript) -> Plan:
    changed = current is not base or len(base.entries) < len(s.reconciled.history)
    return Plan(current, _array(s, current, changed=changed), changed, _size(s, base.tokens), _size(s, current.tokens), s.budget)


def _array(s: Situation, transcript: Transcript, *, changed: bool) -> tuple[Message, ...]:
    messages = (*s.leading, *(entry.message for entry in transcript.entries))
    return tuple(repair(messages)) if changed else messages


def _size(s: Situation, history_tokens: int) -> int:
    return s.budget.fixed + history_tokens


def _worth_it(s: Situation, before: Transcript, after: Transcript, *, over_turns: bool) -> bool:
    """Whether a change gains enough for the cache that it breaks (002-S3); what must fit or was asked for always is."""
    if after.tokens >= before.tokens:
        return False
    return over_turns or before.tokens > s.budget.limit or before.tokens - after.tokens >= s.policy.min_gain * s.budget.limit


def _compacted(s: Situation, current: Transcript, *, over_turns: bool) -> Outcome:
    stages = stages_of(s.policy)
    context = _context(s, current)
    if over_turns:
        return _fewer_turns(s, current, stages, context)
    first = run(current, [stage for stage in stages if stage.loss == "reversible" and stage.name not in LAST_RESORTS], context)
    gained = current.tokens - first.transcript.tokens
    enough = gained >= s.policy.min_gain * s.budget.limit
    if enough and first.transcript.tokens <= s.budget.summarize:
        return first
    second = run(first.transcript, [stage for stage in stages if stage.loss == "lossy" and stage.name not in LAST_RESORTS], context)
    if second.transcript.tokens <= s.budget.limit:
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


def _context(s: Situation, transcript: Transcript) -> Context:
    return Context(
        count=s.count,
        count_text=s.count_text,
        limit=s.budget.limit,
        target=s.budget.target,
        keep_recent_turns=s.policy.keep_recent_turns,
        language=language_of([entry.message for entry in transcript.entries]),
        originals={
            tip: message for tip, message in zip(s.reconciled.tips, s.reconciled.history, strict=True) if tip not in s.forgotten
        },
        summaries=s.summaries,
        pins=s.pins,
        summarizer=s.summarizer,
        summary_max_tokens=min(s.summary_max_tokens, max(s.budget.limit // 4, 1)),
    )


def _decided(s: Situation, base: Transcript, outcome: Outcome, marks: tuple[tuple[str, int], ...]) -> Plan:
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
    return stage.cut_tip(current.transcript, _context(s, current.transcript))


def compacted_now(s: Situation) -> Plan:
    """The plan as if the trigger were met: what `POST …/manage` does (002-16)."""
    base = base_transcript(s)
    checkpoint = resume(s.reconciled.tips, s.checkpoints, s.variant, s.summaries)
    current = replay(checkpoint, base, s.count) if checkpoint else base
    outcome = _compacted(s, current, over_turns=False)
    if outcome.transcript.tokens >= current.tokens:
        return replace(_as_is(s, base, current), failed=outcome.failed)
    return _decided(s, base, outcome, ())


def replanned(s: Situation, budget: Budget) -> Plan:
    """The plan under a tighter budget after an overflow; it stands until the next compaction."""
    tight = replace(s, budget=budget)
    made = plan(tight)
    if made.checkpoint is None:
        return made
    actions = ((RESCUE, 1), *made.actions)
    return replace(made, actions=actions, checkpoint=replace(made.checkpoint, actions=actions))


def trimmed(s: Situation, budget: Budget, recovery: Recovery) -> Plan:
    """Everything before the last user message summarized, then the aggressive trim (000-22, 000-23)."""
    tight = replace(s, budget=budget)
    base = base_transcript(tight)
    context = replace(_context(tight, base), keep_recent_turns=0)
    stages: list[Stage] = [
        Summarize(),
        AggressiveTrim(max_tool_chars=recovery.tool_result_chars, max_user_chars=recovery.user_text_chars, max_turns=recovery.max_turns),
        DropOldest(),
        ShrinkNewest(),
    ]
    return _decided(tight, base, run(base, stages, context), ((RESCUE, 1),))


def cleared(s: Situation) -> Plan:
    """System, pins and the last user message (000-25); the log keeps everything."""
    base = base_transcript(s)
    return _decided(s, base, run(base, [Clear()], replace(_context(s, base), target=0)), ((RESCUE, 1),))


def shortened(s: Situation, budget: Budget) -> Plan:
    """As `cleared`, and the last user message cut to the budget: the one case where it is changed, and only if configured."""
    base = cleared(s).transcript
    at = base.last_user
    if at < 0:
        return cleared(s)
    entry = base.entries[at]
    room = max(entry.tokens - (base.tokens - budget.limit), 1)
    language = language_of([entry.message])
    message = fitted(entry, topic_of_text(entry.message, language), room, s.count, language)
    cut = replace(entry, message=message, tokens=s.count(message), origin="edited", stage="shorten_last_user")
    done = Transcript((*base.entries[:at], cut, *base.entries[at + 1 :]))
    return _decided(replace(s, budget=budget), base_transcript(s), Outcome(done, (("shorten_last_user", 1),)), ((RESCUE, 1),))
