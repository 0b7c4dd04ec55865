"""Erasing what was not used for long, in the database file: `ports.Retention`."""

from __future__ import annotations

from collections.abc import Callable

from ctxproxy.core.records import Owned, SessionKey
from ctxproxy.store.queries import named_queries
from ctxproxy.store.rows import key_values, unpack
from ctxproxy.store.sqlite_effects import EffectWriter
from ctxproxy.store.sqlite_readers import SqliteReaders
from ctxproxy.store.sqlite_writer import SqliteWriter

QUERIES = named_queries("retention.sql")


class SqliteRetention:
    """`let_go` is told what was erased. Erased rows are zeroed at once; what rebalancing left of them in free space goes with `compact`."""

    def __init__(self, writer: SqliteWriter, readers: SqliteReaders, let_go: Callable[[SessionKey], None]) -> None:
        self._writer = writer
        self._readers = readers
        self._let_go = let_go

    async def unused(self, before: float, limit: int) -> list[Owned]:
        rows = await self._readers.rows(QUERIES["unused"], {"before": before, "limit": limit})
        return [Owned(SessionKey(tenant, unpack(name)), unpack(user)) for tenant, name, user in rows]

    async def erase(self, key: SessionKey, before: float) -> bool:
        try:
            return await self._writer.submit(lambda writer: _erased(writer, key, before))
        finally:
            self._let_go(key)

    async def compact(self) -> None:
        await self._writer.submit(lambda _: True, erases=True)


def _erased(writer: EffectWriter, key: SessionKey, before: float) -> bool:
    unused = writer.connection.execute(QUERIES["is_unused"], {**key_values(key), "before": before}).fetchone()[0]
    return bool(unused) and writer.erase(key)
