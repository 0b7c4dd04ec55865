"""What passes from one session to the next, in the database file: `ports.Carryover`."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ctxproxy.core.carryover import Digest, Preload, Restore
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.records import SessionKey
from ctxproxy.store.queries import named_queries
from ctxproxy.store.rows import Row, key_values, pack, plain, unpack
from ctxproxy.store.sqlite_effects import EffectWriter
from ctxproxy.store.sqlite_readers import SqliteReaders
from ctxproxy.store.sqlite_writer import SqliteWriter

QUERIES = named_queries("carryover.sql")


class SqliteCarryover:
    """Rows that hang on their session; a preload goes with any session that it tells of."""

    def __init__(self, writer: SqliteWriter, readers: SqliteReaders) -> None:
        self._writer = writer
        self._readers = readers

    async def digest(self, key: SessionKey) -> Digest | None:
        row = await self._row("digest", key)
        return Digest(row[0], unpack(row[1]), row[2], row[3]) if row else None

    async def put_digest(self, key: SessionKey, digest: Digest) -> None:
        values = {"tip": plain(digest.tip), "text": pack(digest.text), "messages": digest.messages, "created": digest.created}
        await self._put("put_digest", key, values)

    async def preload(self, key: SessionKey) -> Preload | None:
        row = await self._row("preload", key)
        return Preload(msgspec.msgpack.decode(row[0], type=tuple[bytes, ...]), row[1], row[2]) if row else None

    async def begin(self, opened: OpenSession, preload: Preload, sources: Collection[SessionKey]) -> Preload | None:
        await self._writer.submit(lambda writer: _begun(writer, opened, preload, sources))
        return await self.preload(opened.key)

    async def copy_preload(self, key: SessionKey, to: SessionKey) -> None:
        await self._writer.submit(lambda writer: _copied(writer, key, to))

    async def drop_preload(self, key: SessionKey) -> None:
        await self._writer.submit(lambda writer: writer.connection.execute(QUERIES["drop_preload"], key_values(key)).rowcount > 0)

    async def drop_told(self, key: SessionKey) -> None:
        await self._writer.submit(lambda writer: _told_dropped(writer, key), erases=True)

    async def restore(self, key: SessionKey) -> Restore | None:
        row = await self._row("restore", key)
        return Restore(row[0], row[1]) if row else None

    async def put_restore(self, key: SessionKey, restore: Restore) -> None:
        await self._put("put_restore", key, {"tip": plain(restore.tip), "turns": restore.turns})

    async def _row(self, query: str, key: SessionKey) -> Row | None:
        rows = await self._readers.rows(QUERIES[query], key_values(key))
        return rows[0] if rows else None

    async def _put(self, query: str, key: SessionKey, values: dict[str, object]) -> None:
        await self._writer.submit(lambda writer: _put(writer, query, key, values))


def _put(writer: EffectWriter, query: str, key: SessionKey, values: dict[str, object]) -> bool:
    session = writer.session_id(key)
    return session is not None and writer.connection.execute(QUERIES[query], {**values, "session": session}).rowcount > 0


def _begun(writer: EffectWriter, opened: OpenSession, preload: Preload, sources: Collection[SessionKey]) -> bool:
    """The session is made in any case; the preload only if all that it tells of are still there, and if there is none yet."""
    writer.carry_out([opened])
    found = [writer.session_id(key) for key in sources]
    if None in found:
        return False
    values = {"messages": msgspec.msgpack.encode(preload.messages), "items": preload.items, "created": preload.created}
    if not _put(writer, "put_preload", opened.key, values):
        return False
    session = writer.session_id(opened.key)
    writer.connection.executemany(QUERIES["put_source"], [{"session": session, "source": source} for source in found])
    return True


def _copied(writer: EffectWriter, key: SessionKey, to: SessionKey) -> bool:
    values = {"of": writer.session_id(key), "session": writer.session_id(to)}
    if None in values.values() or writer.connection.execute(QUERIES["copy_preload"], values).rowcount < 1:
        return False
    writer.connection.execute(QUERIES["copy_sources"], values)
    return True


def _told_dropped(writer: EffectWriter, key: SessionKey) -> bool:
    session = writer.session_id(key)
    if session is not None:
        writer.drop_preloads(session)
        writer.note_erasure()
    return session is not None
