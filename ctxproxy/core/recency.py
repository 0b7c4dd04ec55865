"""Where the newest part of a prompt begins that is to stay as it is: counted in tokens or in turns, always whole groups."""

from __future__ import annotations

from collections.abc import Sequence

from ctxproxy.core.transcript import Span, Transcript


def newest_tokens(transcript: Transcript, most_tokens: int) -> int:
    """Where the newest groups begin that have at most so many tokens together; the end of the prompt if not even one does."""
    start = len(transcript.entries)
    for group in reversed(transcript.groups):
        most_tokens -= sum(entry.tokens for entry in transcript.entries[group.start : group.end])
        if most_tokens < 0:
            break
        start = group.start
    return start


def own_turns(transcript: Transcript) -> Sequence[Span]:
    """The turns but one that a text of ours opens: it stands for turns that are gone."""
    return [turn for turn in transcript.turns if transcript.entries[turn.start].origin != "inserted"]


def newest_turns(transcript: Transcript, turns: int) -> int:
    """Where the newest finished turns begin, so many or all; the one that is being answered comes on top."""
    own = own_turns(transcript)
    return own[max(len(own) - turns - 1, 0)].start if own else 0


def fitting_start(transcript: Transcript, start: int, room_tokens: int) -> int:
    """The first group at or behind `start` from which on all fits the room; that of the newest group if none does."""
    newest = transcript.newest.start
    left = sum(entry.tokens for entry in transcript.entries[start:])
    for group in transcript.groups:
        if group.start < start:
            continue
        if left <= room_tokens or group.start >= newest:
            return min(group.start, newest)
        left -= sum(entry.tokens for entry in transcript.entries[group.start : group.end])
    return newest
