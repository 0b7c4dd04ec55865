"""What counts as recent and what may be edited, for the stages that shorten."""

from __future__ import annotations

from ctxproxy.core.transcript import Entry, Transcript


def recent_start(transcript: Transcript, keep_turns: int, max_tokens: int, messages: int | None = None) -> int:
    """The index from which on entries are recent: in the newest turns and in the newest groups of together `max_tokens` tokens; or, if
    told, in the newest `messages`, whatever their size (002-28).

    The second bound makes one long turn (one user message, 300 tool calls) compactable; the newest group is always recent.
    """
    if messages is not None:
        return newest_messages(transcript, messages)
    turns, start = transcript.turns, transcript.newest.start
    oldest = turns[-keep_turns].start if 0 < keep_turns <= len(turns) else 0 if keep_turns else start
    tokens = sum(entry.tokens for entry in transcript.entries[start:])
    for group in reversed(transcript.groups):
        if group.start >= start:
            continue
        tokens += sum(entry.tokens for entry in transcript.entries[group.start : group.end])
        if tokens > max_tokens or group.start < oldest:
            break
        start = group.start
    return start


def may_edit(entry: Entry) -> bool:
    """Whether a stage may make an entry smaller: it is not pinned, and the client did not ask to keep it whole."""
    return not entry.pinned and not entry.message.directives.never_summarize


def first_messages(transcript: Transcript, count: int) -> int:
    """Where the first `count` messages end, the group that the last of them belongs to whole."""
    return next((group.end for group in transcript.groups if group.end >= count), len(transcript.entries)) if count else 0


def newest_messages(transcript: Transcript, count: int) -> int:
    """Where the newest `count` messages begin, the group that the first of them belongs to whole."""
    start = max(len(transcript.entries) - count, 0)
    return min((group.start for group in transcript.groups if group.end > start), default=0)
