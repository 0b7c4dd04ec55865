"""Frozen decisions: what a history is sent as, up to a tip, replayed byte for byte until the prompt is too long again."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ctxproxy.core import jsontext
from ctxproxy.core.messages import Tip, read
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import Checkpoint, FrozenEntry, LeftOut, Summary
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.transcript import CountMessage, Entry, Origin, Transcript, joined

RESCUE = "rescue"
"""The action that marks a decision of the ladder: it stands even where the believed window says that more would fit."""
BY_HAND = "by_hand"
"""The same for one that somebody asked for."""
LEFT_TIPS = 5000
"""A decision remembers so many of the messages that left no trace, the newest; of older ones is told only that they are left out."""


def variant_of(model: str, policy: Policy) -> str:
    """Names the decisions that belong together: those for one model under one preset or pipeline."""
    if policy.pipeline is None:
        return _variant_of_preset(model, policy.preset)
    return _variant(model, [policy.preset, list(policy.pipeline)])


@lru_cache(maxsize=256)
def _variant_of_preset(model: str, preset: str) -> str:
    return _variant(model, [preset, None])


def _variant(model: str, decided_by: list[object]) -> str:
    stages = jsontext.canonical(decided_by)
    return hashlib.blake2b(model.encode("utf-8", "surrogatepass") + b"\n" + stages, digest_size=12).hexdigest()


def freeze(transcript: Transcript, tip: Tip, variant: str, now: float, *, wants: Tip, actions: Sequence[tuple[str, int]]) -> Checkpoint:
    """The decision that a history up to `tip` is sent as this transcript."""
    return Checkpoint(tip, variant, tuple(map(_frozen, transcript.entries)), now, wants, tuple(actions), _newest(transcript.left))


def _frozen(entry: Entry) -> FrozenEntry:
    raw = None if entry.origin == "original" else entry.message.raw
    return FrozenEntry(entry.tip, raw, entry.tokens, entry.stage, entry.covers, entry.reason)


def _newest(left: Sequence[LeftOut]) -> tuple[LeftOut, ...]:
    """At most `LEFT_TIPS` of the messages, those that were left out last."""
    kept: list[LeftOut] = []
    room = LEFT_TIPS
    for one in reversed(left):
        if room > 0:
            kept.append(replace(one, tips=one.tips[-room:]))
            room -= len(one.tips)
    return tuple(reversed(kept))


def anchored(checkpoint: Checkpoint, tips: Sequence[Tip]) -> Checkpoint | None:
    """The same decision at the earliest tip that it needs; None if that is its own.

    What it leaves as it is at its end is no part of it: a client whose last message is another one each time (notes that an editor
    or a retriever adds and takes out again) finds it there.
    """
    entries, left = checkpoint.entries, 0
    while left < min(len(entries), len(tips)) and entries[-1 - left].raw is None and entries[-1 - left].tip == tips[-1 - left]:
        left += 1
    if left in (0, len(entries), len(tips)):
        return None
    return replace(checkpoint, tip=tips[-1 - left], entries=entries[:-left])


def resume(
    tips: Sequence[Tip], checkpoints: Collection[Checkpoint], variant: str, summaries: Collection[Summary] = (), forgotten: Collection[Tip] = ()
) -> Checkpoint | None:
    """The decision to replay for a history: the deepest of its variant, but none that holds what is forgotten by now, and none made
    without one of these summaries.
    """
    if not checkpoints:
        return None
    depth = {tip: at for at, tip in enumerate(tips)}
    ready, gone = {s.tip for s in summaries if s.kind == "llm"}, frozenset(forgotten)
    candidates = [c for c in checkpoints if c.variant == variant and c.tip in depth and not is_void(c, ready) and not _holds(c, gone)]
    return max(candidates, key=lambda c: (depth[c.tip], c.created), default=None)


def is_void(checkpoint: Checkpoint, ready: Collection[Tip]) -> bool:
    """Whether a checkpoint was made without a summary that is ready by now; what rescued a request stands until the next compaction."""
    return checkpoint.wants in ready and not is_rescue(checkpoint)


def is_rescue(checkpoint: Checkpoint) -> bool:
    """Whether a decision was made after an overflow, or by hand."""
    return any(name in (RESCUE, BY_HAND) for name, _ in checkpoint.actions)


def is_expansion(checkpoint: Checkpoint) -> bool:
    """Whether a decision says that all goes out as it came again: nothing acted."""
    return not checkpoint.actions


def holds_only(checkpoint: Checkpoint, action: str) -> bool:
    """Whether nothing was done but this."""
    return bool(checkpoint.actions) and all(name == action for name, _ in checkpoint.actions)


def _holds(checkpoint: Checkpoint, forgotten: frozenset[Tip]) -> bool:
    """Whether one of its entries is such a message, or stands in for it, or may tell of it."""
    if not forgotten:
        return False
    told = (one.tips for one in checkpoint.left if summarizes(one.stage))
    return any(not forgotten.isdisjoint(tips) for tips in (*((e.tip, *e.covers) for e in checkpoint.entries), *told))


def summarizes(stage: str) -> bool:
    """Whether a text of the stage of this name tells of what it folds."""
    return stage in REGISTRY and REGISTRY[stage].summarizes


def replay(checkpoint: Checkpoint, base: Transcript, count: CountMessage) -> Transcript:
    """The transcript that a decision makes of a history: its entries, then all that came after its tip."""
    by_tip: Mapping[Tip, Entry] = {entry.tip: entry for entry in base.entries if entry.tip}
    if checkpoint.tip not in by_tip:
        return base
    at = next(at for at, entry in enumerate(base.entries) if entry.tip == checkpoint.tip)
    entries, left = base.entries[at + 1 :], joined((*checkpoint.left, *base.left))
    kept = [one for one in checkpoint.entries if one.raw is not None or one.tip in by_tip]
    return Transcript((*[by_tip[one.tip] if one.raw is None else _thawed(one, one.raw, by_tip, count) for one in kept], *entries), left)


def _thawed(frozen: FrozenEntry, raw: bytes, by_tip: Mapping[Tip, Entry], count: CountMessage) -> Entry:
    message = read(raw)
    pinned = by_tip[frozen.tip].pinned if frozen.tip in by_tip else False
    origin: Origin = "edited" if frozen.tip else "inserted"
    return Entry(message, count(message), frozen.tip, origin, frozen.stage, frozen.covers, pinned, frozen.reason)
