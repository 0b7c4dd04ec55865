"""Keeps both ends and leaves out the middle, with one note at the seam: filled with whole groups from the head and the tail in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ctxproxy.core.folding import Folder
from ctxproxy.core.messages import SYSTEM_ROLES, Message
from ctxproxy.core.seams import silent_folds
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Fold, Span, Transcript

REASON = "the middle"


@register("middle_out", loss="lossy")
class MiddleOut(Stage, frozen=True, forbid_unknown_fields=True):
    """Leaves as many groups of the head and the tail as fit the target."""

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        folder = Folder(transcript, context.language)
        low, high = _filled(transcript, folder, context)
        folds = _folds(transcript, folder, _seam(transcript, folder, low, high), context)
        main = max(folds, key=lambda fold: self._weight(transcript, fold), default=None)
        for fold in folds:
            by = fold.by or _note(transcript, folder, fold.span) if fold is main else fold.by
            yield replace(fold, by=by, reason=REASON)

    def _weight(self, transcript: Transcript, fold: Fold) -> tuple[bool, int]:
        """The widest gap has the note; where one has it already that could do without, that stays the one."""
        noted = not fold.by and any(entry.stage == self.name for entry in transcript.entries[fold.span.start : fold.span.end])
        return noted, fold.span.end - fold.span.start


def _filled(transcript: Transcript, folder: Folder, context: Context) -> tuple[int, int]:
    """The numbers of the first group that the head does not hold and of the first that the tail does; the notes are paid for."""
    groups = transcript.groups
    sizes = [sum(entry.tokens for entry in transcript.entries[group.start : group.end]) for group in groups]
    free = [folder.kept.isdisjoint(range(*group)) for group in groups]
    islands = sum(1 for at in range(1, len(free)) if free[at] and not free[at - 1])
    left = context.target - sum(size for size, one in zip(sizes, free, strict=True) if not one)
    left -= (islands + 1) * context.count(folder.answer)
    low, high = 0, len(groups)
    head = tail = True
    while low < high and (head or tail):
        if head and (head := _fits(free, sizes, low, left)):
            left -= free[low] * sizes[low]
            low += 1
        if low < high and tail and (tail := _fits(free, sizes, high - 1, left)):
            high -= 1
            left -= free[high] * sizes[high]
    return low, high


def _fits(free: Sequence[bool], sizes: Sequence[int], at: int, left: int) -> bool:
    return not free[at] or sizes[at] <= left


def _seam(transcript: Transcript, folder: Folder, low: int, high: int) -> Span:
    """The span between two groups; a lone answer beside it goes too where a note could not stand between a user and an assistant."""
    groups, entries = transcript.groups, transcript.entries
    if low >= high:
        return Span(0, 0)
    start, end = groups[low].start, groups[high - 1].end
    before, after = entries[start - 1].message.role if start else "", entries[end].message.role if end < len(entries) else ""
    if (before, after) == ("assistant", "user") and low > 1 and start - 1 not in folder.kept:
        start = groups[low - 1].start
    if (before, after) == ("user", "assistant") and high < len(groups) - 1 and folder.kept.isdisjoint(range(*groups[high])):
        end = groups[high].end
    return Span(start, end)


def _folds(transcript: Transcript, folder: Folder, span: Span, context: Context) -> list[Fold]:
    """The folds of a span; without words of ours beside a system message that stays, as nobody knows what will stand behind it."""
    unsure = any(transcript.entries[at].message.role in SYSTEM_ROLES for at in folder.kept.intersection(range(span.start - 1, span.end + 1)))
    return silent_folds(transcript, span, context.language, REASON) if unsure else list(folder.runs(span))


def _note(transcript: Transcript, folder: Folder, span: Span) -> tuple[Message, ...]:
    """One message that tells of the gap, where one of either role can stand; () at an end of the prompt, beside a system message and
    where neither can.
    """
    entries = transcript.entries
    around = {entry.message.role for entry in (*entries[: span.start][-1:], *entries[span.end :][:1])}
    if span.start == 0 or span.end >= len(entries) or not SYSTEM_ROLES.isdisjoint(around):
        return ()
    return next(((note,) for note in (folder.answer, folder.question) if note.role not in around or not folder.alternates), ())
