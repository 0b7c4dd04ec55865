"""A cache bounded in bytes that keeps what is used lately and often (003-20): what weighs least goes first.

    weight = 0.7 × recency + 0.3 × frequency          both from 0 to 1

Time is counted in accesses. Recency is 1 for the entry used last and 0 for the one that was not used for longest, in between by its place on
that stretch of time. Frequency is an entry's number of uses by that of the most used one; all numbers are halved when one reaches
`MOST_USES`, so that what was hot once does not stay for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

RECENCY_WEIGHT, FREQUENCY_WEIGHT = 0.7, 0.3
MOST_USES = 256

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class _Entry(Generic[V]):
    value: V
    size_bytes: int
    used_at: int
    uses: float = 1.0


class AdaptiveCache(Generic[K, V]):
    """Values by key, in at most `max_bytes` by the size that `size_of` gives."""

    def __init__(self, max_bytes: int, size_of: Callable[[V], int]) -> None:
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._entries: dict[K, _Entry[V]] = {}
        self._accesses = 0
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        """What all entries take."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value, which counts as a use of it; None if it is not there."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._use(entry)
        return entry.value

    def put(self, key: K, value: V) -> None:
        """Keep a value, in place of one that is there; others go until there is room, and one too large for all of it is not kept."""
        size, old = self._size_of(value), self._entries.get(key)
        if size > self._max_bytes:
            self.drop(key)
            return
        entry = old or _Entry(value, 0, 0, 0.0)
        self._bytes += size - entry.size_bytes
        entry.value, entry.size_bytes = value, size
        self._entries[key] = entry
        self._use(entry)
        if self._bytes > self._max_bytes:
            self._make_room(key)

    def drop(self, key: K) -> None:
        """Let a value go."""
        entry = self._entries.pop(key, None)
        self._bytes -= entry.size_bytes if entry else 0

    def weights(self) -> dict[K, float]:
        """What each entry weighs now."""
        oldest = min((entry.used_at for entry in self._entries.values()), default=0)
        span = max(self._accesses - oldest, 1)
        most = max((entry.uses for entry in self._entries.values()), default=1.0)
        return {key: RECENCY_WEIGHT * (entry.used_at - oldest) / span + FREQUENCY_WEIGHT * entry.uses / most for key, entry in self._entries.items()}

    def _use(self, entry: _Entry[V]) -> None:
        self._accesses += 1
        entry.used_at = self._accesses
        entry.uses += 1
        if entry.uses >= MOST_USES:
            for one in self._entries.values():
                one.uses /= 2

    def _make_room(self, newest: K) -> None:
        """Let the lightest go, but never the one that room is made for."""
        weights = self.weights()
        others = sorted(weights.keys() - {newest}, key=lambda key: weights[key], reverse=True)
        while self._bytes > self._max_bytes:
            self.drop(others.pop())
