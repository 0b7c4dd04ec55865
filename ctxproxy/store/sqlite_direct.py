"""A connection that the event loop's own thread uses: for what takes some microseconds, where a thread and back would cost ten times as much.

It waits for nobody. What it cannot do at once (another one holds the lock, the file at the path is another one, anything is wrong) it leaves
to the reading connections and to the writer, which wait, mend and tell.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from ctxproxy.store.rows import Row, Values
from ctxproxy.store.sqlite_effects import EffectWriter, Refused
from ctxproxy.store.sqlite_file import FileId, connect, file_id, transaction

FOLDED_AFTER = 400
"""Writes after which the log is due to be folded into the file, which reaches the disk and is the writer's work: some 4,000 pages, as in
`sqlite_file.CHECKPOINT_PAGES`."""


LOOKED_FOR_S = 0.002
"""The questions of one request look once whether the path still leads to the file; a write always does."""


class SqliteDirect:
    """Small questions and small writes, answered before they return; None where that has to be done otherwise."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._name = str(self._path)
        self._writer: EffectWriter | None = None
        self._opened: FileId | None = None
        self._looked_until = 0.0
        self._written = 0

    @property
    def is_open(self) -> bool:
        """Whether anything can be done."""
        return self._writer is not None

    def open(self) -> None:
        """Connect to the file, which has to be prepared; where that fails all is left to others until it is called again."""
        self.close()
        with contextlib.suppress(sqlite3.Error):
            opened = file_id(self._path)
            connection = connect(self._path)
            connection.execute("PRAGMA busy_timeout = 0").fetchall()
            connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
            self._writer, self._opened = EffectWriter(connection), opened

    def rows(self, query: str, values: Values) -> list[Row] | None:
        """All rows of a query that reads."""
        writer = self._writer if time.monotonic() < self._looked_until else self._ready()
        if writer is None:
            return None
        try:
            return writer.connection.execute(query, values).fetchall()
        except sqlite3.Error:
            self.close()
            return None

    def write(self, work: Callable[[EffectWriter], bool]) -> bool | None:
        """What a piece of work gives, once it is durable; raises what the work raises, which is undone."""
        writer = self._ready()
        if writer is None:
            return None
        try:
            with transaction(writer.connection):
                outcome = work(writer)
        except Refused:
            return False
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                self.close()
            return None
        except sqlite3.Error:
            self.close()
            return None
        self._written += 1
        return outcome

    def is_due(self) -> bool:
        """Whether the log should be folded into the file; said once, then after as many writes again."""
        due = self._written >= FOLDED_AFTER
        if due:
            self._written = 0
        return due

    def close(self) -> None:
        """Close the connection; may be called twice."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(sqlite3.Error):
                writer.connection.close()

    def _ready(self) -> EffectWriter | None:
        """The connection, unless the path leads to another file by now."""
        if self._writer is not None and file_id(self._name) != self._opened:
            self.close()
        self._looked_until = time.monotonic() + LOOKED_FOR_S
        return self._writer
