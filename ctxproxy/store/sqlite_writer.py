"""The one writer of a database file: a thread that puts everything that waits into one transaction (group commit).

Each piece of work stands in a savepoint of its own: it fails alone, and is durable when its result is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from ctxproxy.errors import ConfigError, StoreUnavailable
from ctxproxy.store.sqlite_effects import EffectWriter, Refused
from ctxproxy.store.sqlite_file import (
    BROKEN_CONNECTION,
    DAMAGED,
    FileId,
    OnDamage,
    connect,
    file_id,
    prepare,
    primary_code,
    transaction,
    unavailable,
)

Work: TypeAlias = Callable[[EffectWriter], bool]

GATHER_MAX = 256
"""Pieces of work in one transaction: a bound on how long the first of them waits."""

CHECKPOINT_WITHIN_S, CHECKPOINT_PAUSE_S = 2.0, 0.02
"""For another process that is at a checkpoint, too, SQLite does not wait by itself (sqlite.org/c3ref/wal_checkpoint_v2.html); for readers it does."""

RECHECK_S = 60.0
"""A file in which damage was met is checked whole, but no more often than this: one too big to be checked in time is met again and again."""


class Sign(Enum):
    """What stands between the jobs."""

    FOLD = "fold"
    END = "end"


@dataclass(slots=True)
class _Job:
    """A piece of work (None: just open the file), its outcome, and the future of the task that waits for it."""

    work: Work | None
    erases: bool
    loop: asyncio.AbstractEventLoop
    waiter: asyncio.Future[bool]
    outcome: bool | BaseException = False

    def tell(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if self.waiter.done():
            return
        if isinstance(self.outcome, BaseException):
            self.waiter.set_exception(unavailable(self.outcome) if isinstance(self.outcome, sqlite3.Error) else self.outcome)
        else:
            self.waiter.set_result(self.outcome)


class SqliteWriter:
    """Start with `start`, hand work in with `submit`, end with `close`."""

    def __init__(self, path: Path, on_damage: OnDamage) -> None:
        self._path = path
        self._on_damage = on_damage
        self._writer: EffectWriter | None = None
        self._opened: FileId | None = None
        self._suspect = False
        self._damage_met = False
        self._checked_at = -RECHECK_S
        self._jobs: queue.SimpleQueue[_Job | Sign] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ctxproxy-store", daemon=True)
        self._closed = False
        self._handed_in = self._done = 0
        self._fold_due = False

    @property
    def is_idle(self) -> bool:
        """Whether all that was handed in is done, and nothing was wrong with the file that has to be looked into first."""
        return self._handed_in == self._done and not (self._suspect or self._damage_met)

    async def start(self) -> None:
        """Open the file, made, checked and migrated; raises ConfigError or StoreUnavailable."""
        self._thread.start()
        try:
            await self._hand_in(None)
        except BaseException:
            await self.close()
            raise

    async def submit(self, work: Work, *, erases: bool = False) -> bool:
        """The result of a piece of work once it is durable, and with `erases` once no trace is left in the files.

        Raises StoreUnavailable, or what the work raised. A caller that is cancelled meanwhile does not undo it.
        """
        if self._closed:
            raise StoreUnavailable("the store is closed")
        return await self._hand_in(work, erases=erases)

    async def ready(self, *, damage_met: bool = False) -> None:
        """Have the file that is at the path now open, made, migrated and, where damage was met in it, checked and if need be set aside.

        Raises StoreUnavailable.
        """
        if self._closed:
            raise StoreUnavailable("the store is closed")
        self._damage_met = self._damage_met or damage_met
        await self._hand_in(None)

    async def _hand_in(self, work: Work | None, *, erases: bool = False) -> bool:
        loop = asyncio.get_running_loop()
        job = _Job(work, erases, loop, loop.create_future())
        self._handed_in += 1
        self._jobs.put(job)
        return await job.waiter

    def fold(self) -> None:
        """Have the log folded into the file, as far as nobody reads its old state; returns at once."""
        self._jobs.put(Sign.FOLD)

    async def close(self) -> None:
        """Finish what was handed in and close the file; may be called twice."""
        if not self._closed:
            self._closed = True
            self._jobs.put(Sign.END)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        going = True
        while going:
            jobs, going = self._gather()
            self._carry_out(jobs)
            self._done += len(jobs)
        self._drop_connection()

    def _gather(self) -> tuple[list[_Job], bool]:
        """All that waits, at least one job or sign, and whether to go on afterwards."""
        jobs: list[_Job] = []
        job = self._jobs.get()
        while job is not Sign.END:
            if job is Sign.FOLD:
                self._fold_due = True
            else:
                jobs.append(job)
            if len(jobs) == GATHER_MAX:
                return jobs, True
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, True
        return jobs, False

    def _carry_out(self, jobs: list[_Job]) -> None:
        try:
            writer, fresh = self._ready()
            if any(job.work for job in jobs):
                _commit(writer, jobs)
        except Exception as error:  # noqa: BLE001 - the thread must outlive any fault; each waiting task is told
            self._suspect_after(error)
            _fail(jobs, error)
            return
        erasing = [job for job in jobs if job.erases]
        for job in jobs:
            if isinstance(job.outcome, sqlite3.Error):
                self._suspect_after(job.outcome)
            if not job.erases:
                job.tell()
        if erasing or fresh:
            self._scrub(writer, erasing)
        if self._fold_due:
            self._fold_due = False
            self._fold(writer)

    def _ready(self) -> tuple[EffectWriter, bool]:
        """The connection, and whether it is new: after an error, or when the path leads elsewhere (somebody moved or deleted our file).

        The old one is closed last: with the last connection SQLite gives up the shared memory that readers need, and on a full
        disk cannot make it again.
        """
        at_path = file_id(self._path)
        doubted = self._damage_met and time.monotonic() - self._checked_at >= RECHECK_S
        if self._writer and at_path == self._opened and not self._suspect and not doubted:
            return self._writer, False
        fresh = EffectWriter(self._open(known=at_path is not None and at_path == self._opened and not doubted))
        self._drop_connection()
        self._writer, self._opened, self._suspect = fresh, file_id(self._path), False
        return fresh, True

    def _open(self, *, known: bool) -> sqlite3.Connection:
        if known:
            return connect(self._path)
        try:
            connection = prepare(self._path, self._on_damage)
            self._damage_met, self._checked_at = False, time.monotonic() if self._opened else -RECHECK_S
            return connection
        except ConfigError as error:
            if self._opened is None:
                raise
            raise StoreUnavailable(error.message) from error

    def _scrub(self, writer: EffectWriter, erasing: list[_Job]) -> None:
        """Remove what erased rows left behind, or leave the note that it is due for the next erasing or opening."""
        try:
            if writer.erasure_due():
                _remove_traces(writer)
        except Exception as error:  # noqa: BLE001 - as in _carry_out
            self._suspect_after(error)
            _fail(erasing, error)
            return
        for job in erasing:
            job.tell()

    def _fold(self, writer: EffectWriter) -> None:
        try:
            writer.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:
            self._suspect_after(error)  # the log grows until it works again; whoever writes next is told what is wrong

    def _suspect_after(self, error: Exception) -> None:
        if isinstance(error, sqlite3.Error):
            self._suspect = self._suspect or primary_code(error) in BROKEN_CONNECTION
            self._damage_met = self._damage_met or primary_code(error) in DAMAGED

    def _drop_connection(self) -> None:
        if self._writer:
            with contextlib.suppress(sqlite3.Error):
                self._writer.connection.close()
        self._writer = None


def _commit(writer: EffectWriter, jobs: list[_Job]) -> None:
    with transaction(writer.connection):
        for job in jobs:
            job.outcome = _outcome(writer, job.work) if job.work else True


def _outcome(writer: EffectWriter, work: Work) -> bool | Exception:
    """What the work gives, or the error for which it alone was undone."""
    connection = writer.connection
    outcome: bool | Exception = False
    connection.execute("SAVEPOINT work")
    try:
        outcome = work(writer)
    except Refused:
        connection.execute("ROLLBACK TO work")
    except Exception as error:
        if not connection.in_transaction:  # SQLite has rolled back everything: sqlite.org/lang_transaction.html
            raise
        connection.execute("ROLLBACK TO work")
        outcome = error
    connection.execute("RELEASE work")
    return outcome


def _remove_traces(writer: EffectWriter) -> None:
    """`secure_delete` zeroes what is deleted, yet copies that rebalancing left in a page's free space outlive it: only VACUUM is sure."""
    with transaction(writer.connection):
        writer.merge_terms()
    writer.connection.execute("VACUUM")
    until = time.monotonic() + CHECKPOINT_WITHIN_S
    while writer.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() >= until:
            raise StoreUnavailable("erased, but another program still reads the old state of the database; its traces go with the next erasing")
        time.sleep(CHECKPOINT_PAUSE_S)
    with transaction(writer.connection):
        writer.erasures_done()


def _fail(jobs: list[_Job], error: Exception) -> None:
    for job in jobs:
        if not isinstance(job.outcome, BaseException):
            job.outcome = error
        job.tell()
