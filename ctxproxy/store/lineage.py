"""Which tips come after which: pure, shared by the stores."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ctxproxy.core.messages import Tip


def descendants(family: Iterable[tuple[Tip, Tip]], *tips: Tip) -> set[Tip]:
    """These tips and every one that comes after any of them, of (tip, parent) pairs in which no child stands before its parent."""
    found = set(tips)
    for child, parent in family:
        if parent in found:
            found.add(child)
    return found


def furthest(tips: Sequence[Tip], places: Iterable[Sequence[Any]], most: int | None) -> list[int]:
    """The numbers of those (number, tip, variant) whose tip is among these, of each variant the `most` nearest to their end; None: all."""
    depths = {tip: at for at, tip in enumerate(tips)}
    on_chain = sorted(((depths[tip], number, variant) for number, tip, variant in places if tip in depths), key=lambda one: -one[0])
    taken: dict[Hashable, list[int]] = {}
    for _, number, variant in on_chain:
        taken.setdefault(variant, []).append(number)
    return [number for numbers in taken.values() for number in numbers[:most]]
