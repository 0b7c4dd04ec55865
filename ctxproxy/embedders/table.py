"""Vectors in a byte a number, and a table of them that is looked through whole: 10,000 in a few milliseconds, so that no index is needed.

A cosine asks for the direction only: each vector is stretched to its own largest number, which costs under a thousandth of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ctxproxy.core.text_index import Place

LARGEST = 127
BLOCK_NUMBERS = 131_072
"""Multiplied at once, in 4 bytes each: what fits the processor's cache, and what numpy does in one thread (5 times the time in several)."""
FIRST_ROWS = 256
PLACE_BYTES = 300
"""About what a place takes beside its vector."""


def packed(rows: Any) -> list[bytes]:
    """A matrix's rows as bytes; b"" for one that is all zeros or holds what is no number."""
    found: list[bytes] = []
    for row in np.asarray(rows, dtype=np.float32):
        largest = float(np.abs(row).max(initial=0.0))
        found.append(np.rint(row * (LARGEST / largest)).astype(np.int8).tobytes() if 0.0 < largest < float("inf") else b"")
    return found


class Table:
    """A matrix that grows with what is put in: `ports.embedding.VectorTable`."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._row_of: dict[Place, int] = {}
        self._vectors: Any = np.empty((0, 0), dtype=np.int8)
        self._lengths: Any = np.empty(0, dtype=np.float32)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def size_bytes(self) -> int:
        return int(self._vectors.nbytes + self._lengths.nbytes) + PLACE_BYTES * len(self._places)

    def add(self, vectors: Mapping[Place, bytes]) -> None:
        for place, vector in vectors.items():
            if not self._places:
                self._vectors = np.empty((0, len(vector)), dtype=np.int8)
            if len(vector) == self._vectors.shape[1]:
                self._put(place, np.frombuffer(vector, dtype=np.int8))

    def nearest(self, vector: bytes, most: int) -> dict[Place, float]:
        if len(vector) != self._vectors.shape[1] or not self._places:
            return {}
        asked = np.frombuffer(vector, dtype=np.int8).astype(np.float32)
        asked /= max(float(np.linalg.norm(asked)), 1.0)
        count = len(self._places)
        cosines = self._products(asked) / self._lengths[:count]
        best = np.argpartition(-cosines, most - 1)[:most] if most < count else np.arange(count)
        return {self._places[row]: float(cosines[row]) for row in best.tolist() if cosines[row] > 0.0}

    def _products(self, asked: Any) -> Any:
        """The product of every row with a vector, block by block."""
        count, rows = len(self._places), max(1, BLOCK_NUMBERS // len(asked))
        products, block = np.empty(count, dtype=np.float32), np.empty((rows, len(asked)), dtype=np.float32)
        for at in range(0, count, rows):
            end = min(at + rows, count)
            np.copyto(block[: end - at], self._vectors[at:end])
            np.dot(block[: end - at], asked, out=products[at:end])
        return products

    def _put(self, place: Place, vector: Any) -> None:
        row = self._row_of.get(place)
        if row is None:
            row = self._row_of[place] = len(self._places)
            self._places.append(place)
            if row == len(self._vectors):
                self._grow(max(FIRST_ROWS, row + row // 2))
        self._vectors[row] = vector
        self._lengths[row] = max(float(np.linalg.norm(vector.astype(np.float32))), 1.0)

    def _grow(self, rows: int) -> None:
        vectors, lengths = np.empty((rows, self._vectors.shape[1]), dtype=np.int8), np.empty(rows, dtype=np.float32)
        vectors[: len(self._vectors)], lengths[: len(self._lengths)] = self._vectors, self._lengths
        self._vectors, self._lengths = vectors, lengths
