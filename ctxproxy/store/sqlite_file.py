"""The database file: opened, checked, brought to the newest schema, and set aside when it is damaged.

Every function here blocks and is called from a thread.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ctxproxy.errors import ConfigError, StoreUnavailable
from ctxproxy.store.queries import Migration, migrations

if sys.platform != "win32":
    import fcntl

APPLICATION_ID = 0x63747870
"""`ctxp` in the file's header tells our databases from those of other programs (sqlite.org/fileformat2.html#application_id)."""

BUSY_TIMEOUT_S = 5.0
"""How long a statement waits for another process's lock."""

MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
"""A database begins with these 16 bytes, in a header of 100 (sqlite.org/fileformat2.html#the_database_header)."""

CHECK_DEADLINE_S = 5.0
"""The check at the opening reads the whole file; one too big for this time is taken as it is."""

WAL_LIMIT_BYTES = 64 * 2**20
"""What the write-ahead log is cut down to after a checkpoint."""

DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
BROKEN_CONNECTION = DAMAGED | {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
"""Errors after which a connection is given up and made anew."""


CHECKPOINT_PAGES = 4000
"""16 MB of log before it is folded into the file: pages written again and again (counters, upper index pages) are folded once."""


class SetAside(NamedTuple):
    """A damaged file was renamed to `path`, for this reason; a fresh one takes its place."""

    path: Path
    reason: str


OnDamage = Callable[[SetAside], None]


class FileId(NamedTuple):
    """Tells whether a path still leads to the file that was opened."""

    device: int
    inode: int


class Damaged(Exception):
    """The file is not, or not wholly, the database that it should be."""


def file_id(path: Path | str) -> FileId | None:
    """The identity of the file at a path; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return FileId(found.st_dev, found.st_ino)


def unavailable(error: sqlite3.Error) -> StoreUnavailable:
    """The error of ours for one of SQLite's."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    return StoreUnavailable(f"the database does not answer: {error} ({name})")


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code (sqlite.org/rescode.html); 0 if the error came from elsewhere."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def connect(path: Path) -> sqlite3.Connection:
    """A connection that writes, to a prepared file.

    `synchronous` NORMAL: in WAL mode a commit is in the system's hands when it returns, so it outlives the process (kill -9);
    the last commits may be lost, never torn, when the machine itself loses power (sqlite.org/pragma.html#pragma_synchronous).
    """
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").fetchall()
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def schema_version(path: Path) -> int:
    """The number of the last migration that the file at a path has seen; 0 if there is none, or it cannot be read."""
    if path.is_file():
        with contextlib.suppress(sqlite3.Error, OSError, Damaged):
            _check_ends(path)
            with contextlib.closing(connect(path)) as connection:
                return int(connection.execute("PRAGMA user_version").fetchone()[0])
    return 0


def prepare(path: Path, on_damage: OnDamage) -> sqlite3.Connection:
    """A connection to the file at `path`, which is made if need be; raises ConfigError or StoreUnavailable.

    Processes that start together take turns, so that none sets aside what another has just made.
    """
    _check_place(path)
    try:
        with _turn(path.parent):
            try:
                return _open_sound(path)
            except Damaged as damage:
                on_damage(_set_aside(path, str(damage)))
                return _open_sound(path)
    except sqlite3.Error as error:
        raise unavailable(error) from error
    except OSError as error:
        raise StoreUnavailable(f"the database {path} cannot be opened: {error.strerror or error}") from error
    except Damaged as damage:
        raise StoreUnavailable(f"the database {path} is damaged: {damage}") from damage


def _check_place(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise ConfigError(f"store.url: {path} is not a file, so it cannot be the database", param="store.url")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"store.url: {path.parent} is not a folder, so the database cannot be in it", param="store.url") from None
    except OSError as error:
        raise StoreUnavailable(f"the folder {path.parent} cannot be made: {error.strerror or error}") from error


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _open_sound(path: Path) -> sqlite3.Connection:
    _check_ends(path)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # conversations are nobody else's to read
    try:
        connection = connect(path)
        try:
            _check_all(connection, path)
        except BaseException:
            connection.close()
            raise
    except sqlite3.DatabaseError as error:
        if primary_code(error) in DAMAGED | {sqlite3.SQLITE_ERROR}:  # ERROR: a statement does not fit the schema that it finds
            raise Damaged(str(error)) from error
        raise
    return connection


def _check_all(connection: sqlite3.Connection, path: Path) -> None:
    _check_owner(connection, path)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    _migrate(connection, path)
    _check_schema(connection)
    _check_pages(connection)


def _check_ends(path: Path) -> None:
    """What must be seen before SQLite opens the file: it deletes the log of what is no database, and takes a cut page for a whole one.

    Only an unfinished checkpoint may leave a page cut; then the log has the whole page.
    """
    wal = path.with_name(path.name + "-wal")
    logged = wal.exists() and wal.stat().st_size > 0
    head, size = b"", 0
    if path.exists():
        with path.open("rb") as file:
            head = file.read(HEADER_BYTES)
        size = path.stat().st_size
    if not size and logged:
        raise Damaged("the file is empty beside a log that is not")
    if size and not (head.startswith(MAGIC) and len(head) == HEADER_BYTES):
        raise Damaged("the file does not begin as a database does")
    if size and not logged and size % _page_bytes(head):
        raise Damaged("the file ends within a page")


def _page_bytes(head: bytes) -> int:
    """The page size (sqlite.org/fileformat2.html#page_size), where 1 means 65536; 512, which divides all others, if it is not legal."""
    stated = int.from_bytes(head[16:18], "big")
    return 65_536 if stated == 1 else max(512, stated)


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    if owner != APPLICATION_ID and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise ConfigError(f"store.url: {path} is the database of another program; name a file of its own for ctxproxy", param="store.url")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    steps = migrations()
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(steps):
        raise ConfigError(
            f"store.url: {path} has schema version {version}, this ctxproxy knows versions up to {len(steps)}; use a newer ctxproxy",
            param="store.url",
        )
    if version < len(steps):
        with transaction(connection):
            _run_steps(connection, steps[version:])


def _run_steps(connection: sqlite3.Connection, steps: tuple[Migration, ...]) -> None:
    for step in steps:
        for statement in step.statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {step.version}")
    if steps:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _check_schema(connection: sqlite3.Connection) -> None:
    """Against what the migrations make; indexes that somebody added are theirs to have."""
    listing = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        _run_steps(model, migrations())
        missing = set(model.execute(listing)) - set(connection.execute(listing))
    if missing:
        raise Damaged("the schema is another one: " + ", ".join(sorted(f"{kind} {name}" for kind, name, _ in missing)))


def _check_pages(connection: sqlite3.Connection) -> None:
    end = time.monotonic() + CHECK_DEADLINE_S
    connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
    try:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        return
    finally:
        connection.set_progress_handler(None, 0)
    if verdict != "ok":
        raise Damaged(" ".join(verdict.split()))


def _set_aside(path: Path, reason: str) -> SetAside:
    """Rename the file and its log, the log first: it must never lie beside a database that it does not belong to."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = path.with_name(f"{path.name}.corrupt-{stamp}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.corrupt-{stamp}-{number}")
    for suffix in ("-wal", "-shm", ""):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return SetAside(target, reason)


class transaction:  # noqa: N801 - it is used as a function, which would take three times as long
    """A write transaction: committed at the end, rolled back on any error."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
