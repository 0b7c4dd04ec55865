"""What a new decision took out of a prompt, as messages, and in which words that is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxproxy.core.checkpoints import BY_HAND, RESCUE
from ctxproxy.core.dues import LeftReason
from ctxproxy.core.extractive import CountText, extract
from ctxproxy.core.forgetting import STAGE as FORGET
from ctxproxy.core.frames import without_frames
from ctxproxy.core.language import language_of
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import Checkpoint, Summary
from ctxproxy.core.situation import Situation, gone_tips

TOLD_TOKENS = 500
"""How long a note without a model's summary may be (000-S6)."""


@dataclass(frozen=True, slots=True)
class Leavings:
    """Messages that left the prompt for good with one decision, oldest first; never empty."""

    reason: LeftReason
    tips: tuple[Tip, ...]
    messages: tuple[Message, ...]
    first: int
    """Where in the history the oldest of them stands."""

    @property
    def tip(self) -> Tip:
        """The newest of them."""
        return self.tips[-1]


def leavings(s: Situation, plan: Plan) -> Leavings | None:
    """What the plan's decision takes out that no decision before had taken out, for whichever model; None where it takes out nothing."""
    if plan.checkpoint is None or not plan.actions:
        return None
    new = _gone(plan.checkpoint).difference(gone_tips(s), *map(_gone, s.checkpoints))
    left = [(at, tip) for at, tip in enumerate(s.reconciled.tips) if tip in new and not s.reconciled.history[at].directives.never_summarize]
    if not left:
        return None
    return Leavings(_reason(plan), tuple(tip for _, tip in left), tuple(s.reconciled.history[at] for at, _ in left), left[0][0])


def _gone(checkpoint: Checkpoint) -> frozenset[Tip]:
    """The messages that a decision sends no more, in no form of their own."""
    told = {tip for entry in checkpoint.entries for tip in entry.covers}
    left = {tip for one in checkpoint.left if one.stage != FORGET for tip in one.tips}
    return frozenset(told | left) - {entry.tip for entry in checkpoint.entries}


def _reason(plan: Plan) -> LeftReason:
    names = {name for name, _ in plan.actions}
    return "overflow" if RESCUE in names else "by hand" if BY_HAND in names else "trimmed"


def ready_text(left: Leavings, tips: Sequence[Tip], summaries: Sequence[Summary], count_text: CountText) -> str:
    """What they are told by: the model's summary that reaches furthest among them, and passages of those behind it; else passages of all."""
    places = {tip: at for at, tip in enumerate(tips)}
    own = [s for s in summaries if s.kind == "llm" and left.first <= places.get(s.tip, -1) <= places[left.tip]]
    ready = max(own, key=lambda s: places[s.tip], default=None)
    rest = [m for m, tip in zip(left.messages, left.tips, strict=True) if ready is None or places[tip] > places[ready.tip]]
    passages = extract(rest, TOLD_TOKENS, count_text, language_of(left.messages)) if rest else ""
    return "\n\n".join(text for text in (without_frames(ready.text) if ready else "", passages) if text)
