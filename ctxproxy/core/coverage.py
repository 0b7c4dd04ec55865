"""Which pieces to take when each is worth what it adds: budgeted maximum coverage, greedily, lazily evaluated."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

COVERED = 0.2
"""What a word still counts each time it is said again."""
MOST_RECOUNTS = 3
"""Of each piece, on average, that had to wait: conversations need one or two; a log of the same few words, where each line makes all others count
less, would need hundreds, and its lines are worth the same anyway."""


def best_first(bags: Sequence[Sequence[str]], weights: dict[str, float], prices: Sequence[float]) -> Iterator[int]:
    """The indexes of pieces in the order in which their words are worth their price, each making its words count less (`weights` is changed).

    A gain only falls as more is covered, so one that is still the best after recounting is the best of all.
    """
    weight, recounts = weights.__getitem__, MOST_RECOUNTS * len(bags)
    heap = [(-sum(map(weight, bag)) / price, i) for i, (bag, price) in enumerate(zip(bags, prices, strict=True))]
    heap += [(1.0, -1), (1.0, -1)]  # behind all others, so that there always are two next ones
    heapq.heapify(heap)
    while heap[0][0] < 0:
        old, i = heap[0]
        bag = bags[i]
        gain = -sum(map(weight, bag)) / prices[i]
        if old < gain < 0 and recounts:
            left, right = heap[1][0], heap[2][0]
            if gain > (left if left < right else right):
                recounts -= 1
                heapq.heapreplace(heap, (gain, i))
                continue
        heapq.heappop(heap)
        if gain < 0:
            yield i
            for word in bag:
                weights[word] *= COVERED
