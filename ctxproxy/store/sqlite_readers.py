"""A few connections that only read, so that a long history does not hold up a short question."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import aiosqlite

from ctxproxy.errors import StoreUnavailable
from ctxproxy.store.rows import Row, Values
from ctxproxy.store.sqlite_file import BROKEN_CONNECTION, BUSY_TIMEOUT_S, FileId, file_id, primary_code, unavailable

READERS = 2


class SqliteReaders:
    """Reads from a prepared file; each query sees all that was committed before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[_Reader] = [_Reader(path) for _ in range(READERS)]
        self._all = tuple(self._idle)
        self._free = asyncio.Semaphore(READERS)
        self._closed = False

    async def rows(self, query: str, values: Values) -> list[Row]:
        """All rows of a query; raises StoreUnavailable."""
        async with self._free:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            reader = self._idle.pop()
            try:
                return await reader.rows(query, values)
            finally:
                self._idle.append(reader)

    async def close(self) -> None:
        """Close all connections; may be called twice."""
        self._closed = True
        for reader in self._all:
            await reader.close()


class _Reader:
    """One connection, opened when it is first needed and again after an error or when the file at the path is another one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: aiosqlite.Connection | None = None
        self._opened: FileId | None = None

    async def rows(self, query: str, values: Values) -> list[Row]:
        try:
            connection = await self._ready()
            return list(await connection.execute_fetchall(query, values))
        except sqlite3.Error as error:
            if primary_code(error) in BROKEN_CONNECTION:
                await self.close()
            raise unavailable(error) from error

    async def _ready(self) -> aiosqlite.Connection:
        at_path = file_id(self._path)
        if self._connection and at_path in (self._opened, None):  # None: the writer will make it anew
            return self._connection
        await self.close()
        connection = aiosqlite.connect(f"{self._path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        connection._thread.daemon = True  # noqa: SLF001 - else a program that ends without `close` never ends
        self._connection = await connection
        self._opened = at_path
        await self._connection.execute_fetchall("PRAGMA query_only = ON")
        return self._connection

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            await connection.close()
