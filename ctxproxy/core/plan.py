"""What to send for a request. Pure; nothing stored is ever edited. What is sent after an overflow is in `rescue_plans`.

The order is ARCHITECTURE §5's: what fits goes out as it came; else earlier decisions are replayed; else reversible stages, and
when those gain too little or the prompt is nearly full, the lossy ones. The result is frozen in a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxproxy.core.budget import unhurried
from ctxproxy.core.checkpoints import BY_HAND, freeze, holds_only, is_expansion, is_rescue, replay, resume
from ctxproxy.core.costs import trigger, worth_it
from ctxproxy.core.foresight import come_true
from ctxproxy.core.kept_texts import narrowed, rules_room, with_kept
from ctxproxy.core.language import language_of
from ctxproxy.core.messages import Tip
from ctxproxy.core.pins import STAGE as PINS
from ctxproxy.core.pins import missing_pins, pins_tokens, with_pins
from ctxproxy.core.pipeline import Outcome, is_due, run
from ctxproxy.core.planned import Plan, array, as_decided, size_of
from ctxproxy.core.preloads import lighter
from ctxproxy.core.presets import in_order, is_patient, stages_of
from ctxproxy.core.recall_titles import STAGE as RECALLED
from ctxproxy.core.recall_titles import TAKEN_OUT, without_recalled
from ctxproxy.core.records import Checkpoint
from ctxproxy.core.situation import Situation, base_transcript, context_of, gone_tips
from ctxproxy.core.stages.base import REGISTRY, Context, Stage
from ctxproxy.core.transcript import Transcript

LAST_RESORTS = frozenset({"drop_oldest", "shrink_newest"})
"""Stages that run only while the prompt is over its budget: what they take out, nothing stands for."""


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
    if (
        checkpoint
        and base.tokens <= s.budget.target
        and not is_rescue(checkpoint)
        and not _due(s, base)
        and not holds_only(checkpoint, RECALLED)
        and not _only_pins(checkpoint)
    ):
        return _grown(s, base)
    stood = replay(checkpoint, base, s.count) if checkpoint else base
    current = _with_new_pins(s, stood)
    due = _due(s, current)
    repeated = checkpoint is not None and checkpoint.tip == s.reconciled.tip and current.tokens <= s.budget.limit
    if repeated or (current.tokens < trigger(s, checkpoint) and not due):
        return _standing(s, base, stood, current)
    outcome = (None if due else come_true(s, base, current, checkpoint)) or _compacted(s, current)
    if outcome.transcript is current or not (due or worth_it(s, current, outcome)):
        return replace(_standing(s, base, stood, current), failed=outcome.failed)
    return decided(s, base, outcome)


def _only_pins(checkpoint: Checkpoint) -> bool:
    """Whether a decision put pins at the head, or what was recalled at the end, and changed nothing else."""
    own = all(entry.raw is None or entry.stage in (PINS, RECALLED) for entry in checkpoint.entries)
    return own and not any(left.stage in REGISTRY for left in checkpoint.left)


def _grown(s: Situation, base: Transcript) -> Plan:
    """The plan that sends all again, for the budget has grown since it was decided otherwise, far enough not to come back soon."""
    current = _with_new_pins(s, base)
    if current is not base:
        return _standing(s, base, base, current)
    whole = freeze(base, s.reconciled.tip, s.variant, s.now, wants="", actions=())
    return replace(_as_is(s, base, base), checkpoint=whole)


def _with_new_pins(s: Situation, stood: Transcript) -> Transcript:
    """What stands, with the pinned texts that it does not hold (a command that pins one is no message), if they fit beside what has to stay."""
    if not s.pins:
        return stood
    messages = [entry.message for entry in stood.entries]
    if not missing_pins(messages, s.pins):
        return stood
    language, least = language_of(messages, s.memo), sum(stood.entries[at].tokens for at in stood.protected)
    return with_pins(stood, s.pins, s.count, language) if least + pins_tokens(s.pins, s.count, language) <= s.budget.limit else stood


def _standing(s: Situation, base: Transcript, stood: Transcript, current: Transcript) -> Plan:
    """What goes out where no stage acts: what stood before, with new pins if there is room for them, and then for good."""
    if current is stood or current.tokens > s.budget.limit:
        return _as_is(s, base, stood)
    return decided(s, base, Outcome(current, ((PINS, 1),), ((PINS, stood.tokens - current.tokens),)))


def _due(s: Situation, transcript: Transcript) -> bool:
    """Whether something has to be done however short the prompt is: too many turns, or a stage's own rule."""
    stages = stages_of(s.policy)
    if _over_turns(s, transcript, stages):
        return True
    ruled = [stage for stage in stages if type(stage).due is not Stage.due]
    context = context_of(s, transcript) if ruled else None  # it reads all texts: not for nothing
    return context is not None and any(is_due(stage, transcript, context) for stage in ruled)


