"""A compaction that is worked out before it is needed, in a pause, so that the request that needs it does not wait for it.

It is what the request before would have decided, had it been as long as that already. What came since stands behind it as it came, as
behind any decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from statistics import median_low

from ctxproxy.core.checkpoints import is_rescue, replay, resume
from ctxproxy.core.frames import parse
from ctxproxy.core.messages import NO_DIRECTIVES, read, text_of
from ctxproxy.core.pipeline import Outcome
from ctxproxy.core.planned import Plan, as_decided
from ctxproxy.core.presets import is_patient, stages_of
from ctxproxy.core.recall_titles import STAGE as RECALLED
from ctxproxy.core.recall_titles import TAKEN_OUT, without_recalled
from ctxproxy.core.records import Checkpoint, Foreseen
from ctxproxy.core.situation import Situation, base_transcript, gone_tips
from ctxproxy.core.standing_rules import standing, utterances
from ctxproxy.core.transcript import Transcript

REQUESTS_AHEAD = 2
"""It is due soon if so many more requests of the newest ones' mean size lead there, or one as large as the largest of them."""
USUAL_MESSAGES = 64
"""The newest ones, that tell what is usual: a long history is not gone through for each request."""
NEWER_SHARE = 0.05
"""Of the budget: how much may have come since. A decision of its own then has more to leave out."""
LIMIT_SLACK = 0.05
"""How far the budget may be off the one that it was made for: what is fixed in a prompt differs by a few tokens from request to request."""

DIRECTIVES_OF = attrgetter("directives")


def is_due_soon(s: Situation, planned: Plan) -> bool:
    """Whether one of the next requests will have to leave something out that this one did not."""
    if planned.checkpoint is not None or not planned.fits or not stages_of(s.policy):
        return False
    sizes, most = _sizes(s), NEWER_SHARE * s.budget.limit
    if median_low(sizes) > most:  # what is foreseen would not be in force any more at the next request
        return False
    ahead = max(REQUESTS_AHEAD * sum(sizes) // len(sizes), *sizes)
    return planned.transcript.tokens + min(ahead, most) >= _line(s)


def _sizes(s: Situation) -> list[int]:
    """What each of the newest requests has added to the history."""
    newest = zip(s.reconciled.history[-USUAL_MESSAGES:], s.counts[-USUAL_MESSAGES:], strict=True)
    sizes = [0]
    for message, tokens in newest:
        sizes[-1] += tokens
        if message.role == "assistant":
            sizes.append(0)
    return sizes[:-1] or sizes


def _line(s: Situation) -> int:
    """Where a prompt is too long for reversible stages alone."""
    return s.budget.summarize if is_patient(s.policy) else s.budget.trigger


def foresee(s: Situation, decide: Callable[[Situation], Plan]) -> Foreseen | None:
    """What `decide` would decide if the prompt were too long as it stands without passages of the past; None if nothing."""
    tokens, budget = without_recalled(as_decided(s, base_transcript(s))).tokens, s.budget
    reached = replace(budget, trigger=min(budget.trigger, tokens), summarize=min(budget.summarize, tokens))
    made = decide(replace(s, budget=reached, foreseen=None))
    if made.checkpoint is None or not made.compacts or made.failed:
        return None
    return Foreseen(made.checkpoint, made.saved, _terms(s, len(s.counts)), budget.limit, budget.target)


def is_in_force(s: Situation, made: Foreseen, decided: Checkpoint | None = None) -> bool:
    """Whether a decision made ahead still is the one to make: for this history, none newer was `decided`, and nothing it rests on has changed."""
    slack = LIMIT_SLACK * s.budget.limit
    if abs(made.limit - s.budget.limit) > slack or abs(made.target - s.budget.target) > slack:
        return False
    tips = s.reconciled.tips
    at = next((at for at in range(len(tips) - 1, -1, -1) if tips[at] == made.decision.tip), len(tips))
    rivals = [decided] if decided and not _brings_passages(decided) else []
    if resume(tips[at:], [made.decision, *rivals], s.variant, s.summaries, gone_tips(s)) is not made.decision:
        return False
    if sum(s.counts[at + 1 :]) > NEWER_SHARE * s.budget.limit:
        return False
    return made.terms == _terms(s, at + 1) and _tells_what_holds(s, made, at + 1)


def _brings_passages(decided: Checkpoint) -> bool:
    """Whether a decision was kept for passages of the past: they are there for one request, and go with the next compaction."""
    return any(name == RECALLED for name, _ in decided.actions) and not is_rescue(decided)


def _tells_what_holds(s: Situation, made: Foreseen, start: int) -> bool:
    """Whether all rules that a decision tells of as in force still are, after what users have said since."""
    newer = s.reconciled.history[start:]
    heard = utterances([message for message in newer if message.role == "user"], s.memo)
    if not any(one.claims or one.remarks or one.little for one in heard):
        return True
    frames = [parse(text_of(read(entry.raw))) for entry in made.decision.entries if entry.raw is not None and not entry.tip]
    told = [rule for frame in frames if frame for rule in frame.rules]
    return {rule.text for rule in standing(newer, told, s.memo).rules} >= set(told)


def come_true(s: Situation, base: Transcript, current: Transcript, decided: Checkpoint | None) -> Outcome | None:
    """The outcome that was foreseen, for a prompt that has become too long; None if it has to be worked out."""
    made = s.foreseen
    if made is None or current.tokens < _line(s) or not is_in_force(s, made, decided):
        return None
    done = replay(made.decision, base, s.count)
    if done.tokens > s.budget.limit or done.tokens >= current.tokens:
        return None
    outcome = Outcome(done, made.decision.actions, made.saved, wants=made.decision.wants)
    bare = without_recalled(current)
    if bare is current or any(name == TAKEN_OUT for name, _ in outcome.actions):
        return outcome
    mark, saved = (TAKEN_OUT, 1), (TAKEN_OUT, current.tokens - bare.tokens)
    return replace(outcome, actions=(mark, *outcome.actions), saved=(saved, *outcome.saved))


def _terms(s: Situation, end: int) -> tuple[object, ...]:
    """What a decision on the first `end` messages rests on beside their texts and the budget."""
    directives = tuple(map(DIRECTIVES_OF, s.reconciled.history[:end]))
    said = directives if directives.count(NO_DIRECTIVES) < end else ()
    return s.policy, tuple(s.pins), s.summarizer, s.preload, said
