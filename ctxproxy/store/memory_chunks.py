"""The search index in dictionaries: `ports.Chunks`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import NamedTuple

from ctxproxy.core.chunks import Chunk, Indexed, Piece, StoredVector
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import Session, SessionKey
from ctxproxy.core.text_index import NO_POSTINGS, Place, Postings, TextIndex

FindSession = Callable[[SessionKey], Session | None]
"""The session of a key; raises StoreUnavailable once the store is closed."""


class Sources(NamedTuple):
    """What of a session should be in the index, by its end: the newest message of each branch but for forgotten ones, the summaries."""

    key: SessionKey
    branches: frozenset[Tip]
    summaries: frozenset[Tip]


class _Vector(NamedTuple):
    number: int
    embedder: str
    vector: bytes


@dataclass(slots=True)
class _Kept:
    index: TextIndex = field(default_factory=TextIndex)
    pieces: dict[Place, Piece] = field(default_factory=dict)
    recalled: dict[Place, int] = field(default_factory=dict)
    vectors: dict[Place, _Vector] = field(default_factory=dict)
    quoted: dict[Place, int] = field(default_factory=dict)


class MemoryChunks:
    """Over the sessions that the store keeps; it tells when one is erased."""

    def __init__(self, session: FindSession, sources: Callable[[int], Iterable[Sources]]) -> None:
        """`sources` gives those of so many sessions, last used first."""
        self._session = session
        self._sources = sources
        self._kept: dict[SessionKey, _Kept] = {}
        self._numbers = count(1)

    async def add(self, key: SessionKey, chunks: Sequence[Indexed]) -> None:
        session = self._session(key)
        if session is None:
            return
        kept = self._kept.setdefault(key, _Kept())
        for one in chunks:
            place = (one.chunk.tip, one.chunk.part)
            if place not in kept.index and one.chunk.tip not in session.forgotten:
                kept.index.add(place, one.terms)
                kept.pieces[place] = Piece(key, one.chunk, one.created)

    async def drop(self, key: SessionKey, tip: Tip) -> None:
        self._session(key)
        self.forget(key, tip)

    def forget(self, key: SessionKey, tip: Tip) -> None:
        """Let the pieces of a message go, and those of summaries, which may tell of it."""
        kept = self._kept.get(key) or _Kept()
        for place in [place for place in kept.pieces if place[0] == tip or place[1] < 0]:
            kept.index.remove(place)
            del kept.pieces[place]
            kept.recalled.pop(place, None)
            kept.vectors.pop(place, None)
            kept.quoted.pop(place, None)

    async def indexed(self, key: SessionKey) -> frozenset[Tip]:
        return frozenset(tip for tip, part in self._of(key).pieces if part >= 0)

    async def behind(self, sessions: int) -> list[SessionKey]:
        return [one.key for one in self._sources(sessions) if self._lacks(one)]

    def _lacks(self, one: Sources) -> bool:
        there = self._of(one.key).pieces
        return bool(one.branches - {tip for tip, part in there if part >= 0} or one.summaries - {tip for tip, part in there if part < 0})

    async def postings(self, key: SessionKey, terms: Sequence[str]) -> Postings:
        kept = self._of(key)
        return kept.index.postings(terms)._replace(quoted=dict(kept.quoted)) if kept.pieces else NO_POSTINGS

    async def without_vector(self, key: SessionKey, embedder: str, limit: int) -> list[Chunk]:
        kept = self._of(key)
        bare = (place for place in kept.pieces if place[1] >= 0 and (place not in kept.vectors or kept.vectors[place].embedder != embedder))
        return [kept.pieces[place].chunk._replace(role="") for place in islice(bare, limit)]

    async def put_vectors(self, key: SessionKey, embedder: str, vectors: Mapping[Place, bytes]) -> None:
        kept = self._of(key)
        for place, vector in vectors.items():
            if place in kept.pieces:
                kept.vectors[place] = _Vector(next(self._numbers), embedder, vector)

    async def vectors(self, key: SessionKey, embedder: str, after: int, limit: int) -> list[StoredVector]:
        found = [
            StoredVector(one.number, place, one.vector)
            for place, one in self._of(key).vectors.items()
            if one.number > after and one.embedder == embedder and one.vector
        ]
        return sorted(found)[-limit:]

    async def texts(self, key: SessionKey, places: Collection[Place]) -> list[Piece]:
        kept = self._of(key)
        return [kept.pieces[place] for place in places if place in kept.pieces]

    async def touch(self, key: SessionKey, places: Collection[Place]) -> None:
        kept = self._of(key)
        for place in places:
            if place in kept.pieces:
                kept.recalled[place] = kept.recalled.get(place, 0) + 1

    async def note_quoted(self, key: SessionKey, places: Collection[Place]) -> None:
        kept = self._of(key)
        for place in places:
            if place in kept.pieces:
                kept.quoted[place] = kept.quoted.get(place, 0) + 1

    async def hottest(self, tenant: str, user: str, limit: int) -> list[Piece]:
        found = [
            (times, piece.created, serial, piece)
            for key, kept in self._kept.items()
            if key.tenant == tenant and (session := self._session(key)) and session.user == user
            for serial, (place, piece) in enumerate(kept.pieces.items())
            if (times := kept.recalled.get(place, 0))
        ]
        found.sort(key=lambda one: one[:3], reverse=True)
        return [piece for *_, piece in found[:limit]]

    def erase(self, key: SessionKey) -> None:
        """Let a session's pieces go."""
        self._kept.pop(key, None)

    def _of(self, key: SessionKey) -> _Kept:
        self._session(key)
        return self._kept.get(key) or _Kept()
