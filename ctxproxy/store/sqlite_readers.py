"""A few connections that only read, so that a long history does not hold up a short question."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import aiosqlite

from ctxproxy.errors import StoreUnavailable
from ctxproxy.store.rows import Row, Values
from ctxproxy.store.sqlite_file import BROKEN_CONNECTION, BUSY_TIMEOUT_S, DAMAGED, FileId, file_id, primary_code, unavailable
from ctxproxy.store.sqlite_writer import SqliteWriter

READERS = 2


class SqliteReaders:
    """Reads from the file that the writer has prepared; each query sees all that was committed before it."""

    def __init__(self, path: Path, writer: SqliteWriter) -> None:
        path = path.absolute()
        self._idle: list[_Reader] = [_Reader(path, writer) for _ in range(READERS)]
        self._all = tuple(self._idle)
        self._free = asyncio.Semaphore(READERS)
        self._closed = False

    async def open(self) -> None:
        """Open all connections now: on a disk that is full later it could not be done; raises StoreUnavailable."""
        try:
            for reader in self._all:
                await reader.ready()
        except sqlite3.Error as error:
            await self.close()
            raise unavailable(error) from error

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
    """One connection, made anew after an error or when the file at the path is another one."""

    def __init__(self, path: Path, writer: SqliteWriter) -> None:
        self._path = path
        self._writer = writer
        self._connection: aiosqlite.Connection | None = None
        self._opened: FileId | None = None
        self._suspect = False
        self._damage_met = False

    async def rows(self, query: str, values: Values) -> list[Row]:
        try:
            connection = await self.ready()
            return list(await connection.execute_fetchall(query, values))
        except sqlite3.Error as error:
            self._suspect = primary_code(error) in BROKEN_CONNECTION
            self._damage_met = primary_code(error) in DAMAGED
            raise unavailable(error) from error

    async def ready(self) -> aiosqlite.Connection:
        """The connection; an old one is closed when the new one has shown that it can read, as in `sqlite_writer`.

        The writer has a say first in what is another file than before, which may be empty or of an earlier schema, or a damaged one.
        """
        at_path = file_id(self._path)
        if self._connection and not self._suspect and at_path in (self._opened, None):  # None: the writer will make it anew
            return self._connection
        if self._damage_met or (self._opened and at_path != self._opened):
            await self._writer.ready(damage_met=self._damage_met)
            at_path = file_id(self._path)
        fresh = await _connect(self._path)
        await self.close()
        self._connection, self._opened, self._suspect, self._damage_met = fresh, at_path, False, False
        return fresh

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            await connection.close()


async def _connect(path: Path) -> aiosqlite.Connection:
    connection = aiosqlite.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    connection._thread.daemon = True  # noqa: SLF001 - else a program that ends without `close` never ends
    await connection
    try:
        await connection.execute_fetchall("PRAGMA query_only = ON")
        await connection.execute_fetchall("SELECT count(*) FROM sqlite_master")
    except BaseException:
        await connection.close()
        raise
    return connection
