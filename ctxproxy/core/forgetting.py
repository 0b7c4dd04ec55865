"""Leaving messages out for good: those that somebody had forgotten or cleared, and those that the client let expire."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate

from ctxproxy.core.folding import Folder
from ctxproxy.core.language import language_of
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.records import LeftOut
from ctxproxy.core.transcript import CountMessage, Entry, Span, Transcript, joined

STAGE = "forget"
"""What inserted entries name as their stage."""
CLEARED = "context_clear"
"""The same where a conversation was cleared."""
RESTORED = "restore"
"""The same where a conversation went on after a restart."""
_REASONS = {
    RESTORED: "left behind at a restart, by sessions.restore_turns",
    STAGE: "forgotten or expired, with its group",
    CLEARED: "the conversation was cleared up to here",
}


def expired(history: Sequence[Message], tips: Sequence[Tip]) -> frozenset[Tip]:
    """The messages whose `expire_after_turns` is over: so many user messages have come after their own turn's."""
    if not [message for message in history if message.directives.expire_after_turns]:
        return frozenset()
    turns = list(accumulate(message.role == "user" for message in history))
    limits = ((tip, message.directives.expire_after_turns, turn) for tip, message, turn in zip(tips, history, turns, strict=True))
    return frozenset(tip for tip, limit, turn in limits if limit is not None and turns[-1] - turn >= limit)


def cleared(history: Sequence[Message], tips: Sequence[Tip], up_to: Collection[Tip]) -> frozenset[Tip]:
    """The messages up to the newest of those that a conversation was cleared at, but never the last user message or what follows it."""
    end = next((at + 1 for at in range(len(tips) - 1, -1, -1) if tips[at] in up_to), 0) if up_to else 0
    asked = next((at for at in range(len(history) - 1, -1, -1) if history[at].role == "user"), len(history))
    return frozenset(tips[: min(end, asked)])


def without(whole: Transcript, gone: Collection[Tip], count: CountMessage, stage: str = STAGE) -> Transcript:
    """The transcript without the groups of some messages, a word of ours where the roles would clash."""
    folder = Folder(whole, language_of([entry.message for entry in whole.entries]))
    out: list[Entry] = []
    at = 0
    spans = _runs(whole, gone)
    for run in spans:
        gap = folder.fold(run).by
        out += (*whole.entries[at : run.start], *(Entry(m, count(m), origin="inserted", stage=stage) for m in gap))
        at = run.end
    tips = tuple(entry.tip for span in spans for entry in whole.entries[span.start : span.end])
    return Transcript((*out, *whole.entries[at:]), joined((*whole.left, LeftOut(tips, stage, _REASONS[stage]))))


def _runs(whole: Transcript, gone: Collection[Tip]) -> list[Span]:
    """The longest spans of groups that all hold such a message, oldest first."""
    runs: list[Span] = []
    for group in whole.groups:
        if all(whole.entries[at].tip not in gone for at in range(*group)):
            continue
        start = runs.pop().start if runs and runs[-1].end == group.start else group.start
        runs.append(Span(start, group.end))
    return runs
