"""Leaving out whole groups so that what stays needs no word of ours between: of H1 A1 H2 A2, A1 and H2 can go together, A1 alone cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxproxy.core.folding import Folder
from ctxproxy.core.language import Language
from ctxproxy.core.messages import SYSTEM_ROLES
from ctxproxy.core.transcript import Entry, Fold, Span, Transcript

UNSURE = "?"
"""What a system message that stays stands between may itself go: nobody knows yet what will follow it."""


def is_counted(entry: Entry) -> bool:
    """Whether an entry is a message of the history, or stands in for some: a word of ours that stands for nothing is none."""
    return entry.origin != "inserted" or bool(entry.covers)


def counted(transcript: Transcript) -> list[int]:
    """The indexes of the entries that a rule about numbers of messages counts."""
    return [at for at, entry in enumerate(transcript.entries) if is_counted(entry)]


def group_start(transcript: Transcript, at: int) -> int:
    """Where the group begins that an index is in."""
    return next(group.start for group in transcript.groups if at < group.end)


def group_end(transcript: Transcript, at: int) -> int:
    """Where the group ends that an index is in."""
    return next(group.end for group in transcript.groups if at < group.end)


def silent_folds(transcript: Transcript, span: Span, language: Language, reason: str, *, any_opening: bool = False) -> list[Fold]:
    """Folds for the groups of a span, but for what must stay; of each run so many from its beginning that roles stay in turn.

    `any_opening`: what is left may begin with an assistant message.
    """
    if span.start >= span.end:
        return []
    folder = Folder(transcript, language)
    folds: list[Fold] = []
    for run in _runs(folder, span):
        before = _role_before(transcript.entries, run[0].start)
        opening = "" if any_opening or not folder.user_first else "user"
        for group in reversed(run):
            unsure = Span(run[-1].end, span.end) if before else Span(group.end, len(transcript.entries))  # no system message may come first
            if _in_turn(before, _role_after(transcript.entries, group.end, unsure), opening, folder):
                folds.append(Fold(Span(run[0].start, group.end), reason=reason))
                break
    return folds


def _runs(folder: Folder, span: Span) -> Iterator[list[Span]]:
    run: list[Span] = []
    for group in folder.free_groups(span):
        if run and run[-1].end != group.start:
            yield run
            run = []
        run.append(group)
    if run:
        yield run


def _in_turn(before: str, after: str, opening: str, folder: Folder) -> bool:
    """Whether two roles may meet; "" before the first message, which has to be the user's if `opening` says so."""
    if after == UNSURE:
        return False
    if not before:
        return not opening or after in (opening, "")
    return before != after or before not in ("user", "assistant") or not folder.alternates


def _role_before(entries: Sequence[Entry], at: int) -> str:
    """The role of the last message before an index that is no system message, "" if there is none; no run ends beside a system message, so
    that one stays.
    """
    return next((role for entry in reversed(entries[:at]) if (role := entry.message.role) not in SYSTEM_ROLES), "")


def _role_after(entries: Sequence[Entry], at: int, unsure: Span) -> str:
    """The same behind an index; UNSURE behind a system message in a span."""
    while at < len(entries) and (role := entries[at].message.role) in SYSTEM_ROLES:
        if unsure.start <= at < unsure.end:
            return UNSURE
        at += 1
    return role if at < len(entries) else ""
