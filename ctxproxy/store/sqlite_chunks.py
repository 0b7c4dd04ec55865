"""The search index in the database file, by SQLite's FTS5: `ports.Chunks`."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from ctxproxy.core.chunks import Chunk, Indexed, Piece, StoredVector
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import SessionKey
from ctxproxy.core.text_index import NO_POSTINGS, Place, Posting, Postings
from ctxproxy.store.queries import named_queries
from ctxproxy.store.rows import Row, key_values, pack, plain, unpack
from ctxproxy.store.sqlite_effects import EffectWriter
from ctxproxy.store.sqlite_readers import SqliteReaders
from ctxproxy.store.sqlite_writer import SqliteWriter

QUERIES = named_queries("chunks.sql")
DIGEST_BYTES = 10
MANY = 2000
"""Places: so many take about 3 ms to be made of rows; more are made in a thread."""


class SqliteChunks:
    """Rows with their text, and beside them the full-text index of their terms."""

    def __init__(self, writer: SqliteWriter, readers: SqliteReaders) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, key: SessionKey, chunks: Sequence[Indexed]) -> None:
        await self._writer.submit(lambda writer: _add(writer, key, chunks))

    async def drop(self, key: SessionKey, tip: Tip) -> None:
        await self._writer.submit(lambda writer: _run(writer, "drop", key, tip=plain(tip)))

    async def indexed(self, key: SessionKey) -> frozenset[Tip]:
        return frozenset(row[0] for row in await self._readers.rows(QUERIES["indexed"], key_values(key)))

    async def behind(self, sessions: int) -> list[SessionKey]:
        return [SessionKey(tenant, unpack(name)) for tenant, name in await self._readers.rows(QUERIES["behind"], {"sessions": sessions})]

    async def postings(self, key: SessionKey, terms: Sequence[str]) -> Postings:
        session = await self._session(key)
        if session is None:
            return NO_POSTINGS
        (pieces, average), *_ = await self._readers.rows(QUERIES["size"], {"session": session})
        tokens = json.dumps([token(session, term) for term in terms])
        rows = await self._readers.rows(QUERIES["postings"], {"session": session, "tokens": tokens})
        by_term, quoted = _standing(rows, terms) if len(rows) < MANY else await asyncio.to_thread(_standing, rows, terms)
        return Postings(by_term, pieces, average, quoted)

    async def texts(self, key: SessionKey, places: Collection[Place]) -> list[Piece]:
        session = await self._session(key)
        rows = [] if session is None else await self._readers.rows(QUERIES["texts"], {"session": session, "places": _places(places)})
        found = {(row[0], row[1]): _piece(key, row) for row in rows}
        return [found[place] for place in places if place in found]

    async def touch(self, key: SessionKey, places: Collection[Place]) -> None:
        await self._writer.submit(lambda writer: _run(writer, "touch", key, places=_places(places)))

    async def note_quoted(self, key: SessionKey, places: Collection[Place]) -> None:
        await self._writer.submit(lambda writer: _run(writer, "note_quoted", key, places=_places(places)))

    async def hottest(self, tenant: str, user: str, limit: int) -> list[Piece]:
        rows = await self._readers.rows(QUERIES["hottest"], {"tenant": plain(tenant), "user": pack(user), "limit": limit})
        return [_piece(SessionKey(row[6], unpack(row[5])), row) for row in rows]

    async def without_vector(self, key: SessionKey, embedder: str, limit: int) -> list[Chunk]:
        session = await self._session(key)
        values = {"session": session, "embedder": embedder, "limit": limit}
        rows = [] if session is None else await self._readers.rows(QUERIES["without_vector"], values)
        return [Chunk(tip, part, unpack(content), "") for tip, part, content in rows]

    async def put_vectors(self, key: SessionKey, embedder: str, vectors: Mapping[Place, bytes]) -> None:
        await self._writer.submit(lambda writer: _put_vectors(writer, key, embedder, vectors))

    async def vectors(self, key: SessionKey, embedder: str, after: int, limit: int) -> list[StoredVector]:
        session = await self._session(key)
        values = {"session": session, "embedder": embedder, "after": after, "limit": limit}
        rows = [] if session is None else await self._readers.rows(QUERIES["vectors"], values)
        return [StoredVector(number, (tip, part), vector) for number, tip, part, vector in reversed(rows)]

    async def _session(self, key: SessionKey) -> int | None:
        rows = await self._readers.rows(QUERIES["session_id"], key_values(key))
        return int(rows[0][0]) if rows else None


def _standing(rows: Sequence[Row], terms: Sequence[str]) -> tuple[dict[str, list[Posting]], dict[Place, int]]:
    """Where each term stands, and which of the places were quoted how often."""
    by_term: dict[str, list[Posting]] = defaultdict(list)
    quoted: dict[Place, int] = {}
    for at, tip, part, length, times, quotes in rows:
        by_term[terms[at]].append(Posting((tip, part), length, times))
        if quotes:
            quoted[tip, part] = quotes
    return by_term, quoted


def token(session: int, term: str) -> str:
    """A term as a token of FTS5's `ascii` tokenizer, for one session: as it stands where it is one already, else by its digest."""
    if term.isalnum() and (term.isascii() or not any("\ud800" <= c <= "\udfff" for c in term)):
        return f"{session}w{term}"
    return f"{session}x{hashlib.blake2b(pack(term), digest_size=DIGEST_BYTES).hexdigest()}"


def _add(writer: EffectWriter, key: SessionKey, chunks: Sequence[Indexed]) -> bool:
    session = _session_id(writer, key)
    if session is None:
        return False
    for chunk, terms, turn, created in chunks:
        values = {
            "session": session,
            "tip": plain(chunk.tip),
            "part": chunk.part,
            "role": pack(chunk.role),
            "content": pack(chunk.text),
            "length": sum(terms.values()),
            "turn": turn,
            "created": created,
        }
        done = writer.connection.execute(QUERIES["put"], values)
        if done.rowcount == 1:
            tokens = " ".join(token(session, term) for term, times in terms.items() for _ in range(times))
            writer.connection.execute(QUERIES["put_terms"], {"id": done.lastrowid, "terms": tokens})
    return True


def _put_vectors(writer: EffectWriter, key: SessionKey, embedder: str, vectors: Mapping[Place, bytes]) -> bool:
    session = _session_id(writer, key)
    if session is not None:
        rows = [{"session": session, "tip": plain(tip), "part": part, "embedder": embedder, "vector": one} for (tip, part), one in vectors.items()]
        writer.connection.executemany(QUERIES["put_vector"], rows)
    return session is not None


def _run(writer: EffectWriter, query: str, key: SessionKey, **values: object) -> bool:
    session = _session_id(writer, key)
    if session is not None:
        writer.connection.execute(QUERIES[query], {"session": session, **values})
    return session is not None


def _session_id(writer: EffectWriter, key: SessionKey) -> int | None:
    row = writer.connection.execute(QUERIES["session_id"], key_values(key)).fetchone()
    return None if row is None else int(row[0])


def _places(places: Collection[Place]) -> str:
    return json.dumps([(plain(tip), part) for tip, part in places])


def _piece(key: SessionKey, row: Row) -> Piece:
    tip, part, role, content, created = row[:5]
    return Piece(key, Chunk(tip, part, unpack(content), unpack(role)), created)
