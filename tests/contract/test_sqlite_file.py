"""What happens to the database file: damage, kills, full disks, locks, other programs, erasing."""

# ruff: noqa: ASYNC240 - a test may wait for a small file

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import msgspec
import pytest

from ctxproxy.core.carryover import Digest
from ctxproxy.core.effects import AppendMessages, CountUse, Forget, OpenSession, PutCheckpoint, PutPin, PutSummary
from ctxproxy.core.records import Checkpoint, FrozenEntry, Pin, Session, SessionKey
from ctxproxy.errors import ConfigError, StoreUnavailable
from ctxproxy.store import MemoryStore, SetAside, SqliteStore, open_store, rows, sqlite_file, sqlite_writer
from ctxproxy.store.queries import migrations, named_queries
from ctxproxy.store.sqlite import QUICK_BYTES
from ctxproxy.store.sqlite_file import APPLICATION_ID
from tests.contract.conftest import no_damage
from tests.contract.samples import KEY, OTHER, begun, chain, checkpoint, message, summary

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talks.db"


@asynccontextmanager
async def opened(path: Path, on_damage: Callable[[SetAside], None] = no_damage) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, on_damage)
    try:
        yield store
    finally:
        await store.close()


async def fill(path: Path, sessions: int = 40) -> None:
    """A database of many pages, all folded into the one file."""
    async with opened(path) as store:
        for n in range(sessions):
            await store.apply(begun(SessionKey("0f" * 16, f"talk {n}"), chain(*(f"{n} {m} " + "x" * 900 for m in range(10)))))


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


