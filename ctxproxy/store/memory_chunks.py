"""The search index in dictionaries: `ports.Chunks`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from ctxproxy.core.chunks import Indexed, Piece
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import Session, SessionKey
from ctxproxy.core.text_index import NO_POSTINGS, Place, Postings, TextIndex

FindSession = Callable[[SessionKey], Session | None]
"""The session of a key; raises StoreUnavailable once the store is closed."""


@dataclass(slots=True)
class _Kept:
    index: TextIndex = field(default_factory=TextIndex)
    pieces: dict[Place, Piece] = field(default_factory=dict)
    recalled: dict[Place, int] = field(default_factory=dict)


class MemoryChunks:
    """Over the sessions that the store keeps; it tells when one is erased."""

    def __init__(self, session: FindSession) -> None:
        self._session = session
        self._kept: dict[SessionKey, _Kept] = {}

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

    async def indexed(self, key: SessionKey) -> frozenset[Tip]:
        return frozenset(tip for tip, _ in self._of(key).pieces)

    async def postings(self, key: SessionKey, terms: Sequence[str]) -> Postings:
        kept = self._of(key)
        return kept.index.postings(terms) if kept.pieces else NO_POSTINGS

    async def texts(self, key: SessionKey, places: Collection[Place]) -> list[Piece]:
        kept = self._of(key)
        return [kept.pieces[place] for place in places if place in kept.pieces]

    async def touch(self, key: SessionKey, places: Collection[Place]) -> None:
        kept = self._of(key)
        for place in places:
            if place in kept.pieces:
                kept.recalled[place] = kept.recalled.get(place, 0) + 1

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
