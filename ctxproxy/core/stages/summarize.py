"""The oldest stretch gives way to one framed summary: a ready one where there is one, else the extractive stand-in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxproxy.core import frames
from ctxproxy.core.backgrounds import Room, background_of
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.policy import Fraction
from ctxproxy.core.records import Summary
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.stretches import Stretch, last_tip, oldest_stretch
from ctxproxy.core.transcript import Edit, Fold, Span, Transcript


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
        covered = [transcript.entries[i].message for span in spans for i in range(*span)]
        newer = [transcript.entries[i].message for span in spans for i in range(*span) if i >= newer_from]
        room = self._room(context)
        background = background_of(covered, newer, ready, context.pins, room, context.count_text, context.language)
        wants = stretch.tip if newer and context.summarizer == "llm" else ""
        text = frames.frame_text(background, context.language)
        yield Fold(spans[0], _framed(transcript, spans[0], text, context), "summary", wants)
        for span in spans[1:]:
            yield Fold(span, _bridged(transcript, span, context), "in the summary", wants)

    def cut_tip(self, transcript: Transcript, context: Context) -> Tip:
        """The tip up to which a summary would be wanted if the prompt had to shrink now; "" if none."""
        stretch = self._stretch(transcript, context)
        return stretch.tip if stretch else ""

    def _stretch(self, transcript: Transcript, context: Context) -> Stretch | None:
        return oldest_stretch(transcript, context.keep_recent_turns, context.target - self._room(context).total)

    def _room(self, context: Context) -> Room:
        words = int(self.keep_user_share * context.limit)
        total = min(context.summary_max_tokens + words, int(self.most_share * context.target))
        return Room(total, words, context.summary_max_tokens)

    def _enough(self, transcript: Transcript, end: int, context: Context) -> bool:
        """Whether leaving out no more than a ready summary tells is enough."""
        return sum(entry.tokens for entry in transcript.entries[end:]) + self._room(context).total <= context.target


def _ready(transcript: Transcript, stretch: Stretch, context: Context) -> tuple[Summary | None, int]:
    """The summary that reaches furthest within the stretch, a model's before another, and the index of what it does not tell."""
    inside = {i for span in stretch.spans for i in range(*span)}
    places = {last_tip(transcript.entries[g.end - 1]): g.end for g in transcript.groups if g.end - 1 in inside}
    found = [(places[s.tip], s.kind == "llm", s) for s in context.summaries if s.tip and s.tip in places]
    at, _, summary = max(found, key=lambda one: one[:2], default=(0, False, None))
    return summary, at


def _upto(spans: Sequence[Span], end: int) -> tuple[Span, ...]:
    return tuple(Span(span.start, min(span.end, end)) for span in spans if span.start < end)


def _role(transcript: Transcript, at: int) -> str:
    return transcript.entries[at].message.role if 0 <= at < len(transcript.entries) else ""


def _framed(transcript: Transcript, span: Span, text: str, context: Context) -> tuple[Message, ...]:
    """The frame so that roles still alternate with its neighbours, whatever they are."""
    before, after = _role(transcript, span.start - 1), _role(transcript, span.end)
    frame = frames.said("assistant" if before == "user" else "user", text)
    if before != "user":
        return (frame, frames.acknowledgement(context.language)) if after == "user" else (frame,)
    if after == "assistant":
        return _carried(transcript, span, text, context) or (frame, frames.gap("user", context.language))
    return (frame,)


def _bridged(transcript: Transcript, span: Span, context: Context) -> tuple[Message, ...]:
    """What stands in place of a further span: nothing, or as little as keeps the roles in turn."""
    before, after = _role(transcript, span.start - 1), _role(transcript, span.end)
    if before == "user" and after == "assistant":
        return _carried(transcript, span, frames.WORDINGS[context.language].steps, context)
    if before == after and before in ("user", "assistant"):
        return (frames.gap("assistant" if before == "user" else "user", context.language),)
    return ()


def _carried(transcript: Transcript, span: Span, text: str, context: Context) -> tuple[Message, ...]:
    """The last group of a span, shortened, with a text in it; () if it is no assistant's."""
    group = next(group for group in reversed(transcript.groups) if group.end <= span.end)
    messages = [entry.message for entry in transcript.entries[group.start : group.end]]
    return frames.carried(messages, text, context.language) if messages[0].role == "assistant" else ()