def _over_turns(s: Situation, transcript: Transcript, stages: Sequence[Stage]) -> bool:
    return s.policy.max_turns is not None and len(transcript.turns) > s.policy.max_turns and not any(stage.limits_turns for stage in stages)


def _as_is(s: Situation, base: Transcript, current: Transcript) -> Plan:
    gone = gone_tips(s)
    changed = current is not base or bool(s.preload) or (bool(gone) and not gone.isdisjoint(s.reconciled.tips))
    messages = array(s, current, changed=changed) if changed else (*s.leading, *s.reconciled.history)
    return Plan(current, messages, changed, size_of(s, base.tokens), size_of(s, current.tokens), s.budget)


def _compacted(s: Situation, current: Transcript) -> Outcome:
    """What was recalled for earlier requests goes first: the prompt is written anew anyway."""
    bare = without_recalled(current)
    outcome = _rewritten(s, bare)
    if bare is current:
        return outcome
    if outcome.transcript is bare and current.tokens < s.budget.summarize:
        return Outcome(current, failed=outcome.failed)  # nothing else would change: they may stay as long as there is room
    mark, saved = (TAKEN_OUT, 1), (TAKEN_OUT, current.tokens - bare.tokens)
    return replace(outcome, actions=(mark, *outcome.actions), saved=(saved, *outcome.saved))


def _rewritten(s: Situation, current: Transcript) -> Outcome:
    context, stages = _own_context(s, current), stages_of(s.policy)
    if is_patient(s.policy) and current.tokens < s.budget.summarize and not _due(s, current):
        return _mild_only(s, current, stages, context)
    return _thoroughly(s, current, stages, context)


