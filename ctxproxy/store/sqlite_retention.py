"""Erasing what was not used for long, in the database file: `ports.Retention`."""

from __future__ import annotations

from ctxproxy.core.records import Owned, SessionKey
from ctxproxy.store.queries import named_queries
from ctxproxy.store.rows import key_values, unpack
from ctxproxy.store.sqlite_effects import EffectWriter
from ctxproxy.store.sqlite_readers import SqliteReaders
from ctxproxy.store.sqlite_writer import SqliteWriter

QUERIES = named_queries("retention.sql")


class SqliteRetention:
    """Erased rows are zeroed at once; what rebalancing left of them in free space goes with `compact`."""

    def __init__(self, writer: SqliteWriter, readers: SqliteReaders) -> None:
        self._writer = writer
        self._readers = readers

    async def unused(self, before: float, limit: int) -> list[Owned]:
        rows = await self._readers.rows(QUERIES["unused"], {"before": before, "limit": limit})
        return [Owned(SessionKey(tenant, unpack(name)), unpack(user)) for tenant, name, user in rows]

    async def erase(self, key: SessionKey, before: float) -> bool:
        return await self._writer.submit(lambda writer: _erased(writer, key, before))

    async def compact(self) -> None:
        await self._writer.submit(lambda _: True, erases=True)


def _erased(writer: EffectWriter, key: SessionKey, before: float) -> bool:
    unused = writer.connection.execute(QUERIES["is_unused"], {**key_values(key), "before": before}).fetchone()[0]
    return bool(unused) and writer.erase(key)
