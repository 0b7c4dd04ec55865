"""Which tips come after which: pure, shared by the stores."""

from __future__ import annotations

from collections.abc import Iterable

from ctxproxy.core.messages import Tip


def descendants(family: Iterable[tuple[Tip, Tip]], tip: Tip) -> set[Tip]:
    """`tip` and every tip that comes after it, of (tip, parent) pairs in which no child stands before its parent."""
    found = {tip}
    for child, parent in family:
        if parent in found:
            found.add(child)
    return found