# ---------------------------------------------------------------- URLs


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:secret@host/db", "PostgreSQL is not available in this version"),
        ("postgres://me:secret@host/db", "PostgreSQL is not available in this version"),
        ("sqlite://talks.db", "three slashes"),
        ("sqlite:talks.db", "three slashes"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///talks.db?mode=secret", "'?'"),
        ("mysql://me:secret@host/db", "no store for 'mysql'"),
        ("", "no store for ''"),
        ("memory", "no store for 'memory'"),
    ],
)
async def test_a_url_that_names_no_store_is_refused_with_what_is_possible(url: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        await open_store(url, on_damage=no_damage)
    assert said in refused.value.message
    assert "memory://" in refused.value.message
    assert "sqlite:///path" in refused.value.message
    assert refused.value.param == "store.url"
    assert "@host" not in refused.value.message


async def test_the_memory_url_gives_the_store_in_memory() -> None:
    assert isinstance(await open_store("memory://", on_damage=no_damage), MemoryStore)


async def test_three_slashes_lead_from_the_working_directory_and_four_from_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url, file in (("sqlite:///new folder/ä%20.db", "new folder/ä%20.db"), (f"sqlite:///{tmp_path}/absolute.db", "absolute.db")):
        store = await open_store(url, on_damage=no_damage)
        await store.apply([OpenSession(KEY, 1.0)])
        assert await store.session(KEY)
        await store.close()
        assert (tmp_path / file).stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- damage


def garbage(data: bytes) -> bytes:
    return random.Random(1).randbytes(len(data))


def damaged_page(data: bytes) -> bytes:
    """Every page of the middle third has its header overwritten."""
    out = bytearray(data)
    for start in range(len(data) // 4096 // 3 * 4096, len(data) * 2 // 3, 4096):
        out[start : start + 12] = b"\xee" * 12
    return bytes(out)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "garbage": garbage,
    "zeros": lambda data: bytes(len(data)),
    "a text": lambda _: b"hello",
    "the last 20 bytes cut": lambda data: data[:-20],
    "half cut": lambda data: data[: len(data) // 8192 * 4096],
    "cut within the header": lambda data: data[:50],
    "damaged pages in the middle": damaged_page,
    "damaged schema page": lambda data: data[:100] + b"\xee" * 3996 + data[4096:],
}


@pytest.mark.parametrize("kind", DAMAGES)
async def test_a_damaged_file_is_set_aside_and_a_fresh_one_made(path: Path, kind: str) -> None:
    await fill(path)
    damaged = DAMAGES[kind](path.read_bytes())
    path.write_bytes(damaged)
    told: list[SetAside] = []
    async with opened(path, told.append) as store:
        assert (await store.totals()).sessions == 0
        await store.apply(begun(KEY, chain("a")))
        assert await store.history(KEY, message("a").tip) == chain("a")
    [(aside, reason)] = told
    assert aside.name.startswith("talks.db.corrupt-")
    assert aside.read_bytes() == damaged
    assert reason
    async with opened(path) as store:
        assert (await store.totals()).sessions == 1


async def test_two_damages_within_a_second_are_both_kept(path: Path) -> None:
    told: list[SetAside] = []
    for text in (b"one", b"two"):
        path.write_bytes(text)
        async with opened(path, told.append):
            pass
    assert [aside.path.read_bytes() for aside in told] == [b"one", b"two"]


async def test_the_log_of_a_damaged_file_goes_aside_with_it(path: Path) -> None:
    path.write_bytes(b"no database")
    path.with_name("talks.db-wal").write_bytes(b"its log")
    told: list[SetAside] = []
    async with opened(path, told.append) as store:
        await store.ping()
    assert told[0].path.with_name(told[0].path.name + "-wal").read_bytes() == b"its log"


async def test_a_log_whose_database_is_gone_is_kept(path: Path) -> None:
    path.with_name("talks.db-wal").write_bytes(b"its log")
    told: list[SetAside] = []
    async with opened(path, told.append) as store:
        assert (await store.totals()).sessions == 0
    assert told[0].path.with_name(told[0].path.name + "-wal").read_bytes() == b"its log"


async def test_an_empty_file_is_just_new(path: Path) -> None:
    path.touch()
    async with opened(path) as store:
        await store.apply([OpenSession(KEY, 1.0)])
        assert await store.session(KEY)
    assert [file.name for file in path.parent.iterdir()] == ["talks.db"]


async def test_a_database_of_ours_with_another_schema_is_set_aside(path: Path) -> None:
    await fill(path, 1)
    with closing(sqlite3.connect(path)) as other:
        other.executescript("DROP TABLE pins; CREATE TABLE pins (something TEXT)")
    told: list[SetAside] = []
    async with opened(path, told.append) as store:
        assert await store.pins(KEY) == []
    assert "pins" in told[0].reason


async def test_a_database_of_ours_without_its_version_is_set_aside(path: Path) -> None:
    await fill(path, 1)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 0")
    told: list[SetAside] = []
    async with opened(path, told.append) as store:
        await store.ping()
    assert len(told) == 1


async def test_an_index_that_somebody_added_is_no_damage(path: Path) -> None:
    await fill(path, 1)
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE INDEX by_role ON messages (role)")
    async with opened(path) as store:
        assert (await store.totals()).sessions == 1


async def test_a_database_of_another_program_is_refused_and_left_as_it_is(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE sessions (id)")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="another program"):
        await SqliteStore.open(path, no_damage)
    assert path.read_bytes() == before


async def test_a_newer_schema_is_refused_and_left_as_it_is(path: Path) -> None:
    await fill(path, 1)
    newer = len(migrations()) + 1
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {newer}")
    with pytest.raises(ConfigError, match=f"schema version {newer}"):
        await SqliteStore.open(path, no_damage)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM sessions").fetchone() == (1,)


async def test_a_folder_in_the_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(ConfigError, match="not a file"):
        await SqliteStore.open(path, no_damage)


async def test_a_file_in_the_place_of_the_folder_is_refused(path: Path) -> None:
    path.touch()
    with pytest.raises(ConfigError, match="not a folder"):
        await SqliteStore.open(path / "below" / "talks.db", no_damage)


async def test_000_s19_damage_that_is_met_while_the_store_is_open_has_the_file_set_aside(path: Path) -> None:
    await fill(path)
    told: list[SetAside] = []
    async with opened(path, told.append) as store:
        damaged = damaged_page(path.read_bytes())
        path.write_bytes(damaged)
        with pytest.raises(StoreUnavailable):
            for n in range(40):
                key = SessionKey("0f" * 16, f"talk {n}")
                await store.history(key, (await store.leaves(key))[0])
        assert (await store.totals()).sessions == 0
        await store.apply(begun(KEY, chain("a")))
        assert await store.history(KEY, message("a").tip) == chain("a")
    assert [one.path.read_bytes() for one in told] == [damaged]


async def test_damage_that_a_write_meets_has_the_file_set_aside(path: Path) -> None:
    await fill(path)
    told: list[SetAside] = []
    async with opened(path, told.append) as store:
        await store._writer.submit(lambda writer: bool(writer.connection.execute("PRAGMA shrink_memory")))  # no page is at hand any more
        path.write_bytes(damaged_page(path.read_bytes()))
        with pytest.raises(StoreUnavailable):
            for n in range(40):
                await store.erase(SessionKey("0f" * 16, f"talk {n}"))
        await store.apply([OpenSession(KEY, 1.0)])
        assert await store.session(KEY)
    assert len(told) == 1


async def test_a_file_in_which_damage_is_met_again_is_not_checked_each_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(path, 1)
    checks: list[Path] = []
    async with opened(path) as store:
        monkeypatch.setattr(sqlite_writer, "prepare", lambda path, on_damage: checks.append(path) or sqlite_file.prepare(path, on_damage))
        for _ in range(3):
            await store._writer.ready(damage_met=True)
            assert (await store.totals()).sessions == 1
    assert checks == [path]
    with pytest.raises(StoreUnavailable, match="closed"):
        await store._writer.ready()


@pytest.mark.parametrize("kind", ["an empty file", "a file of the first version", "a damaged file"])
async def test_000_s19_the_schema_is_made_anew_when_another_file_takes_the_place_while_the_store_is_open(path: Path, kind: str) -> None:
    other = path.with_name("other.db")
    other.write_bytes(b"no database" if kind == "a damaged file" else b"")
    if kind == "a file of the first version":
        first_version(other)
    told: list[SetAside] = []
    async with opened(path, told.append) as store:
        await store.apply(begun(OTHER, chain("a")))
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).rename(path.with_name("moved.db" + suffix))
        path.rename(path.with_name("moved.db"))
        other.rename(path)
        assert (await store.totals()).sessions == (1 if kind == "a file of the first version" else 0)
        assert await store.history(OTHER, message("a").tip) == []
        await store.apply(begun(OTHER, chain("b")))
        assert await store.history(OTHER, message("b").tip) == chain("b")
    assert [one.path.read_bytes() for one in told] == ([b"no database"] if kind == "a damaged file" else [])


async def test_a_file_that_was_moved_away_while_the_store_is_open_is_made_anew(path: Path) -> None:
    async with opened(path) as store:
        await store.apply([OpenSession(KEY, 1.0)])
        for suffix in ("-wal", "-shm", ""):
            path.with_name(path.name + suffix).rename(path.with_name("moved.db" + suffix))
        await store.apply([OpenSession(OTHER, 1.0)])
        assert await store.session(OTHER)
        assert await store.session(KEY) is None
    async with opened(path.with_name("moved.db")) as store:
        assert await store.session(KEY)


async def test_many_that_open_one_damaged_file_at_once_set_it_aside_once(path: Path) -> None:
    path.write_bytes(b"no database")
    told: list[SetAside] = []
    stores = await asyncio.gather(*(SqliteStore.open(path, told.append) for _ in range(6)))
    for n, store in enumerate(stores):
        await store.apply([OpenSession(SessionKey("0f" * 16, f"talk {n}"), 1.0)])
    assert {(await store.totals()).sessions for store in stores} == {6}
    for store in stores:
        await store.close()
    assert len(told) == 1


# ---------------------------------------------------------------- migrations


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [step.version for step in migrations()] == list(range(1, len(migrations()) + 1))


def first_version(path: Path) -> None:
    """A file as the first version made it, with one session."""
    with closing(sqlite3.connect(path)) as old, old:
        for statement in migrations()[0].statements:
            old.execute(statement)
        old.execute("PRAGMA user_version = 1")
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        columns = "tenant, name, tip, manner, frame, system, model, profile, fixed_tokens, created, last_used"
        counters = "requests, tokens_in, tokens_sent, compactions, messages, turns"
        values = (KEY.tenant, KEY.name.encode(), "", "full", "", b"\x90", b"m", b"", 7, 1.0, 2.0, 3, 0, 0, 0, 0, 0)
        old.execute(f"INSERT INTO sessions ({columns}, {counters}) VALUES ({', '.join('?' * len(values))})", values)


async def test_a_file_of_the_first_version_is_brought_up_to_date_and_keeps_its_sessions(path: Path) -> None:
    first_version(path)
    async with opened(path) as store:
        assert await store.session(KEY) == Session(KEY, manner="full", model="m", fixed_tokens=7, created=1.0, last_used=2.0, requests=3)


async def test_003_22_sessions_can_be_read_as_the_table_of_the_layered_memory(path: Path) -> None:
    trunk = chain("a", "b")
    async with opened(path) as store:
        await store.apply([OpenSession(KEY, 0.0, user="ann"), *begun(KEY, trunk)[1:], CountUse(KEY, requests=3)])
        await store.apply([PutSummary(KEY, summary(row.tip, text)) for row, text in zip(trunk, ("old", "新的"), strict=True)])
        await store.apply([OpenSession(KEY, 86_400.0), OpenSession(OTHER, 60.0)])
        await store.carryover.put_digest(OTHER, Digest("aa", "in short", 1, 1.0))
    with closing(sqlite3.connect(path)) as other:
        columns = [row[1] for row in other.execute("PRAGMA table_info(conversation_context)")]
        found = other.execute("SELECT * FROM conversation_context ORDER BY last_accessed DESC").fetchall()
    assert columns == ["session_id", "user_id", "created_at", "last_accessed", "context_summary", "access_frequency"]
    assert found == [
        (KEY.id, "ann", "1970-01-01 00:00:00", "1970-01-02 00:00:00", "新的", 3),
        (OTHER.id, None, "1970-01-01 00:01:00", "1970-01-01 00:01:00", "in short", 0),
    ]


async def test_opening_again_changes_nothing(path: Path) -> None:
    await fill(path, 1)
    before = path.read_bytes()
    async with opened(path) as store:
        await store.totals()
    assert path.read_bytes() == before


# ---------------------------------------------------------------- kills, full disks, locks


async def test_what_apply_has_answered_outlives_the_process(path: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.contract.store_child", "turns", str(path), cwd=PROJECT, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout
    said: list[int] = []
    while len(said) < 150:
        said.append(int(await child.stdout.readline()))
    os.kill(child.pid, signal.SIGKILL)
    said += [int(line) for line in (await child.stdout.read()).split(b"\n")[:-1]]
    await child.wait()
    async with opened(path) as store:
        session = await store.session(KEY)
        assert session
        stored = await store.history(KEY, session.tip)
    assert said == list(range(len(said)))
    expected = chain(*map(str, range(len(stored))))
    assert len(stored) >= len(said)
    assert stored == expected


async def test_on_a_full_disk_writing_fails_reading_goes_on_and_it_recovers_by_itself(path: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.contract.store_child", "full", str(path), cwd=PROJECT, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await child.communicate()
    assert said.decode().splitlines() == ["unavailable, history 1"] * 3 + ["history 3"]
    assert child.returncode == 0


async def test_writing_waits_for_another_program_that_holds_the_lock(path: Path) -> None:
    async with opened(path) as store:
        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(store.apply([OpenSession(KEY, 1.0)]))
            await store.ping()
            asyncio.get_running_loop().call_later(3.0, other.execute, "ROLLBACK")
            assert await waiting
        assert await store.session(KEY)


async def test_opening_does_not_wait_for_another_program_that_holds_the_lock(path: Path) -> None:
    await fill(path, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store = await SqliteStore.open(path, no_damage)
        assert (await store.totals()).sessions == 1
        other.execute("ROLLBACK")
    await store.close()


# ---------------------------------------------------------------- one transaction for many


async def test_work_that_fails_takes_nobody_else_with_it(path: Path) -> None:
    async with opened(path) as store:
        too_big = [OpenSession(OTHER, 1.0), *begun(KEY, chain("a"))[:1], PutPin(KEY, Pin(2**70, "no such number fits", 1.0))]
        good = [store.apply([OpenSession(SessionKey("0f" * 16, f"talk {n}"), 1.0)]) for n in range(10)]
        outcomes = await asyncio.gather(*good[:5], store.apply(too_big), *good[5:], return_exceptions=True)
        assert [outcome for outcome in outcomes if outcome is not True] == [outcomes[5]]
        assert isinstance(outcomes[5], OverflowError)
        assert await store.session(OTHER) is None
        assert (await store.totals()).sessions == 10


async def test_what_was_handed_in_is_carried_out_though_its_task_is_cancelled(path: Path) -> None:
    async with opened(path) as store:
        task = asyncio.create_task(store.apply(begun(KEY, chain("long " * QUICK_BYTES))))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.apply([OpenSession(OTHER, 1.0)])
        assert await store.session(KEY)


async def test_closing_leaves_no_thread_and_no_log_behind(path: Path) -> None:
    before = set(threading.enumerate())
    store = await SqliteStore.open(path, no_damage)
    await store.apply(begun(KEY, chain("a")))
    await store.session(KEY)
    await store.close()
    path.with_name("broken").mkdir()
    with pytest.raises(ConfigError):
        await SqliteStore.open(path.with_name("broken"), no_damage)
    left = {thread for thread in threading.enumerate() if not thread.name.startswith("asyncio")} - before
    assert left == set()
    assert sorted(file.name for file in path.parent.iterdir()) == ["broken", "talks.db"]


async def test_a_program_that_ends_without_closing_its_store_ends(path: Path) -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.contract.store_child", "leave", str(path), cwd=PROJECT)
    assert await asyncio.wait_for(child.wait(), 60) == 7


# ---------------------------------------------------------------- erasing


async def test_nothing_of_an_erased_session_is_left_in_any_file(path: Path) -> None:
    key = SessionKey("ab" * 16, "NAME-of-the-session")
    trunk = chain(*(f"SECRET-{n} " * size for n, size in enumerate((1, 40, 400, 4000))))
    async with opened(path) as store, opened(path) as other:
        await store.apply([OpenSession(key, 1.0, "full", "FRAME-digest", (b"SYSTEM-text",), model="MODEL-asked"), *begun(key, trunk)[1:]])
        await store.apply([PutPin(key, Pin(1, "PINNED-text", 1.0)), Forget(key, trunk[0].tip)])
        await store.apply([PutSummary(key, summary(trunk[1].tip, "SUMMARY-text")), PutCheckpoint(key, checkpoint(trunk[1].tip, "CHECKPOINT-text"))])
        await store.apply(begun(OTHER, chain("KEPT-text")))
        assert await other.session(key)
        needles = [b"SECRET-", b"NAME-of", b"FRAME-", b"SYSTEM-", b"MODEL-", b"PINNED-", b"SUMMARY-", b"CHECKPOINT-"]
        needles += [one.tip.encode() for one in trunk] + [b"ab" * 16]
        before = bytes_of(path.parent)
        assert [needle for needle in needles if needle not in before] == []
        assert await store.erase(key)
        after = bytes_of(path.parent)
        assert [needle for needle in needles if needle in after] == []
        assert b"KEPT-text" in after
        assert await other.history(OTHER, message("KEPT-text").tip)


async def test_nothing_of_an_erased_message_is_left_in_any_file(path: Path) -> None:
    trunk = chain("before", "SECRET-text " * 500, "after")
    async with opened(path) as store:
        await store.apply([*begun(KEY, trunk), PutSummary(KEY, summary(trunk[2].tip, "SECRET-text in short"))])
        await store.apply([PutCheckpoint(KEY, checkpoint(trunk[2].tip, "SECRET-text shortened"))])
        await store.apply([Forget(KEY, trunk[1].tip, erase=True)])
        assert b"SECRET-text" not in bytes_of(path.parent)
        assert [one.raw for one in await store.history(KEY, trunk[2].tip)] == [trunk[0].raw, b"", trunk[2].raw]


async def test_no_copy_that_rebalancing_left_in_a_page_outlives_the_erasing(path: Path) -> None:
    """Many small rows come and go: without a rewrite of the file some texts stay in the free space of pages that they once were on."""
    dice, live, gone = random.Random(7), dict[SessionKey, list[bytes]](), set[bytes]()
    async with opened(path) as store:
        for step in range(900):
            key = SessionKey("0f" * 16, f"talk {dice.randrange(40)}")
            if key in live and dice.random() < 0.1:
                gone |= set(live.pop(key))
                assert await store.erase(key)
                continue
            texts = [f"TEXT{step:05d}{n}|" * dice.choice([1, 2, 20, 200]) for n in range(3)]
            await store.apply([OpenSession(key, float(step)), AppendMessages(key, tuple(chain(*texts)))])
            live.setdefault(key, []).extend(text[:11].encode() for text in texts)
        for key in list(live)[::2]:
            gone |= set(live.pop(key))
            assert await store.erase(key)
        left = bytes_of(path.parent)
        assert [text for text in gone if text in left] == []
        assert [text for texts in live.values() for text in texts if text not in left] == []


async def test_an_erasing_that_was_cut_short_is_finished_at_the_next_opening(path: Path) -> None:
    await fill(path, 3)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("INSERT INTO pins SELECT id, 1, 'SECRET-text', 1.0 FROM sessions LIMIT 1")
        other.execute("BEGIN")
        other.execute("DELETE FROM pins")
        other.execute("INSERT INTO erasures DEFAULT VALUES")
        other.execute("COMMIT")
    assert b"SECRET-text" in bytes_of(path.parent)
    async with opened(path) as store:
        await store.apply([OpenSession(KEY, 1.0)])
    assert b"SECRET-text" not in bytes_of(path.parent)


async def test_a_reader_of_the_old_state_holds_the_erasing_up_and_the_next_one_finishes_it(path: Path) -> None:
    async with opened(path) as store:
        await store.apply([*begun(KEY, chain("SECRET-text")), OpenSession(OTHER, 1.0)])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM sessions").fetchone()
            with pytest.raises(StoreUnavailable, match="still reads"):
                await store.erase(KEY)
            assert await store.session(KEY) is None
            other.execute("ROLLBACK")
        assert await store.erase(OTHER)
        assert b"SECRET-text" not in bytes_of(path.parent)


class AtACheckpoint(sqlite3.Connection):
    """A connection for which another process is at a checkpoint the first three times, as SQLite says it."""

    refused = 0

    def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
        if "TRUNCATE" in sql and self.refused < 3:
            self.refused += 1
            return super().execute("SELECT 1, -1, -1")
        return super().execute(sql, *values)


async def test_a_checkpoint_of_another_process_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAUSE_S", 0.0)
    monkeypatch.setattr(sqlite_writer.time, "sleep", pauses.append)
    async with opened(path) as store:
        await store.apply(begun(KEY, chain("SECRET-text")))
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=AtACheckpoint)
        assert store._writer._writer is not None
        store._writer._writer.connection.close()
        store._writer._writer.connection = other
        assert await store.erase(KEY)
    assert pauses == [0.0] * 3
    assert b"SECRET-text" not in bytes_of(path.parent)


# ---------------------------------------------------------------- look-ups

LOOK_UPS = [
    "session",
    "find",
    "last_known",
    "history",
    "leaves",
    "checkpoint_places",
    "checkpoints_by_id",
    "checkpoints",
    "summaries_at",
    "summaries",
    "pins",
    "locate",
]
LOOK_UPS += ["log", "tenants"]
VALUES = dict.fromkeys(("name", "tenant", "tip", "known", "after", "first", "beyond", "query", "tag", "last_used", "id", "limit"), "x") | {
    "tips": "[]",
    "ids": "[]",
}


async def plan_of(path: Path, query: str) -> list[str]:
    async with opened(path):
        with closing(sqlite3.connect(path)) as other:
            return [row[3] for row in other.execute("EXPLAIN QUERY PLAN " + named_queries("reads.sql")[query], VALUES)]


@pytest.mark.parametrize("query", LOOK_UPS)
async def test_a_question_is_answered_by_look_ups_in_indexes(path: Path, query: str) -> None:
    plan = await plan_of(path, query)
    tables = ("SCAN here", "SCAN chain", "SCAN c", "SCAN found", "SCAN t VIRTUAL TABLE", "SCAN json_each VIRTUAL TABLE")
    assert [step for step in plan if step.startswith("SCAN") and not step.startswith(tables)] == []
    assert any(step.startswith("SEARCH") for step in plan)


async def test_branches_and_pages_come_in_the_order_of_an_index(path: Path) -> None:
    for query in ("leaves", "page", "locate"):
        assert [step for step in await plan_of(path, query) if "TEMP B-TREE" in step] == []
    assert "SEARCH s USING INDEX sessions_by_use (last_used<?)" in " ".join(await plan_of(path, "page")).replace(
        "(last_used,id)<(?,?)", "(last_used<?)"
    )


def test_a_decision_of_an_earlier_version_is_still_read() -> None:
    entry = {"tip": "ab" * 16, "raw": None, "tokens": 3, "stage": "", "covers": []}
    written = msgspec.msgpack.encode([[entry], [["summarize", 1]]])
    found = rows.checkpoint_of(("cd" * 16, b"m/adaptive", written, 1.0, ""))
    assert found == Checkpoint("cd" * 16, "m/adaptive", (FrozenEntry("ab" * 16, tokens=3),), 1.0, "", (("summarize", 1),))
