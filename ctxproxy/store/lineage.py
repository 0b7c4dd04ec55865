"""Which tips come after which: pure, shared by the stores."""

from __future__ import annotations

from collections.abc import Iterable

from ctxproxy.core.messages import Tip


def descendants(family: Iterable[tuple[Tip, Tip]], *tips: Tip) -> set[Tip]:
    """These tips and every one that comes after any of them, of (tip, parent) pairs in which no child stands before its parent."""
    found = set(tips)
    for child, parent in family:
        if parent in found:
            found.add(child)
    return found
