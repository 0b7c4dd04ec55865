"""What a checkpoint says, as bytes: the tips that it stands for are most of it, so they are packed, 16 bytes each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from ctxproxy.core.messages import Tip
from ctxproxy.core.records import Checkpoint, FrozenEntry, LeftOut

TIP_CHARS = 32
PackedTips: TypeAlias = bytes | tuple[Tip, ...]


class PackedEntry(msgspec.Struct, frozen=True, array_like=True):
    """A `FrozenEntry`."""

    tip: Tip
    raw: bytes | None
    tokens: int
    stage: str
    covers: PackedTips
    reason: str


class PackedLeft(msgspec.Struct, frozen=True, array_like=True):
    """A `LeftOut`."""

    tips: PackedTips
    stage: str
    reason: str


class Decision(msgspec.Struct, frozen=True, array_like=True):
    """A list; a later version may add to its end, with a default for the rows of earlier ones. Those had entries that were not packed."""

    entries: tuple[PackedEntry | FrozenEntry, ...]
    actions: tuple[tuple[str, int], ...]
    left: tuple[PackedLeft | LeftOut, ...] = ()


def decision_of(checkpoint: Checkpoint) -> bytes:
    """What is kept of a checkpoint in one column."""
    entries = [PackedEntry(e.tip, e.raw, e.tokens, e.stage, _packed(e.covers), e.reason) for e in checkpoint.entries]
    left = [PackedLeft(_packed(one.tips), one.stage, one.reason) for one in checkpoint.left]
    return msgspec.msgpack.encode(Decision(tuple(entries), checkpoint.actions, tuple(left)))


def decided(decision: bytes) -> tuple[tuple[FrozenEntry, ...], tuple[tuple[str, int], ...], tuple[LeftOut, ...]]:
    """Entries, actions and what was left out."""
    said = msgspec.msgpack.decode(decision, type=Decision)
    return tuple(map(_entry, said.entries)), said.actions, tuple(map(_left, said.left))


def _entry(entry: PackedEntry | FrozenEntry) -> FrozenEntry:
    if isinstance(entry, FrozenEntry):
        return entry
    return FrozenEntry(entry.tip, entry.raw, entry.tokens, entry.stage, _tips(entry.covers), entry.reason)


def _left(one: PackedLeft | LeftOut) -> LeftOut:
    return one if isinstance(one, LeftOut) else LeftOut(_tips(one.tips), one.stage, one.reason)


def _packed(tips: Sequence[Tip]) -> PackedTips:
    """Tips as the bytes that they name in hexadecimal; as they are where one of them names none."""
    said = "".join(tips)
    try:
        packed = bytes.fromhex(said)
    except ValueError:
        return tuple(tips)
    return packed if packed.hex() == said and all(len(tip) == TIP_CHARS for tip in tips) else tuple(tips)


def _tips(packed: PackedTips) -> tuple[Tip, ...]:
    return packed if isinstance(packed, tuple) else tuple(packed.hex(" ", TIP_CHARS // 2).split())
