"""The turn before the newest, which a question most often follows up: a short one stays whole, on top of the target where need be."""

from __future__ import annotations

from ctxproxy.core.recency import own_turns
from ctxproxy.core.stage_context import Context
from ctxproxy.core.stretches import Stretch, is_fresh, oldest_stretch, tokens_of
from ctxproxy.core.transcript import Span, Transcript

TURN_SHARE = 0.16
"""Of the limit: a last turn up to this size stays whole. Measured on conversations at 6 and 12 % of their length: with 0.2 less is kept
of what is asked later (3 points at 6 %), with 0.16 hardly less (under 1)."""
TURN_TOKENS, MOST_TURN_SHARE = 300, 0.4
"""In small windows so many tokens stay whole, up to the larger share: a page of code is what the next question is about."""
PROMPT_SHARE = 0.8
"""Of the limit: what a prompt may take whose last turn stays whole on top of the target."""


def last_turn(transcript: Transcript, context: Context) -> Span | None:
    """The turn before the one that is being answered, if it is a short one and `keep_recent_turns` reaches back to it."""
    turns = own_turns(transcript)
    if len(turns) < 2 or context.keep_recent_turns < 2:
        return None
    most = max(TURN_SHARE * context.limit, min(TURN_TOKENS, MOST_TURN_SHARE * context.limit))
    return turns[-2] if tokens_of(transcript, [turns[-2]]) <= most else None


def stretch_beside(transcript: Transcript, context: Context, frame_tokens: int, stage: str) -> Stretch | None:
    """The oldest stretch whose removal leaves room for a frame of so many tokens, a short last turn spared if that can be; None if there
    is not enough in it but what the stage itself has put there before.
    """
    stretch, last = oldest_stretch(transcript, context.keep_recent_turns, context.target - frame_tokens), last_turn(transcript, context)
    if stretch and last and stretch.spans[-1].end > last.start:
        shorter = oldest_stretch(transcript, 2, _most(transcript, context, last) - frame_tokens)
        if shorter and shorter.spans[-1].end <= last.start and is_fresh(transcript, shorter, stage):
            return shorter
    return stretch if stretch and is_fresh(transcript, stretch, stage) else None


def aim(transcript: Transcript, context: Context, stretch: Stretch, needed_tokens: int) -> int:
    """Where to stop: the target, or as much above it as a last turn that stays whole needs together with a frame."""
    last = last_turn(transcript, context)
    if last is None or stretch.spans[-1].end > last.start:
        return context.target
    return max(context.target, min(needed_tokens, _most(transcript, context, last)))


def _most(transcript: Transcript, context: Context, turn: Span) -> int:
    return max(context.target, min(context.target + tokens_of(transcript, [turn]), int(PROMPT_SHARE * context.limit)))
