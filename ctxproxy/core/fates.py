"""What became of each message of a history under a plan, and why: sent, compacted, summarized or dropped; by which stage; for how many tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ctxproxy.core.checkpoints import summarizes
from ctxproxy.core.frames import is_filler, is_frame
from ctxproxy.core.messages import Tip
from ctxproxy.core.planned import Plan
from ctxproxy.core.situation import Situation, recent_turns
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.transcript import Entry, Transcript

MessageState: TypeAlias = Literal["sent", "compacted", "summarized", "dropped"]


@dataclass(frozen=True, slots=True)
class Fate:
    """One message of the history; sizes in tokens."""

    tip: Tip
    role: str
    state: MessageState
    stage: str
    """The stage that changed it or took it out; "" where none did."""
    why: str
    tokens_before: int
    tokens_after: int
    """0 where it is no entry of its own any more."""
    entry: int | None
    """The index in the transcript of the entry that it is, or that stands in for it."""


class _Found(NamedTuple):
    state: MessageState
    stage: str
    why: str
    tokens: int
    entry: int | None


def fates(s: Situation, plan: Plan) -> tuple[Fate, ...]:
    """What became of each message of the history, oldest first."""
    found = dict(_found(s, plan))
    return tuple(
        Fate(tip, message.role, at.state, at.stage, at.why, before, at.tokens, at.entry)
        for tip, message, before in zip(s.reconciled.tips, s.reconciled.history, s.counts, strict=True)
        for at in [found.get(tip, UNTOLD)]
    )


UNTOLD = _Found("dropped", "", "left out by an earlier decision that does not say more", 0, None)


def _found(s: Situation, plan: Plan) -> Iterator[tuple[Tip, _Found]]:
    """Each message with what became of it; where there are two for one message, the later one holds."""
    transcript = plan.transcript
    reasons = whys(s, plan)
    for left in transcript.left:
        lost = _left_out(transcript, left.stage, left.reason, None)
        yield from ((tip, lost) for tip in left.tips)
    for at, entry in enumerate(transcript.entries):
        if entry.covers:
            gone = _left_out(transcript, entry.stage, entry.reason, at)
            yield from ((tip, gone) for tip in entry.covers)
        if entry.tip:
            state: MessageState = "sent" if entry.origin == "original" else "compacted"
            yield entry.tip, _Found(state, entry.stage, reasons[at], entry.tokens, at)


def _left_out(transcript: Transcript, stage: str, reason: str, place: int | None) -> _Found:
    """What became of messages that a stage folded, into the entry at `place` or into nothing."""
    because = f": {reason}" if reason else ""
    told = place if place is not None and _tells(transcript.entries[place]) else _teller(transcript, stage)
    if told is not None:
        return _Found("summarized", stage, f"summarized by {stage}{because}", 0, told)
    if summarizes(stage):
        because = ": the summary that told of it is left out too"
    return _Found("dropped", stage, f"left out by {stage} ({_loss(stage)}){because}", 0, place)


def _teller(transcript: Transcript, stage: str) -> int | None:
    """The entry in which a stage tells of what it folded elsewhere; None for a stage that tells nothing."""
    if not summarizes(stage):
        return None
    own = [at for at, entry in enumerate(transcript.entries) if entry.stage == stage]
    return next((at for at in own if _tells(transcript.entries[at])), next((at for at in own if transcript.entries[at].tip), None))


def _tells(entry: Entry) -> bool:
    """Whether an entry tells of the messages that it covers: a frame does, whoever shortened it, a word between two messages does not."""
    return is_frame(entry.message) or (summarizes(entry.stage) and entry.origin == "inserted" and not is_filler(entry.message))


def _loss(stage: str) -> str:
    return REGISTRY[stage].loss if stage in REGISTRY else "lossy"


def whys(s: Situation, plan: Plan) -> list[str]:
    """Why each entry of the transcript stands as it does, in words."""
    transcript = plan.transcript
    turns, keep = transcript.turns, recent_turns(s)
    recent = turns[-keep].start if 0 < keep <= len(turns) else 0 if keep else len(transcript.entries)
    return [_changed(entry) or _kept(plan, at, recent, keep) for at, entry in enumerate(transcript.entries)]


def _changed(entry: Entry) -> str:
    """Why an entry is no original; "" for one that is."""
    because = f": {entry.reason}" if entry.reason else ""
    if entry.origin == "edited":
        return f"shortened by {entry.stage} ({_loss(entry.stage)}){because}; the original is kept"
    if entry.origin == "inserted":
        return f"inserted by {entry.stage}{f' in place of {len(entry.covers)} messages' if entry.covers else ''}{because}"
    return ""


def _kept(plan: Plan, at: int, recent: int, keep: int) -> str:
    """Why an original is sent as it is: the rule that keeps it, else that there was no need, or no way."""
    transcript = plan.transcript
    reasons = (
        (transcript.entries[at].pinned, "pinned: never changed"),
        (at == transcript.last_user, "the last user message: never changed"),
        (at >= transcript.newest.start, "in the newest group: never left out"),
        (not plan.changed and plan.fits, "fits: the whole history is sent as it is"),
        (not plan.fits, "no stage could shorten it"),
        (at >= recent, f"recent: in the newest {keep} turns"),
    )
    return next((reason for holds, reason in reasons if holds), "fits beside what was changed")
