"""The middle gives way to one framed summary in its place: the first messages, which say what all is for, and the newest stay (001-47)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import msgspec

from ctxproxy.core import frames
from ctxproxy.core.backgrounds import Room
from ctxproxy.core.exchanges import first_messages, newest_messages
from ctxproxy.core.language import Language
from ctxproxy.core.messages import Message, text_of, with_fields
from ctxproxy.core.policy import Count
from ctxproxy.core.stages.base import Context, register
from ctxproxy.core.stages.summarize import READY_SLACK, Summarize
from ctxproxy.core.stretches import Stretch, is_fresh, stretch_to, tokens_of
from ctxproxy.core.transcript import Edit, Fold, Span, Transcript

NOTES: dict[Language, str] = {"en": "Summary of the {} messages that stood here:", "zh": "历史摘要（代替此处的 {} 条消息）："}
"""What the summary covers (001-48, 001-68)."""


@register("summarize_middle", loss="lossy")
class SummarizeMiddle(Summarize, frozen=True, forbid_unknown_fields=True):
    """Folds all but the first `keep_first` and the last `keep_last` messages, both snapped to whole groups, into a frame of at most
    `max_summary_tokens`; else as `summarize`.
    """

    fill: bool = False
    keep_first: Annotated[int, msgspec.Meta(ge=0)] = 5
    keep_last: Count = 5
    max_summary_tokens: Count | None = None

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        for edit in super().propose(transcript, context):
            noted = _noted(transcript, edit, context.language) if isinstance(edit, Fold) and edit.by else edit
            if isinstance(noted, Fold) and any(map(frames.is_frame, noted.by)) and not _gains(transcript, noted, context):
                return  # the note made it too long; and without the summary nothing may count as told in it
            yield noted

    def _stretch(self, transcript: Transcript, context: Context) -> Stretch | None:
        if transcript.tokens <= context.target:
            return None
        kept = transcript.protected | {i for i, entry in enumerate(transcript.entries) if entry.message.directives.never_summarize}
        head = range(first_messages(transcript, self.keep_first))
        stretch = stretch_to(transcript, newest_messages(transcript, self.keep_last), kept | set(head))
        return stretch if stretch and is_fresh(transcript, stretch, self.name) else None

    def _room(self, context: Context) -> Room:
        room, most = super()._room(context), self.max_summary_tokens
        return room if most is None else Room(min(room.total, most), room.words, min(room.summary, most))

    def _enough(self, transcript: Transcript, end: int, context: Context) -> bool:
        left = tokens_of(transcript, [Span(0, first_messages(transcript, self.keep_first)), Span(end, len(transcript.entries))])
        return left + self._room(context).total <= context.target + int((context.limit - context.target) * READY_SLACK)


def _noted(transcript: Transcript, fold: Fold, language: Language) -> Fold:
    """The fold with a line in its frame that says how many messages it stands for."""
    covered = sum(len(entry.covers) or bool(entry.tip) for entry in transcript.entries[fold.span.start : fold.span.end])
    return replace(fold, by=tuple(_with_note(message, NOTES[language].format(covered)) for message in fold.by))


def _with_note(message: Message, note: str) -> Message:
    title, _, rest = text_of(message).partition("\n")
    return with_fields(message, content=f"{title}\n{note}\n{rest}") if frames.is_frame(message) else message


def _gains(transcript: Transcript, fold: Fold, context: Context) -> bool:
    return sum(map(context.count, fold.by)) < tokens_of(transcript, [fold.span])
