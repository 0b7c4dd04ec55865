"""One running summary at the head stands for all but the newest messages; each time it is carried on by what left these (004-S4, 004-S12)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import msgspec

from ctxproxy.core.backgrounds import Room
from ctxproxy.core.complexity import COMPLEX_TURNS, complexity, window_turns
from ctxproxy.core.exchanges import newest_messages
from ctxproxy.core.messages import Tip, text_of
from ctxproxy.core.policy import Count, Fraction, Tokens
from ctxproxy.core.recency import fitting_start, newest_tokens, newest_turns, own_turns
from ctxproxy.core.stages.base import Context, register
from ctxproxy.core.stages.summarize import READY_SLACK, Summarize
from ctxproxy.core.stretches import Stretch, is_fresh, stretch_to
from ctxproxy.core.transcript import Transcript
from ctxproxy.core.triggers import Clause, met


@register("rolling_summary", loss="lossy")
class RollingSummary(Summarize, frozen=True, forbid_unknown_fields=True):
    """Keeps `keep_messages`, or `keep_tokens`, `keep_fraction` of the limit, or `keep_turns` finished turns (`dynamic_window`: 3, 5 or 7).
    Due when a clause of `when` holds or `every_turns` more turns have left the kept ones, never below `min_tokens`.
    """

    keep_user_share: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.0
    fill: bool = False
    when: tuple[Clause, ...] = ()
    keep_messages: Annotated[int, msgspec.Meta(ge=0)] = 20
    keep_tokens: Tokens | None = None
    keep_fraction: Fraction | None = None
    keep_turns: Annotated[int, msgspec.Meta(ge=0)] | None = None
    every_turns: Count | None = None
    dynamic_window: bool = False
    min_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    max_summary_tokens: Count = 256

    def due(self, transcript: Transcript, context: Context) -> bool:
        return context.summarizer != "off" and self._is_called_for(transcript, context) and self._stretch(transcript, context) is not None

    def cut_tip(self, transcript: Transcript, context: Context) -> Tip:
        """Also, every so many turns, the tip of those that will be the next to leave: written in advance, at the 5th, the 10th … (003-08)."""
        tip, own = super().cut_tip(transcript, context), own_turns(transcript)
        if tip or self.every_turns is None or len(own) <= self.every_turns or transcript.tokens < self.min_tokens:
            return tip
        stretch = self._before(transcript, own[self.every_turns].start)
        return stretch.tip if stretch and stretch.tip not in {one.tip for one in context.summaries if one.kind == "llm"} else ""

    def _is_called_for(self, transcript: Transcript, context: Context) -> bool:
        if transcript.tokens < self.min_tokens:
            return False
        left = len(own_turns(transcript)) - 1 - self._turns(transcript) if self.every_turns else 0
        return bool(self.every_turns and left >= self.every_turns) or met(self.when, transcript.tokens, len(transcript.entries), context.limit)

    def _stretch(self, transcript: Transcript, context: Context) -> Stretch | None:
        called_for = self._is_called_for(transcript, context)
        if transcript.tokens < self.min_tokens or not (called_for or transcript.tokens > context.target):
            return None
        end = fitting_start(transcript, self._start(transcript, context), context.limit - self._room(context).total)
        stretch = self._before(transcript, end)
        return stretch if stretch and is_fresh(transcript, stretch, self.name) else None

    def _before(self, transcript: Transcript, end: int) -> Stretch | None:
        kept_out = {at for at, entry in enumerate(transcript.entries) if entry.message.directives.never_summarize}
        return stretch_to(transcript, end, transcript.protected | kept_out)

    def _start(self, transcript: Transcript, context: Context) -> int:
        """Where what stays begins."""
        if self.keep_turns is not None or self.dynamic_window:
            return newest_turns(transcript, self._turns(transcript))
        if self.keep_tokens is not None or self.keep_fraction is not None:
            return newest_tokens(transcript, self.keep_tokens or int((self.keep_fraction or 0) * context.limit))
        return newest_messages(transcript, self.keep_messages) if self.keep_messages else transcript.newest.start

    def _turns(self, transcript: Transcript) -> int:
        if not self.dynamic_window:
            return self.keep_turns or 0
        asked = [text_of(transcript.entries[turn.start].message) for turn in own_turns(transcript)]
        return window_turns(complexity(asked[-COMPLEX_TURNS:]))

    def _room(self, context: Context) -> Room:
        return super()._room(replace(context, summary_max_tokens=min(self.max_summary_tokens, context.summary_max_tokens)))

    def _enough(self, transcript: Transcript, end: int, context: Context) -> bool:
        """Whether with what a ready summary tells all is done that is called for now."""
        rest = Transcript(transcript.entries[end:])
        slack = 1.0 if self._is_called_for(transcript, context) else READY_SLACK
        most = context.target + int((context.limit - context.target) * slack)
        return rest.tokens + self._room(context).total <= most and not self._is_called_for(rest, context)
