"""What stands in an exported session beside its log, decisions, summaries and pins: each part of the program that keeps something joins here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Protocol

import msgspec

from ctxproxy.core.carryover import Digest, Preload, Restore
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.messages import read
from ctxproxy.core.points import MAX_POINTS, MemoryPoint
from ctxproxy.core.records import Session, SessionKey
from ctxproxy.core.sharing import Rating
from ctxproxy.ports import Store
from ctxproxy.proxy.memory_files import Entry, MemoryFiles


class Section(Protocol):
    """The lines of one kind."""

    @property
    def kind(self) -> str: ...

    def lines(self, session: Session) -> AsyncIterator[Any]:
        """What is kept of a session, as values of JSON, oldest first."""
        ...

    def check(self, value: Any) -> None:
        """Raises ValueError, saying what is wrong, for a value that `put` could not take."""
        ...

    async def put(self, session: Session, value: Any) -> None:
        """Keep such a value for a session that is there now."""
        ...


def sections_of(store: Store, files: MemoryFiles) -> tuple[Section, ...]:
    """All of them, in the order of a file."""
    return (Beginnings(store), Digests(store), Restores(store), Points(store), Ratings(store), Notes(files))


@dataclass(frozen=True, slots=True)
class Beginnings:
    """What a session began with."""

    store: Store
    kind: str = "preload"

    async def lines(self, session: Session) -> AsyncIterator[Any]:
        kept = await self.store.carryover.preload(session.key)
        if kept:
            yield msgspec.to_builtins(kept)

    def check(self, value: Any) -> None:
        for raw in msgspec.convert(value, Preload).messages:
            read(raw)

    async def put(self, session: Session, value: Any) -> None:
        opened = OpenSession(session.key, session.last_used, recall=session.recall)
        await self.store.carryover.begin(opened, msgspec.convert(value, Preload), ())


@dataclass(frozen=True, slots=True)
class Digests:
    """What tells a user's later sessions of one."""

    store: Store
    kind: str = "digest"

    async def lines(self, session: Session) -> AsyncIterator[Any]:
        kept = await self.store.carryover.digest(session.key)
        if kept:
            yield asdict(kept)

    def check(self, value: Any) -> None:
        msgspec.convert(value, Digest)

    async def put(self, session: Session, value: Any) -> None:
        await self.store.carryover.put_digest(session.key, msgspec.convert(value, Digest))


@dataclass(frozen=True, slots=True)
class Restores:
    """Where a client that sends only what is new went on after a restart."""

    store: Store
    kind: str = "restore"

    async def lines(self, session: Session) -> AsyncIterator[Any]:
        kept = await self.store.carryover.restore(session.key)
        if kept:
            yield asdict(kept)

    def check(self, value: Any) -> None:
        msgspec.convert(value, Restore)

    async def put(self, session: Session, value: Any) -> None:
        await self.store.carryover.put_restore(session.key, msgspec.convert(value, Restore))


@dataclass(frozen=True, slots=True)
class Points:
    """What is worth knowing of a session: all of it in one line, for a point names others."""

    store: Store
    kind: str = "facts"

    async def lines(self, session: Session) -> AsyncIterator[Any]:
        if points := await self.store.facts.of(session.key):
            yield [{key: value for key, value in asdict(one).items() if key != "session"} for one in points]

    def check(self, value: Any) -> None:
        points = self._points(SessionKey("", ""), value)
        if len({one.number for one in points}) < len(points) or len(points) > MAX_POINTS:
            raise ValueError(f"facts must have numbers of their own, and be {MAX_POINTS} at most")

    async def put(self, session: Session, value: Any) -> None:
        await self.store.facts.take(session.key, self._points(session.key, value))

    def _points(self, key: SessionKey, value: Any) -> list[MemoryPoint]:
        told = msgspec.convert(value, list[dict[str, Any]])
        return msgspec.convert([{**one, "session": key} for one in told], list[MemoryPoint])


@dataclass(frozen=True, slots=True)
class Ratings:
    """What users think of a session."""

    store: Store
    kind: str = "rating"

    async def lines(self, session: Session) -> AsyncIterator[Any]:
        for rating in await self.store.ratings.of(session.key):
            yield asdict(rating)

    def check(self, value: Any) -> None:
        if not 1 <= msgspec.convert(value, Rating).rating <= 5:
            raise ValueError("rating must be from 1 to 5")

    async def put(self, session: Session, value: Any) -> None:
        await self.store.ratings.put(session.key, msgspec.convert(value, Rating))


@dataclass(frozen=True, slots=True)
class Notes:
    """A session's own sections of memory files."""

    files: MemoryFiles
    kind: str = "note"

    async def lines(self, session: Session) -> AsyncIterator[Any]:
        for entry in await self.files.entries(session.key, session.user):
            if entry.note.session == session.key.name:
                yield {"day": entry.day, "tip": entry.note.tip, "heading": entry.note.heading, "text": entry.note.text}

    def check(self, value: Any) -> None:
        self._entry("", value)

    async def put(self, session: Session, value: Any) -> None:
        entry = self._entry(session.key.name, value)
        await self.files.add(session.key.tenant, session.user, entry.day, entry.note)

    def _entry(self, name: str, value: Any) -> Entry:
        if not isinstance(value, dict):
            raise ValueError("a note must be an object")
        entry = msgspec.convert({"day": value.get("day"), "note": {**value, "session": name}}, Entry)
        if date.fromisoformat(entry.day).isoformat() != entry.day:  # it also takes other forms, and it becomes a file's name
            raise ValueError("day must be YYYY-MM-DD")
        return entry
