"""The oldest stretch gives way to one frame: a ready summary where there is one, and what says most of the stretch, word for word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxproxy.core import frames
from ctxproxy.core.backgrounds import Room, Source, background_of, filled
from ctxproxy.core.last_turns import aim, stretch_beside
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.policy import Fraction
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.stretches import Stretch, bridged, framed, read_again, ready_within, tokens_of, up_to
from ctxproxy.core.summaries import is_worth_a_call
from ctxproxy.core.transcript import Edit, Fold, Span, Transcript

READY_SLACK = 0.3
"""Of the way from the target to the limit: with the default shares, up to 68 % of the budget."""


@register("summarize", loss="lossy")
class Summarize(Stage, frozen=True, forbid_unknown_fields=True):
    """Folds the oldest stretch; `keep_user_share` of the budget is for the user's own words. The frame may take `most_share` of the target,
    and with `fill` all that the rest leaves of it.
    """

    summarizes = True
    keep_user_share: Fraction = 0.15
    most_share: Fraction = 0.6
    fill: bool = True

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        stretch = self._stretch(transcript, context)
        if stretch is None or context.summarizer == "off":
            return
        ready, newer_from = ready_within(transcript, stretch, context.summaries)
        spans = up_to(stretch.spans, newer_from) if ready and self._enough(transcript, newer_from, context) else stretch.spans
        covered = self._originals(transcript, spans, context)
        told = ready is not None and ready.kind == "llm"
        untold = self._originals(transcript, spans, context, newer_from) if told else covered
        wants = stretch.tip if context.summarizer == "llm" and self._asks(untold, context, first=not told) else ""
        main = max(spans, key=lambda span: tokens_of(transcript, [span]))
        folds = [Fold(span, self._bridge(transcript, span, main, context), "told in the summary", wants) for span in spans if span != main]
        all_newer = self.fill or newer_from <= spans[0].start
        source = Source(covered, covered if all_newer else self._originals(transcript, spans, context, newer_from), ready)
        staying = transcript.tokens - tokens_of(transcript, spans) + sum(context.count(m) for fold in folds for m in fold.by)
        target = aim(transcript, context, stretch, staying + self._room(context).total)
        for _ in range(3):
            room = filled(self._room(context), target, context.limit, staying) if self.fill else self._room(context)
            background = background_of(source, context.pins, room, context.count_text, context.language, context.rules, context.memo)
            frame = framed(transcript, main, frames.frame_text(background, context.language), context.language)
            if (over := staying + sum(map(context.count, frame)) - context.limit) <= 0:
                break
            staying += over
        if sum(map(context.count, frame)) < tokens_of(transcript, [main]):
            yield from (Fold(main, frame, "summary", wants), *folds)

    def cut_tip(self, transcript: Transcript, context: Context) -> Tip:
        """The tip up to which a summary would be wanted if the prompt had to shrink now; "" if none, or if a ready one would do."""
        stretch = self._stretch(transcript, context)
        if stretch is None:
            return ""
        ready, newer_from = ready_within(transcript, stretch, context.summaries)
        told = ready is not None and ready.kind == "llm"
        untold = self._originals(transcript, stretch.spans, context, newer_from if told else 0)
        enough = told and self._enough(transcript, newer_from, context)
        return stretch.tip if not enough and self._asks(untold, context, first=not told) else ""

    def _asks(self, untold: Sequence[Message], context: Context, *, first: bool) -> bool:
        tokens = sum(map(context.count, untold))
        return tokens > 0 and (not self.fill or is_worth_a_call(tokens, context.limit, context.summary_max_tokens, first=first))

    def _originals(self, transcript: Transcript, spans: Sequence[Span], context: Context, start: int = 0) -> list[Message]:
        return read_again([transcript.entries[i] for span in spans for i in range(*span) if i >= start], context.originals)

    def _bridge(self, transcript: Transcript, span: Span, main: Span, context: Context) -> tuple[Message, ...]:
        return bridged(transcript, span, context.language, context.count, tokens_of(transcript, [span]), later=span > main)

    def _stretch(self, transcript: Transcript, context: Context) -> Stretch | None:
        """The stretch that gives way, if there is enough in it but what this stage has put there before."""
        return stretch_beside(transcript, context, self._room(context).total, self.name) if transcript.tokens > context.target else None

    def _room(self, context: Context) -> Room:
        """What the frame may take, however much stays beside it."""
        words = int(self.keep_user_share * context.limit)
        most = int(self.most_share * context.target)
        return Room(most if self.fill else min(context.summary_max_tokens + words, most), words, context.summary_max_tokens)

    def _enough(self, transcript: Transcript, end: int, context: Context) -> bool:
        """Whether leaving out no more than a ready summary tells is enough: the prompt has grown since that was begun, so that the target
        is not quite met; going on with it is better than asking for another one at once.
        """
        enough = context.target + int((context.limit - context.target) * READY_SLACK)
        return tokens_of(transcript, [Span(end, len(transcript.entries))]) + self._room(context).total <= enough
