"""Memory points in the database file: `ports.Facts` over the store's own writer and readers."""

from __future__ import annotations

from collections.abc import Sequence

from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.points import MAX_USER_SESSIONS, MemoryPoint, Point, PointChanges, Unread
from ctxproxy.core.records import SessionKey, Span
from ctxproxy.store.rows import Row, key_values, pack, plain, unpack
from ctxproxy.store.sqlite_effects import EffectWriter
from ctxproxy.store.sqlite_points import QUERIES, drop_point, put_points, take_points
from ctxproxy.store.sqlite_readers import SqliteReaders
from ctxproxy.store.sqlite_writer import SqliteWriter


class SqliteFacts:
    """`ports.Facts`; rows hang on their session and go with it."""

    def __init__(self, writer: SqliteWriter, readers: SqliteReaders) -> None:
        self._writer = writer
        self._readers = readers

    async def put(self, key: SessionKey, user: str, changes: PointChanges, read_to: Tip = ROOT) -> bool:
        return await self._writer.submit(lambda writer: _put(writer, key, user, changes, read_to))

    async def unread(self, limit: int) -> list[Unread]:
        rows = await self._readers.rows(QUERIES["unread"], {"limit": limit})
        return [Unread(SessionKey(tenant, unpack(name)), unpack(user), Span(after, tip)) for tenant, name, user, tip, after in rows]

    async def take(self, key: SessionKey, points: Sequence[MemoryPoint]) -> bool:
        return await self._writer.submit(lambda writer: _take(writer, key, points))

    async def of(self, key: SessionKey) -> list[MemoryPoint]:
        return [_point_of(row) for row in await self._readers.rows(QUERIES["points"], key_values(key))]

    async def of_user(self, tenant: str, user: str, limit: int) -> list[MemoryPoint]:
        values = {"tenant": plain(tenant), "user": pack(user), "sessions": MAX_USER_SESSIONS, "limit": limit}
        return [_point_of(row) for row in await self._readers.rows(QUERIES["points_of_user"], values)]

    async def drop(self, key: SessionKey, number: int) -> bool:
        return await self._writer.submit(lambda writer: _drop(writer, key, number), erases=True)

    async def tenants(self, user: str) -> list[str]:
        return [row[0] for row in await self._readers.rows(QUERIES["tenants_of_user"], {"user": pack(user)})]


def _put(writer: EffectWriter, key: SessionKey, user: str, changes: PointChanges, read_to: Tip) -> bool:
    session = writer.session_id(key)
    if session is None:
        return False
    if changes:
        put_points(writer.connection, session, user, changes)
    if read_to:
        writer.connection.execute(QUERIES["note_read"], {"session": session, "tip": read_to})
    return True


def _take(writer: EffectWriter, key: SessionKey, points: Sequence[MemoryPoint]) -> bool:
    session = writer.session_id(key)
    if session is not None:
        take_points(writer.connection, session, points)
        writer.connection.execute(QUERIES["note_all_read"], {"session": session})
    return session is not None


def _drop(writer: EffectWriter, key: SessionKey, number: int) -> bool:
    session = writer.session_id(key)
    if session is None or not drop_point(writer.connection, session, number):
        return False
    writer.note_erasure()
    return True


def _point_of(row: Row) -> MemoryPoint:
    number, kind, key, value, tip, time, weight, source, user, superseded_by, taken_back, tenant, name = row
    point = Point(kind, unpack(key), unpack(value), tip, time, weight, source)
    return MemoryPoint(number, point, SessionKey(tenant, unpack(name)), unpack(user), superseded_by, bool(taken_back))
