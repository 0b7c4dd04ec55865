"""The oldest turns of a prompt, taken out whole: which ones can go, and what tells of them afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ctxproxy.core.backgrounds import Room, Source, background_of, is_spoken
from ctxproxy.core.exchanges import may_edit
from ctxproxy.core.extractive import squeeze
from ctxproxy.core.folding import Folder
from ctxproxy.core.frames import Background, frame_text, parse, without_frames
from ctxproxy.core.messages import Message, Tip, text_of
from ctxproxy.core.openings import opened, parted
from ctxproxy.core.records import Summary
from ctxproxy.core.stage_context import Context
from ctxproxy.core.stretches import READ_AGAIN_BYTES, framed, last_tip
from ctxproxy.core.transcript import Fold, Span, Transcript

LEAST_ROOM_TOKENS = 24
"""Less says nothing."""


@dataclass(frozen=True)
class Cut:
    """Everything before a turn that may go, taken out; what must stay parts it into several folds."""

    folds: tuple[Fold, ...]
    """Oldest first, never empty; in their places only what keeps roles in turn."""
    at: int
    """The index of the first kept turn."""
    tokens: int
    """What goes."""
    tips: tuple[Tip, ...]
    """The history up to the newest message that goes, without what stays of it."""


class Told(NamedTuple):
    """The ready summary that reaches furthest, and the index of the first entry that it does not tell."""

    summary: Summary | None
    until: int


def turns_to_trim(transcript: Transcript, context: Context) -> tuple[Span, ...]:
    """The turns that count: those of which something can go, and the last one."""
    *old, last = transcript.turns or (Span(0, 0),)
    folder = _folder(transcript, context)
    return (*(turn for turn in old if _can_go(transcript, turn, folder, context)), last)


def _can_go(transcript: Transcript, turn: Span, folder: Folder, context: Context) -> bool:
    """Whether anything of a turn but words of ours can go, and what then keeps roles in turn takes less room than that."""
    whole = folder.kept.isdisjoint(range(*turn))
    folder.reset()
    folds = [Fold(turn)] if whole else [fold for fold in folder.runs(turn) if _tokens(transcript, fold.span) > sum(map(context.count, fold.by))]
    return any(transcript.entries[at].origin != "inserted" for fold in folds for at in range(*fold.span))


def _folder(transcript: Transcript, context: Context) -> Folder:
    folder = Folder(transcript, context.language)
    folder.kept = staying(transcript)
    return folder


def cut_before(transcript: Transcript, at: int, context: Context) -> Cut:
    """Everything before an index at which a turn begins, but what must stay."""
    folds = tuple(_folder(transcript, context).runs(Span(0, at)))
    gone = [transcript.entries[place] for fold in folds for place in range(*fold.span)]
    newest = next((tip for tip in map(last_tip, reversed(gone)) if tip), "")
    standing = {entry.tip for entry in transcript.entries} - {entry.tip for entry in gone}
    history = list(context.originals)
    history = history[: history.index(newest) + 1] if newest in context.originals else [entry.tip for entry in gone]
    return Cut(folds, at, sum(entry.tokens for entry in gone), tuple(tip for tip in history if tip and tip not in standing))


def staying(transcript: Transcript) -> frozenset[int]:
    """The indexes of what is protected, pinned, or kept out by the client."""
    return transcript.protected | {at for at, entry in enumerate(transcript.entries) if not may_edit(entry)}


def told_by(transcript: Transcript, cut: Cut, summaries: Sequence[Summary]) -> Told:
    """The summary that tells most of a cut, a model's before another."""
    places = {tip: place for place, tip in enumerate(cut.tips)}
    found = [(places[one.tip], one.kind == "llm", one) for one in summaries if one.tip in places]
    place, _, summary = max(found, key=lambda one: one[:2], default=(-1, False, None))
    untold = set(cut.tips[place + 1 :])
    gone = (at for fold in cut.folds for at in range(*fold.span))
    return Told(summary, next((at for at in gone if last_tip(transcript.entries[at]) in untold), cut.at))


