"""What gives texts a place by their meaning: `Embedder`, and the table that finds the nearest of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ctxproxy.core.text_index import Place
from ctxproxy.ports import Headers


@dataclass(frozen=True, slots=True)
class Access:
    """Where a request goes and with which credential; kept in memory only."""

    base_url: str
    credentials: Headers = field(default=(), repr=False)


class VectorTable(Protocol):
    """The vectors of one session, to be looked through; not for several threads at once."""

    @property
    def size_bytes(self) -> int: ...

    def __len__(self) -> int: ...

    def add(self, vectors: Mapping[Place, bytes]) -> None:
        """Put vectors in; one of a place that is there already counts in its stead, one of another length is passed over."""
        ...

    def nearest(self, vector: bytes, most: int) -> dict[Place, float]:
        """The places whose vectors are nearest to one, with their cosines, none of 0 or less; takes milliseconds for thousands."""
        ...


class Embedder(Protocol):
    """Makes vectors; those made under one `name` can be compared with each other."""

    @property
    def name(self) -> str: ...

    @property
    def needs_access(self) -> bool:
        """Whether it asks an upstream, on behalf of a request."""
        ...

    async def embed(self, texts: Sequence[str], access: Access | None, within_s: float) -> list[bytes]:
        """A vector for each text, b"" for one that it cannot read; raises EmbedderUnavailable, also where it takes longer."""
        ...

    def table(self) -> VectorTable:
        """An empty one."""
        ...
