"""Too many turns, or too many tokens in enough turns: the oldest half goes, and its summary opens the first kept user message (system 000)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Annotated

import msgspec

from ctxproxy.core.budget import BACKGROUND_AT
from ctxproxy.core.messages import Tip
from ctxproxy.core.oldest_turns import Cut, Told, cut_before, staying, told_by, turns_to_trim, with_background
from ctxproxy.core.policy import Count
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Span, Transcript


@register("trim_turns", loss="lossy")
class TrimTurns(Stage, frozen=True, forbid_unknown_fields=True):
    """Over `max_turns` turns (not set: `context.max_turns`), n // 2 of n go (000-12); over the target too, as long as there are
    `min_turns` (000-20), again and again until it is met (000-S5). Without a ready summary they go at once, and it is told of them at
    the next request (000-17).
    """

    summarizes = True
    thorough = True
    limits_turns = True
    max_turns: Count | None = None
    min_turns: Annotated[int, msgspec.Meta(ge=2)] = 5

    def due(self, transcript: Transcript, context: Context) -> bool:
        most = self._most(context)
        return most is not None and len(turns_to_trim(transcript, context)) > most

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        turns = turns_to_trim(transcript, context)
        gone = self._gone(transcript, turns, context)
        if not gone:
            return
        cut = cut_before(transcript, turns[gone].start, context)
        told = told_by(transcript, cut, context.summaries)
        shorter = self._as_far_as_told(transcript, turns, gone, told, context)
        if shorter is not None:
            cut, told = shorter, Told(told.summary, shorter.at)
        wants = cut.tips[-1] if cut.tips and told.until < cut.at and context.summarizer == "llm" else ""
        yield from with_background(transcript, cut, told, context, "the oldest turns", wants)

    def cut_tip(self, transcript: Transcript, context: Context) -> Tip:
        """For when the prompt will have grown to the target in turns like those it has now; where turns are only too many, not in advance."""
        if transcript.tokens <= BACKGROUND_AT * context.target:
            return ""
        turns = turns_to_trim(transcript, context)
        expected = max(math.ceil(len(turns) * context.target / max(transcript.tokens, 1)), len(turns))
        most = self._most(context)
        expected = expected if most is None else min(expected, most + 1)
        gone = min(expected // 2, len(turns) - 1)
        if not gone or (expected < self.min_turns and (most is None or expected <= most)):
            return ""
        cut = cut_before(transcript, turns[gone].start, context)
        told = told_by(transcript, cut, context.summaries)
        done = told.summary is not None and told.summary.kind == "llm" and _is_most(turns, gone, told)
        return "" if done or not cut.tips else cut.tips[-1]

    def _most(self, context: Context) -> int | None:
        return self.max_turns or context.max_turns

    def _gone(self, transcript: Transcript, turns: Sequence[Span], context: Context) -> int:
        """How many turns go."""
        left, most, kept = len(turns), self._most(context), staying(transcript)
        before = list(accumulate((0 if at in kept else entry.tokens for at, entry in enumerate(transcript.entries)), initial=0))
        while left > 1:
            long = transcript.tokens - (before[turns[-left].start] if left < len(turns) else 0) > context.target
            if not (most is not None and left > most) and not (long and left >= self.min_turns):
                break
            left -= left // 2
        return len(turns) - left

    def _as_far_as_told(self, transcript: Transcript, turns: Sequence[Span], gone: int, told: Told, context: Context) -> Cut | None:
        """The cut that a ready summary tells whole, if it takes out most of what has to go and that is enough: the conversation has gone on
        since that was begun, and to cut further would ask for another one at once.
        """
        done, most = _told_turns(turns, gone, told), self._most(context)
        if told.summary is None or told.summary.kind != "llm" or not _is_most(turns, gone, told) or done == gone:
            return None
        if most is not None and len(turns) - done > most:
            return None
        cut = cut_before(transcript, turns[done].start, context)
        return cut if transcript.tokens - cut.tokens + told.summary.tokens <= context.target else None


def _told_turns(turns: Sequence[Span], gone: int, told: Told) -> int:
    return sum(turn.end <= told.until for turn in turns[:gone])


def _is_most(turns: Sequence[Span], gone: int, told: Told) -> bool:
    return 2 * _told_turns(turns, gone, told) >= gone