def with_background(transcript: Transcript, cut: Cut, told: Told, context: Context, reason: str, wants: Tip) -> list[Fold]:
    """The folds of a cut with what tells of it: at the start of the first kept user message, else in a frame; in neither where there is
    nothing to tell, or where it would take more room than was gained.
    """
    folds = [replace(fold, reason=reason, wants=wants) for fold in cut.folds]
    if context.summarizer == "off":
        return folds
    at = len(folds) - 1 if _can_open(transcript, cut) else _largest(transcript, folds)
    covered = _covered(transcript, cut, context)
    turns = max(sum(map(is_spoken, covered)), 1)
    bare = _placed(transcript, cut, folds[at], Background(""), turns, context)
    cost = sum(map(context.count, bare.by)) - (transcript.entries[cut.at].tokens if bare.keeps_last else 0)
    left = transcript.tokens - cut.tokens
    space = min(_tokens(transcript, folds[at].span), context.target - left if left < context.target else cut.tokens) - cost - 1
    room = min(context.summary_max_tokens, space)
    if room < LEAST_ROOM_TOKENS:
        return folds
    background = _background(covered, told, room, context)
    placed = _placed(transcript, cut, folds[at], background, turns, context)
    gains = sum(map(context.count, placed.by)) < _tokens(transcript, placed.span)
    if gains and frame_text(background, context.language) != frame_text(Background(""), context.language):
        folds[at] = placed
    return folds


def _can_open(transcript: Transcript, cut: Cut) -> bool:
    """Whether the first kept user message stands right behind what goes and may be edited: it is not the last one, not pinned."""
    alone = cut.at < transcript.newest.start and Span(cut.at, cut.at + 1) in transcript.groups
    first = transcript.entries[cut.at]
    return alone and cut.folds[-1].span.end == cut.at and cut.at not in staying(transcript) and first.message.role == "user"


def _placed(transcript: Transcript, cut: Cut, fold: Fold, background: Background, turns: int, context: Context) -> Fold:
    if _can_open(transcript, cut):
        message = opened(transcript.entries[cut.at].message, background, turns, context.language)
        return replace(fold, span=Span(fold.span.start, cut.at + 1), by=(*fold.by, message), keeps_last=True)
    return replace(fold, by=framed(transcript, fold.span, frame_text(background, context.language), context.language))


def _largest(transcript: Transcript, folds: Sequence[Fold]) -> int:
    return max(range(len(folds)), key=lambda at: _tokens(transcript, folds[at].span))


def _tokens(transcript: Transcript, span: Span) -> int:
    return sum(entry.tokens for entry in transcript.entries[span.start : span.end])


def _covered(transcript: Transcript, cut: Cut, context: Context) -> list[Message]:
    """All that is out of the prompt, as it was said; where that is not at hand, or is more than can be read in the time of a request, what
    now goes, as it stands.
    """
    found = [context.originals[tip] for tip in cut.tips if tip in context.originals]
    if found and len(found) == len(cut.tips) and sum(len(message.raw) for message in found) <= READ_AGAIN_BYTES:
        return found
    return [message for fold in cut.folds for at in range(*fold.span) for message in parted(transcript.entries[at].message)]


def _background(covered: Sequence[Message], told: Told, room: int, context: Context) -> Background:
    """The ready summary whole; without a model that writes one, what says most of the originals. Rules and pins are put in by the plan."""
    most = min(context.summary_max_tokens, room)
    if context.summarizer == "extractive":
        return background_of(Source(covered, covered, told.summary), (), Room(room, 0, most), context.count_text, context.language)
    earlier = (found.summary for found in (parse(text_of(message)) for message in covered) if found)
    return Background(squeeze(without_frames(told.summary.text if told.summary else "\n".join(earlier)), most, context.count_text))