def _thoroughly(s: Situation, current: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    room = rules_room(s.policy, s.budget.limit)
    return with_kept(current, context, room, lambda transcript, told: _outcome(s, transcript, stages, told))


def _own_context(s: Situation, current: Transcript) -> Context:
    """The stages' context; a patient preset does not go deep where a conversation grows slowly."""
    context = context_of(s, current)
    if not is_patient(s.policy):
        return context
    requests = sum(1 for message in s.reconciled.history if message.role == "assistant")
    return replace(context, target=unhurried(s.budget, context.target, sum(s.counts) // max(requests, 1)))


def _mild_only(s: Situation, current: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    """Reversible stages alone, if they gain enough: they touch no rule, and a pin that they took out is put back."""
    outcome = run(current, [stage for stage in _mild(stages) if stage.loss == "reversible"], context)
    done = with_pins(outcome.transcript, context.pins, context.count, context.language)
    gained = current.tokens - done.tokens
    return replace(outcome, transcript=done) if gained >= max(s.policy.min_gain * s.budget.limit, 1) else Outcome(current, failed=outcome.failed)


def _outcome(s: Situation, current: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    if any(is_due(stage, current, context) for stage in stages):
        return run(current, stages, context) if in_order(s.policy) else _enough_to_fit(run(current, _mild(stages), context), stages, context)
    if not _over_turns(s, current, stages):
        return _to_target(s, current, stages, context)
    outcome = _fewer_turns(s, current, stages, context)
    if outcome.transcript.tokens > context.limit:
        outcome = _joined(outcome, _to_target(s, outcome.transcript, stages, context))
    return outcome


def _to_target(s: Situation, current: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    return run(current, stages, context) if in_order(s.policy) else _mild_first(s, current, stages, context)


def _mild_first(s: Situation, current: Transcript, stages: Sequence[Stage], context: Context) -> Outcome:
    mild = _mild(stages)
    first = run(current, [stage for stage in mild if stage.loss == "reversible"], context)
    gained = current.tokens - first.transcript.tokens
    worth, held = s.policy.min_gain * s.budget.limit, s.budget.limit - context.limit
    if gained >= max(worth, 1) and first.transcript.tokens + held <= s.budget.summarize - worth:
        return first
    second = run(first.transcript, [stage for stage in mild if stage.loss == "lossy"], context)
    return _enough_to_fit(_joined(first, second), stages, context)


def _mild(stages: Sequence[Stage]) -> list[Stage]:
    return [stage for stage in stages if stage.name not in LAST_RESORTS]


def _enough_to_fit(outcome: Outcome, stages: Sequence[Stage], context: Context) -> Outcome:
    """The outcome, with the last resorts where it is over the limit."""
    last = [stage for stage in stages if stage.name in LAST_RESORTS]
    return _joined(outcome, run(outcome.transcript, last, context)) if outcome.transcript.tokens > context.limit else outcome


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
        saved=(*first.saved, *second.saved),
        failed=(*first.failed, *second.failed),
        wants=second.wants or first.wants,
    )


def decided(s: Situation, base: Transcript, outcome: Outcome, marks: tuple[tuple[str, int], ...] = ()) -> Plan:
    """The plan that sends an outcome and has it frozen, `marks` before its actions."""
    done = outcome.transcript
    actions = (*marks, *outcome.actions)
    decision = freeze(done, s.reconciled.tip, s.variant, s.now, wants=outcome.wants, actions=actions)
    return Plan(
        transcript=done,
        messages=array(s, done, changed=True),
        changed=True,
        tokens_in=size_of(s, base.tokens),
        tokens_sent=size_of(s, done.tokens),
        budget=s.budget,
        actions=actions,
        saved=outcome.saved,
        failed=outcome.failed,
        checkpoint=decision,
        wants=outcome.wants,
    )


def observed(s: Situation, planned: Plan) -> Plan:
    """What is sent where plans are only watched: the whole history as it is, with the actions that would have been taken."""
    s = lighter(s, 0)
    base = base_transcript(s)
    return replace(_as_is(s, base, base), actions=planned.actions, saved=planned.saved, failed=planned.failed)


def background_tip(s: Situation, current: Plan) -> Tip:
    """The tip up to which a summary should be made in advance: from about 70 % of the budget on, or by a stage's own rule; "" if none is due."""
    full = current.transcript.tokens > s.budget.background
    stages = [one for one in stages_of(s.policy) if type(one).cut_tip is not Stage.cut_tip and (full or type(one).due is not Stage.due)]
    if not stages or s.summarizer != "llm":
        return ""
    context = narrowed(current.transcript, _own_context(s, current.transcript), rules_room(s.policy, s.budget.limit))
    context = context if full else replace(context, target=context.limit)
    return next((tip for stage in stages if (tip := stage.cut_tip(current.transcript, context))), "")


def compacted_now(s: Situation) -> Plan:
    """The plan as if the trigger were met: what `POST …/manage` does (002-16); whoever asks for it brings no model that could summarize."""
    base = base_transcript(s)
    stood = as_decided(s, base)
    current = without_recalled(stood)
    stages, context = stages_of(s.policy), context_of(replace(s, summarizer="off" if s.summarizer == "off" else "extractive"), current)
    outcome = _thoroughly(s, current, stages, context)
    if outcome.transcript is current:  # short enough, and compacted all the same (000-S11)
        outcome = _thoroughly(s, current, _mild(stages), replace(context, target=current.tokens * 2 // 3))
    shorter = outcome.transcript.tokens < stood.tokens
    return decided(s, base, outcome, ((BY_HAND, 1),)) if shorter else replace(plan(s), failed=outcome.failed)
