"""Which pieces to take when each is worth what it adds: budgeted maximum coverage, greedily, lazily evaluated."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf

COVERED = 0.2
"""What a word still counts each time it is said again."""
MOST_RECOUNTS = 3
"""Of each piece, on average, that had to wait: conversations need one or two; a log of the same few words, where each line makes all others count
less, would need hundreds, and its lines are worth the same anyway."""
LEAST_WEIGHED = 64
"""At a time: to put one into its place takes as long as to weigh it."""


class _Now(dict[str, float]):
    """What words count by now: at first as much as told."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights

    def __missing__(self, word: str) -> float:
        weight = self[word] = self._weights[word]
        return weight


def best_first(
    bags: Sequence[Iterable[str]], weights: Mapping[str, float], prices: Sequence[float], most: Sequence[float] | None = None
) -> Iterator[int]:
    """The indexes of pieces in the order in which their words are worth their price, each making its words count less.

    A gain only falls as more is covered, so one that is still the best after recounting is the best of all. `most`, where told, is what
    each is worth at most: those that cannot be among the best two yet are not weighed.
    """
    total, told = len(bags), [inf] * len(bags) if most is None else most
    waiting, at, recounts = sorted(range(total), key=told.__getitem__, reverse=True), 0, MOST_RECOUNTS * total
    least, by_now = (total, dict(weights)) if most is None else (LEAST_WEIGHED, _Now(weights))
    at_first, now = weights.__getitem__, by_now.__getitem__
    heap = [(inf, -1)] * 3  # behind all others, so that there always are two next ones
    while True:
        left, right = heap[1][0], heap[2][0]
        second = left if left < right else right
        if at < total and -told[waiting[at]] <= second:
            some = waiting[at : at + max(least, at // 2)]
            heap += [(-sum(map(at_first, bags[i])) / prices[i], i) for i in some]
            heapq.heapify(heap)
            at += len(some)
            continue
        old, i = heap[0]
        if old >= 0:
            return
        gain = -sum(map(now, bags[i])) / prices[i]
        if old < gain < 0 and recounts and gain > second:
            recounts -= 1
            heapq.heapreplace(heap, (gain, i))
            continue
        heapq.heappop(heap)
        if gain < 0:
            yield i
            for word in bags[i]:
                by_now[word] *= COVERED
