"""A compaction that is worked out before it is needed, in a pause, so that the request that needs it does not wait for it.

It is what the request before would have decided, had it been as long as that already. What came since stands behind it as it came, as
behind any decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ctxproxy.core.checkpoints import replay, resume
from ctxproxy.core.pipeline import Outcome
from ctxproxy.core.planned import Plan
from ctxproxy.core.presets import is_patient
from ctxproxy.core.records import Checkpoint, Foreseen
from ctxproxy.core.situation import Situation, gone_tips
from ctxproxy.core.transcript import Transcript

REQUESTS_AHEAD = 2
"""It is due soon if so many more requests of the conversation's usual size lead there."""
NEWER_SHARE = 0.05
"""Of the budget: how much may have come since. A decision of its own then has more to leave out."""
LIMIT_SLACK = 0.05
"""How far the budget may be off the one that it was made for: what is fixed in a prompt differs by a few tokens from request to request."""


def is_due_soon(s: Situation, planned: Plan) -> bool:
    """Whether one of the next requests will have to leave something out that this one did not."""
    if planned.checkpoint is not None or not planned.fits:
        return False
    requests = sum(1 for message in s.reconciled.history if message.role == "assistant")
    return planned.transcript.tokens + REQUESTS_AHEAD * sum(s.counts) // max(requests, 1) >= _line(s)


def _line(s: Situation) -> int:
    """Where a prompt is too long for reversible stages alone."""
    return s.budget.summarize if is_patient(s.policy) else s.budget.trigger


def foresee(s: Situation, planned: Plan, decide: Callable[[Situation], Plan]) -> Foreseen | None:
    """What `decide` would decide if the prompt that was `planned` were too long; None if nothing."""
    tokens, budget = planned.transcript.tokens, s.budget
    reached = replace(budget, trigger=min(budget.trigger, tokens), summarize=min(budget.summarize, tokens))
    made = decide(replace(s, budget=reached, foreseen=None))
    if made.checkpoint is None or not made.compacts or made.failed:
        return None
    return Foreseen(made.checkpoint, made.saved, _terms(s), budget.limit)


def is_in_force(s: Situation, made: Foreseen, decided: Checkpoint | None = None) -> bool:
    """Whether a decision made ahead still is the one to make: for this history, none newer was `decided`, and nothing it rests on has changed."""
    if made.terms != _terms(s) or abs(made.limit - s.budget.limit) > LIMIT_SLACK * s.budget.limit:
        return False
    deepest = resume(s.reconciled.tips, [made.decision, *([decided] if decided else [])], s.variant, s.summaries, gone_tips(s))
    if deepest is not made.decision:
        return False
    newer = sum(s.counts[s.reconciled.tips.index(made.decision.tip) + 1 :])
    return newer <= NEWER_SHARE * s.budget.limit


def come_true(s: Situation, base: Transcript, current: Transcript, decided: Checkpoint | None) -> Outcome | None:
    """The outcome that was foreseen, for a prompt that has become too long; None if it has to be worked out."""
    made = s.foreseen
    if made is None or current.tokens < _line(s) or not is_in_force(s, made, decided):
        return None
    done = replay(made.decision, base, s.count)
    if done.tokens > s.budget.limit or done.tokens >= current.tokens:
        return None
    return Outcome(done, made.decision.actions, made.saved, wants=made.decision.wants)


def _terms(s: Situation) -> tuple[object, ...]:
    return s.policy, tuple(s.pins), s.summarizer, s.preload
