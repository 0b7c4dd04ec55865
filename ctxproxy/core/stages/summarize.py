"""The oldest stretch gives way to one framed summary: a ready one where there is one, else the extractive stand-in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxproxy.core import frames
from ctxproxy.core.backgrounds import Room, background_of
from ctxproxy.core.messages import Tip
from ctxproxy.core.policy import Fraction
from ctxproxy.core.records import Summary
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.stretches import Stretch, bridged, framed, last_tip, oldest_stretch, read_again
from ctxproxy.core.transcript import Edit, Fold, Span, Transcript

READY_SLACK = 0.3
"""Of the way from the target to the limit: with the default shares, up to 68 % of the budget."""
FRESH_TOKENS = 32
"""A stretch needs this much that no summary tells yet; else the summary would be summarized, again and again."""


@register("summarize", loss="lossy")
class Summarize(Stage, frozen=True, forbid_unknown_fields=True):
    """Folds the oldest stretch; `keep_user_share` of the budget is for the user's own words, `most_share` of the target for all of it."""

    keep_user_share: Fraction = 0.15
    most_share: Fraction = 0.5

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        stretch = self._stretch(transcript, context)
        if stretch is None or context.summarizer == "off":
            return
        ready, newer_from = _ready(transcript, stretch, context)
        spans = _upto(stretch.spans, newer_from) if ready and self._enough(transcript, newer_from, context) else stretch.spans
        places = [i for span in spans for i in range(*span)]
        covered = read_again([transcript.entries[i] for i in places], context.originals)
        newer = read_again([transcript.entries[i] for i in places if i >= newer_from], context.originals)
        room = self._room(context)
        background = background_of(covered, newer, ready, context.pins, room, context.count_text, context.language)
        wants = stretch.tip if newer and context.summarizer == "llm" else ""
        text = frames.frame_text(background, context.language)
        main = max(spans, key=lambda span: _tokens(transcript, span))
        frame = framed(transcript, main, text, context.language)
        if sum(map(context.count, frame)) >= _tokens(transcript, main):
            return
        yield Fold(main, frame, "summary", wants)
        for span in spans:
            if span != main:
                most = _tokens(transcript, span)
                yield Fold(span, bridged(transcript, span, context.language, context.count, most, later=span > main), "told in the summary", wants)

    def cut_tip(self, transcript: Transcript, context: Context) -> Tip:
        """The tip up to which a summary would be wanted if the prompt had to shrink now; "" if none, or if a ready one would do."""
        stretch = self._stretch(transcript, context)
        if stretch is None:
            return ""
        ready, newer_from = _ready(transcript, stretch, context)
        return "" if ready and ready.kind == "llm" and self._enough(transcript, newer_from, context) else stretch.tip

    def _stretch(self, transcript: Transcript, context: Context) -> Stretch | None:
        """The stretch that gives way, if there is enough in it but what this stage has put there before."""
        if transcript.tokens <= context.target:
            return None
        stretch = oldest_stretch(transcript, context.keep_recent_turns, context.target - self._room(context).total)
        return stretch if stretch and any(self._fresh_tokens(transcript, span) >= FRESH_TOKENS for span in stretch.spans) else None

    def _fresh_tokens(self, transcript: Transcript, span: Span) -> int:
        ours = (entry.origin == "inserted" and entry.stage == self.name for entry in transcript.entries[span.start : span.end])
        return sum(entry.tokens for entry, own in zip(transcript.entries[span.start : span.end], ours, strict=True) if not own)

    def _room(self, context: Context) -> Room:
        words = int(self.keep_user_share * context.limit)
        total = min(context.summary_max_tokens + words, int(self.most_share * context.target))
        return Room(total, words, context.summary_max_tokens)

    def _enough(self, transcript: Transcript, end: int, context: Context) -> bool:
        """Whether leaving out no more than a ready summary tells is enough: the prompt has grown since that was begun, so that the target
        is not quite met; going on with it is better than asking for another one at once.
        """
        enough = context.target + int((context.limit - context.target) * READY_SLACK)
        return sum(entry.tokens for entry in transcript.entries[end:]) + self._room(context).total <= enough


def _ready(transcript: Transcript, stretch: Stretch, context: Context) -> tuple[Summary | None, int]:
    """The summary that reaches furthest within the stretch, a model's before another, and the index of what it does not tell."""
    inside = {i for span in stretch.spans for i in range(*span)}
    places = {last_tip(transcript.entries[g.end - 1]): g.end for g in transcript.groups if g.end - 1 in inside}
    found = [(places[s.tip], s.kind == "llm", s) for s in context.summaries if s.tip and s.tip in places]
    at, _, summary = max(found, key=lambda one: one[:2], default=(0, False, None))
    return summary, at


def _tokens(transcript: Transcript, span: Span) -> int:
    return sum(entry.tokens for entry in transcript.entries[span.start : span.end])


def _upto(spans: Sequence[Span], end: int) -> tuple[Span, ...]:
    return tuple(Span(span.start, min(span.end, end)) for span in spans if span.start < end)
