"""What a transcript is after a stage's edits."""

from __future__ import annotations

from collections.abc import Sequence

from ctxproxy.core.messages import Message, Tip, tool_calls
from ctxproxy.core.records import LeftOut
from ctxproxy.core.transcript import CountMessage, Edit, Entry, Origin, Replace, Transcript, joined
from ctxproxy.errors import InvalidEdit


def apply(transcript: Transcript, edits: Sequence[Edit], stage: str, count: CountMessage) -> Transcript:
    """The transcript after a stage's edits, all told in indexes of the given one.

    Raises InvalidEdit if one parts a group, overlaps another, or touches what is protected.
    """
    bounds = {group.start for group in transcript.groups} | {len(transcript.entries)}
    kept, fixed = transcript.protected, transcript.untouchable
    out: list[Entry] = []
    left: list[LeftOut] = []
    at = 0
    for edit in sorted(edits, key=_position):
        start, end = (edit.at, edit.at + 1) if isinstance(edit, Replace) else edit.span
        if start < at or end > len(transcript.entries):
            raise InvalidEdit(f"stage {stage} edits {start}:{end} twice or out of range")
        out += transcript.entries[at:start]
        if isinstance(edit, Replace):
            if start in fixed:
                raise InvalidEdit(f"stage {stage} edits the protected entry {start}")
            out.append(_replaced(transcript.entries[start], edit, stage, count))
        else:
            if start >= end or start not in bounds or end not in bounds:
                raise InvalidEdit(f"stage {stage} parts a group at {start}:{end}")
            if not kept.isdisjoint(range(start, end)):
                raise InvalidEdit(f"stage {stage} drops a protected entry in {start}:{end}")
            by, last = (edit.by[:-1], edit.by[-1]) if edit.keeps_last else (edit.by, None)
            covers = _covered(transcript.entries[start : end - edit.keeps_last])
            out += _folded(covers, by, edit.reason, stage, count)
            left += () if by else (LeftOut(covers, stage, edit.reason),)
            out += [_replaced(transcript.entries[end - 1], Replace(end - 1, last, edit.reason), stage, count)] if last else []
        at = end
    entries, all_left = (*out, *transcript.entries[at:]), joined((*transcript.left, *left))
    only_texts = all(isinstance(edit, Replace) for edit in edits)
    return transcript.in_shape(entries, all_left) if only_texts else Transcript(entries, all_left)


def _position(edit: Edit) -> int:
    return edit.at if isinstance(edit, Replace) else edit.span.start


def _replaced(old: Entry, edit: Replace, stage: str, count: CountMessage) -> Entry:
    if edit.message.role != old.message.role or _ids(edit.message) != _ids(old.message):
        raise InvalidEdit(f"stage {stage} changes role or call ids of entry {edit.at}")
    origin: Origin = "inserted" if old.origin == "inserted" else "edited"
    return old._replace(message=edit.message, tokens=count(edit.message), origin=origin, stage=stage, reason=edit.reason)


def _ids(message: Message) -> tuple[object, ...]:
    return (message.fields.get("tool_call_id"), tuple(call.id for call in tool_calls(message)))


def _covered(gone: Sequence[Entry]) -> tuple[Tip, ...]:
    return tuple(tip for entry in gone for tip in (entry.covers or ((entry.tip,) if entry.tip else ())))


def _folded(covers: tuple[Tip, ...], by: Sequence[Message], reason: str, stage: str, count: CountMessage) -> list[Entry]:
    return [Entry(m, count(m), origin="inserted", stage=stage, covers=() if n else covers, reason=reason) for n, m in enumerate(by)]
