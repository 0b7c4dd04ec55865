"""What the loop's own connection does at once, and what it leaves to others."""
# ruff: noqa: ASYNC240 - a test may wait for a small file

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from ctxproxy.core.effects import MoveTip, OpenSession, PutSummary
from ctxproxy.store import SqliteStore, sqlite_direct
from ctxproxy.store.queries import named_queries
from ctxproxy.store.rows import key_values
from ctxproxy.store.sqlite import QUICK_MESSAGES
from ctxproxy.store.sqlite_direct import SqliteDirect
from tests.contract.conftest import no_damage
from tests.contract.samples import KEY, OTHER, begun, chain, summary

SESSION = named_queries("reads.sql")["session"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talks.db"


@pytest.fixture
async def direct(path: Path) -> AsyncIterator[SqliteDirect]:
    """A connection to a store's file, in which one session is."""
    store = await SqliteStore.open(path, no_damage)
    await store.apply(begun(KEY, chain("a")))
    made = SqliteDirect(path)
    made.open()
    yield made
    made.close()
    await store.close()


def opened(direct: SqliteDirect) -> bool | None:
    return direct.write(lambda writer: writer.carry_out([OpenSession(OTHER, 1.0)]))


async def test_what_it_writes_is_there_when_it_returns(direct: SqliteDirect) -> None:
    assert opened(direct) is True
    assert len(direct.rows(SESSION, key_values(OTHER)) or []) == 1


async def test_a_refused_list_is_undone_whole(direct: SqliteDirect) -> None:
    refused = [OpenSession(OTHER, 1.0), MoveTip(OTHER, "ab" * 16, "cd" * 16, required=True)]
    assert direct.write(lambda writer: writer.carry_out(refused)) is False
    assert direct.rows(SESSION, key_values(OTHER)) == []


async def test_what_the_work_raises_is_raised_and_undone(direct: SqliteDirect) -> None:
    def wrong(writer: object) -> bool:
        raise OverflowError

    with pytest.raises(OverflowError):
        direct.write(wrong)
    assert opened(direct) is True


async def test_while_another_one_writes_it_waits_for_nobody(direct: SqliteDirect, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert opened(direct) is None
        assert len(direct.rows(SESSION, key_values(KEY)) or []) == 1
        other.execute("ROLLBACK")
    assert opened(direct) is True


async def test_a_question_that_fails_and_a_write_that_fails_end_the_connection(direct: SqliteDirect) -> None:
    assert direct.rows("SELECT nonsense", {}) is None
    assert not direct.is_open
    assert direct.rows(SESSION, key_values(KEY)) is None
    assert opened(direct) is None
    direct.open()
    assert direct.write(lambda writer: bool(writer.connection.execute("SELECT nonsense"))) is None
    assert not direct.is_open


async def test_an_integrity_error_is_the_writers_to_tell(direct: SqliteDirect) -> None:
    again = "INSERT INTO bodies (id, digest, raw) SELECT id, x'00', raw FROM bodies"
    assert direct.write(lambda writer: bool(writer.connection.execute(again))) is None
    assert not direct.is_open


async def test_where_the_path_leads_to_another_file_nothing_is_done(direct: SqliteDirect, path: Path) -> None:
    path.rename(path.with_name("moved.db"))
    assert direct.rows(SESSION, key_values(KEY)) is None
    assert opened(direct) is None
    path.with_name("moved.db").rename(path)


async def test_where_there_is_no_database_it_stays_closed(tmp_path: Path) -> None:
    direct = SqliteDirect(tmp_path / "nowhere" / "talks.db")
    direct.open()
    assert not direct.is_open


async def test_the_log_is_folded_into_the_file_by_the_writer_from_time_to_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_direct, "FOLDED_AFTER", 3)
    store = await SqliteStore.open(path, no_damage)
    for turn in range(20):  # the writer does the first ones, as long as it is busy with the opening
        await store.apply([OpenSession(KEY, float(turn))])
    for _ in range(2):  # the writer does one after the other: before the second, what it was asked for is done
        await store._writer.submit(lambda _: True)
    with closing(sqlite3.connect(path.as_uri() + "?immutable=1", uri=True)) as other:
        ((last_used,),) = other.execute("SELECT last_used FROM sessions").fetchall()
    assert last_used >= 10
    await store.close()


async def test_what_is_written_while_the_store_closes_opens_nothing_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(path, no_damage)
    await store.apply(begun(KEY, chain("a")))
    writing = asyncio.create_task(store.apply([PutSummary(KEY, summary(chain("a")[0].tip))]))
    close = store._readers.close

    async def slowly() -> None:
        await writing
        await close()

    monkeypatch.setattr(store._readers, "close", slowly)
    await asyncio.sleep(0)
    await store.close()
    assert writing.result()
    assert not store._direct.is_open


def idle(store: SqliteStore) -> None:
    while not store._writer.is_idle:
        pass


async def test_many_small_messages_are_the_writers_as_large_ones_are(path: Path) -> None:
    store = await SqliteStore.open(path, no_damage)
    few, many = [str(n) for n in range(QUICK_MESSAGES)], [str(n) for n in range(QUICK_MESSAGES + 1)]
    await asyncio.to_thread(idle, store)
    for key, texts, is_left in ((KEY, few, False), (OTHER, many, True)):
        writing = asyncio.create_task(store.apply(begun(key, chain(*texts))))
        await asyncio.sleep(0)
        assert writing.done() is not is_left
        assert await writing
    await store.close()
