"""An embedder that needs nothing, for tests of what is around one: texts are near where they tell of the same few topics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ctxproxy.core.text_index import Place
from ctxproxy.errors import EmbedderUnavailable
from ctxproxy.ports.embedding import Access, VectorTable

TOPICS = (("paint", "daub"), ("house", "dwelling"), ("doctor", "physician"))


class PlainTable:
    """Cosines one by one."""

    def __init__(self) -> None:
        self.vectors: dict[Place, bytes] = {}

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def size_bytes(self) -> int:
        return 1000 * len(self.vectors)

    def add(self, vectors: Mapping[Place, bytes]) -> None:
        self.vectors.update(vectors)

    def nearest(self, vector: bytes, most: int) -> dict[Place, float]:
        found = {place: cosine(vector, one) for place, one in self.vectors.items()}
        return {place: found[place] for place in sorted(found, key=lambda place: -found[place])[:most] if found[place] > 0}


class TopicEmbedder:
    """Counts words of a few topics, synonyms as one; cannot read a text without any. Remembers what it was asked for."""

    def __init__(self, name: str = "topics", *, needs_access: bool = False) -> None:
        self.name = name
        self.needs_access = needs_access
        self.asked: list[list[str]] = []
        self.accesses: list[Access | None] = []
        self.broken = False

    async def embed(self, texts: Sequence[str], access: Access | None, within_s: float) -> list[bytes]:
        self.asked.append(list(texts))
        self.accesses.append(access)
        if self.broken:
            raise EmbedderUnavailable("it is broken")
        return [
            vector if any(vector := bytes(sum(min(text.lower().count(word), 5) for word in topic) for topic in TOPICS)) else b"" for text in texts
        ]

    def table(self) -> VectorTable:
        return PlainTable()


def cosine(one: bytes, other: bytes) -> float:
    """Of two vectors of small numbers."""
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))
