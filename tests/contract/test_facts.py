"""Memory points in every store: the newest wins, history stays, and they go with their message and their session."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctxproxy.core.effects import AppendMessages, Forget, MoveTip, OpenSession, PutSummary
from ctxproxy.core.messages import ROOT
from ctxproxy.core.points import MAX_POINTS, MAX_USER_SESSIONS, MemoryPoint, Point, PointChanges, Unread
from ctxproxy.core.records import SessionKey, Span
from ctxproxy.errors import StoreUnavailable
from ctxproxy.store import open_store
from ctxproxy.store.queries import named_queries
from tests.contract.conftest import Handles, no_damage
from tests.contract.samples import KEY, OTHER, begun, chain, message, summary

FOREIGN = SessionKey("1e" * 16, "talk")
MIGRATION = 12
"""The one since when it is kept how far a session was read."""


def point(
    value: str, key: str = "budget", *, kind: str = "number", tip: str = "aa", time: float = 1.0, weight: float = 3.0, source: str = "rules"
) -> Point:
    return Point(kind, key, value, tip, time, weight, source)  # type: ignore[arg-type]


def new(*points: Point) -> PointChanges:
    return PointChanges(points)


async def open_all(stores: Handles, *keys: SessionKey, user: str = "ann") -> None:
    await stores.write.apply([OpenSession(key, 1.0, user=user) for key in keys])


async def told(stores: Handles, key: SessionKey = KEY) -> list[tuple[int, str, int | None, bool]]:
    return [(one.number, one.point.value, one.superseded_by, one.taken_back) for one in await stores.read.facts.of(key)]


async def test_a_point_comes_back_as_it_was_put(stores: Handles) -> None:
    await open_all(stores, KEY)
    one = point("4,500 €\ud83c\0", "bud\ud83cget", kind="decision", tip="ab" * 16, time=2.5, weight=1.5, source="summary")
    assert await stores.write.facts.put(KEY, "ann\ud83c", new(one))
    assert await stores.read.facts.of(KEY) == [MemoryPoint(1, one, KEY, "ann\ud83c")]
    assert await stores.read.facts.of(OTHER) == []


async def test_the_newest_of_a_kind_and_key_is_in_force_and_the_old_one_is_kept(stores: Handles) -> None:
    await open_all(stores, KEY)
    await stores.write.facts.put(KEY, "ann", new(point("1"), point("2", tip="bb"), point("x", "name", kind="entity")))
    await stores.write.facts.put(KEY, "ann", new(point("3", tip="cc")))
    assert await told(stores) == [(1, "1", 2, False), (2, "2", 4, False), (3, "x", None, False), (4, "3", None, False)]


async def test_what_was_said_earlier_and_is_put_later_does_not_replace_what_a_message_said_since(stores: Handles) -> None:
    await open_all(stores, KEY)
    await stores.write.facts.put(KEY, "ann", new(point("new", tip="bb", time=2.0)))
    await stores.write.facts.put(KEY, "ann", new(point("old", time=1.0)))
    assert await told(stores) == [(1, "new", None, False), (2, "old", 1, False)]
    await stores.write.facts.put(KEY, "ann", new(point("summed up", tip="cc", time=4.0, source="summary"), point("said", tip="dd", time=3.0)))
    assert await told(stores) == [(1, "new", 3, False), (2, "old", 1, False), (3, "summed up", 4, False), (4, "said", None, False)]


async def test_what_one_message_tells_is_put_once_and_an_anchor_is_kept_once(stores: Handles) -> None:
    await open_all(stores, KEY)
    for time, weight in ((1.0, 1.0), (2.0, 0.5), (3.0, 2.0)):
        anchor = point("id", "A-1", kind="anchor", tip=f"{time:.0f}", time=time, weight=weight)
        await stores.write.facts.put(KEY, "ann", new(point("1"), anchor))
    first, anchor = [one.point for one in await stores.read.facts.of(KEY)]
    assert (first.value, anchor.key, anchor.tip, anchor.time, anchor.weight) == ("1", "A-1", "1", 3.0, 2.0)


async def test_what_is_replaced_or_taken_back_is_no_longer_in_force(stores: Handles) -> None:
    await open_all(stores, KEY, OTHER)
    await stores.write.facts.put(OTHER, "ann", new(point("there")))
    await stores.write.facts.put(KEY, "ann", new(point("old", "a"), point("older", "b"), point("mine", "c")))
    changes = PointChanges((point("new", "d", tip="bb"),), ((1, 0), (99, 0)), ((KEY, 2), (OTHER, 1), (OTHER, 77), (FOREIGN, 1)))
    assert await stores.write.facts.put(KEY, "ann", changes)
    assert await told(stores) == [(1, "old", 4, False), (2, "older", None, True), (3, "mine", None, False), (4, "new", None, False)]
    assert await told(stores, OTHER) == [(1, "there", None, True)]
    assert [one.in_force for one in await stores.read.facts.of(KEY)] == [False, False, True, True]


async def test_nothing_is_replaced_by_a_point_that_was_already_there(stores: Handles) -> None:
    await open_all(stores, KEY)
    await stores.write.facts.put(KEY, "ann", new(point("old", "a"), point("known", "b")))
    await stores.write.facts.put(KEY, "ann", PointChanges((point("known", "b"),), ((1, 0),)))
    assert await told(stores) == [(1, "old", None, False), (2, "known", None, False)]


async def test_of_too_many_the_history_goes_first_then_the_least_weighty_then_the_oldest(stores: Handles) -> None:
    await open_all(stores, KEY)
    old = [point(f"h{n}", "same", tip=f"h{n}", weight=9.0) for n in range(3)]
    many = [point(f"v{n}", f"k{n}", weight=1.0 if n < 10 else 2.0, time=float(n)) for n in range(MAX_POINTS)]
    await stores.write.facts.put(KEY, "ann", new(*old, *many))
    left = {one.point.value for one in await stores.read.facts.of(KEY)}
    assert left == {"h2", *(one.value for one in many[1:])}


async def test_nothing_is_put_for_a_session_that_is_not_there(stores: Handles) -> None:
    assert not await stores.write.facts.put(KEY, "ann", new(point("1")))
    await open_all(stores, KEY)
    assert await stores.read.facts.of(KEY) == []


async def test_points_that_are_taken_over_stand_as_they_are_told_in_place_of_all_others(stores: Handles) -> None:
    await open_all(stores, KEY)
    await stores.write.facts.put(KEY, "ann", new(point("gone")))
    kept = [MemoryPoint(2, point("1"), KEY, "ann", 7), MemoryPoint(5, point("2"), KEY, "", None, True), MemoryPoint(7, point("\ud83c"), KEY, "bob")]
    assert await stores.write.facts.take(KEY, kept)
    assert await stores.read.facts.of(KEY) == kept
    await stores.write.facts.put(KEY, "ann", new(point("next", "other")))
    assert [one.number for one in await stores.read.facts.of(KEY)] == [2, 5, 7, 8]
    assert not await stores.write.facts.take(OTHER, kept)


async def test_a_dropped_point_takes_along_what_it_took_the_place_of(stores: Handles) -> None:
    await open_all(stores, KEY)
    await stores.write.facts.put(KEY, "ann", new(point("1"), point("2", tip="bb"), point("3", tip="cc"), point("x", "other")))
    assert await stores.write.facts.drop(KEY, 3)
    assert await told(stores) == [(4, "x", None, False)]
    assert not await stores.write.facts.drop(KEY, 3)
    assert not await stores.write.facts.drop(OTHER, 1)


@pytest.mark.parametrize("erase", [False, True])
async def test_forgetting_a_message_takes_what_it_told_and_what_came_before_holds_again(stores: Handles, *, erase: bool) -> None:
    trunk = chain("a", "b", "c")
    await stores.write.apply(begun(KEY, trunk))
    tips = [one.tip for one in trunk]
    await stores.write.facts.put(KEY, "ann", new(point("1", tip=tips[0]), point("2", tip=tips[1]), point("z", "z", tip=tips[2])))
    await stores.write.facts.put(KEY, "ann", new(*(point(f"s{n}", f"s{n}", tip=tip, source="summary") for n, tip in enumerate(tips))))
    await stores.write.apply([PutSummary(KEY, summary(tips[2])), Forget(KEY, tips[1], erase)])
    assert [(value, by) for _, value, by, _ in await told(stores)] == [("1", None), ("z", None), ("s0", None)]


async def test_what_a_forgotten_message_took_the_place_of_does_not_hold_again_beside_what_came_later(stores: Handles) -> None:
    trunk = chain("a", "b", "c", "d")
    await stores.write.apply(begun(KEY, trunk))
    await stores.write.facts.put(KEY, "ann", new(*(point(str(n), tip=one.tip) for n, one in enumerate(trunk))))
    await stores.write.apply([Forget(KEY, trunk[1].tip)])
    assert await told(stores) == [(1, "0", 3, False), (3, "2", 4, False), (4, "3", None, False)]
    await stores.write.apply([Forget(KEY, trunk[2].tip), Forget(KEY, trunk[3].tip)])
    assert await told(stores) == [(1, "0", None, False)]


async def test_points_of_a_user_come_from_all_his_sessions_the_newest_first_and_anchors_last(stores: Handles) -> None:
    await open_all(stores, KEY, OTHER, FOREIGN)
    await open_all(stores, SessionKey(KEY.tenant, "bob's"), user="bob")
    await stores.write.facts.put(KEY, "ann", new(point("1", time=1.0), point("gone", "g", time=9.0), point("id", "A-1", kind="anchor", time=8.0)))
    await stores.write.facts.put(KEY, "ann", PointChanges(taken_back=((KEY, 2),)))
    await stores.write.facts.put(OTHER, "ann", new(point("2", time=2.0), point("old", "o", tip="x"), point("3", "o", time=3.0, tip="y")))
    await stores.write.facts.put(OTHER, "", new(point("nobody's", "n")))
    await stores.write.facts.put(FOREIGN, "ann", new(point("foreign")))
    await stores.write.facts.put(SessionKey(KEY.tenant, "bob's"), "bob", new(point("bob's")))
    found = await stores.read.facts.of_user(KEY.tenant, "ann", 10)
    assert [(one.session, one.point.value) for one in found] == [(OTHER, "3"), (OTHER, "2"), (KEY, "1"), (KEY, "id")]
    assert await stores.read.facts.of_user(KEY.tenant, "ann", 2) == found[:2]
    assert await stores.read.facts.tenants("ann") == [KEY.tenant, FOREIGN.tenant]
    assert await stores.read.facts.tenants("nobody \ud83c") == []


async def test_only_the_sessions_that_a_user_used_last_are_looked_through(stores: Handles) -> None:
    keys = [SessionKey(KEY.tenant, f"s{n}") for n in range(MAX_USER_SESSIONS + 1)]
    for n, key in enumerate(keys):
        await stores.write.apply([OpenSession(key, float(n), user="ann")])
        await stores.write.facts.put(key, "ann", new(point(key.name)))
    found = {one.point.value for one in await stores.read.facts.of_user(KEY.tenant, "ann", 999)}
    assert found == {key.name for key in keys[1:]}


@pytest.mark.parametrize("query", ["points", "points_of_user"])
async def test_points_are_found_by_an_index(tmp_path: Path, query: str) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/talks.db", on_damage=no_damage)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "talks.db")) as other:
        values = dict.fromkeys(("name", "tenant", "user", "sessions", "limit"), 1)
        steps = [row[3] for row in other.execute("EXPLAIN QUERY PLAN " + named_queries("facts.sql")[query], values)]
    assert [step for step in steps if step.startswith("SEARCH p ")]
    assert [step for step in steps if "sessions_by_" in step]


async def test_an_erased_session_has_no_points_and_begins_anew_without(stores: Handles) -> None:
    await open_all(stores, KEY)
    await stores.write.facts.put(KEY, "ann", new(point("1")))
    await stores.write.erase(KEY)
    assert await stores.read.facts.of(KEY) == []
    await open_all(stores, KEY)
    assert await stores.read.facts.of(KEY) == []
    assert await stores.read.facts.of_user(KEY.tenant, "ann", 9) == []


async def test_a_closed_store_says_so(stores: Handles) -> None:
    await stores.write.close()
    with pytest.raises(StoreUnavailable):
        await stores.write.facts.put(KEY, "ann", new(point("1")))
    with pytest.raises(StoreUnavailable):
        await stores.write.facts.of(KEY)


@pytest.mark.parametrize("way", ["session", "point", "message"])
async def test_nothing_of_what_is_erased_is_left_in_any_file(tmp_path: Path, way: str) -> None:
    trunk = chain("a", "b")
    store = await open_store(f"sqlite:///{tmp_path}/talks.db", on_damage=no_damage)
    try:
        await store.apply([*begun(KEY, trunk), OpenSession(OTHER, 1.0)])
        await store.facts.put(OTHER, "", new(point("KEPT-value")))
        await store.facts.put(
            KEY, "USER-name", new(point("SECRET-old", "SECRET-key", tip=trunk[1].tip), point("SECRET-new", "SECRET-key", tip=trunk[1].tip))
        )
        assert b"SECRET-new" in bytes_of(tmp_path)
        match way:
            case "session":
                assert await store.erase(KEY)
            case "point":
                assert await store.facts.drop(KEY, 2)
            case "message":
                await store.apply([Forget(KEY, trunk[1].tip, erase=True)])
        assert [needle for needle in (b"SECRET-old", b"SECRET-new", b"SECRET-key", b"USER-name") if needle in bytes_of(tmp_path)] == []
        assert b"KEPT-value" in bytes_of(tmp_path)
    finally:
        await store.close()


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_what_was_stored_behind_the_last_message_that_was_read_is_unread_the_session_used_last_first(stores: Handles) -> None:
    rows, others = chain("a", "b", "c"), chain("x")
    aside = message("d", rows[0].tip)
    write, facts = stores.write, stores.read.facts
    await write.apply([OpenSession(KEY, 1.0, user="ann"), *begun(KEY, rows)[1:], *begun(OTHER, others, now=2.0)])
    other = Unread(OTHER, "", Span(ROOT, others[0].tip))
    assert await facts.unread(9) == [other, Unread(KEY, "ann", Span(ROOT, rows[2].tip))]
    assert await facts.unread(1) == [other]
    assert await write.facts.put(OTHER, "", PointChanges(), others[0].tip)
    await write.facts.put(KEY, "ann", PointChanges(), rows[1].tip)
    await write.facts.put(KEY, "ann", PointChanges(), rows[0].tip)
    await write.facts.put(KEY, "ann", new(point("1 €")))
    assert await facts.unread(9) == [Unread(KEY, "ann", Span(rows[1].tip, rows[2].tip))]
    await write.apply([AppendMessages(KEY, (aside,)), MoveTip(KEY, None, aside.tip)])
    assert await facts.unread(9) == [Unread(KEY, "ann", Span(rows[0].tip, aside.tip))]
    await write.facts.put(KEY, "ann", PointChanges(), aside.tip)
    assert await facts.unread(9) == []
    await write.apply([MoveTip(KEY, None, rows[2].tip)])
    assert await facts.unread(9) == [], "what was written before it counts as read"


async def test_where_points_are_taken_over_nothing_is_unread_but_what_comes_then(stores: Handles) -> None:
    rows = chain("a", "b", "c")
    await stores.write.apply(begun(KEY, rows[:2]))
    assert await stores.write.facts.take(KEY, [MemoryPoint(1, point("1"), KEY, "ann")])
    assert await stores.read.facts.unread(9) == []
    await stores.write.apply([AppendMessages(KEY, (rows[2],)), MoveTip(KEY, None, rows[2].tip)])
    assert await stores.read.facts.unread(9) == [Unread(KEY, "", Span(rows[1].tip, rows[2].tip))]


async def test_of_a_file_of_before_a_session_that_has_points_counts_as_read(tmp_path: Path) -> None:
    rows, path = chain("a", "b"), tmp_path / "talks.db"
    store = await open_store(f"sqlite:///{path}", on_damage=no_damage, cache_bytes=0)
    await store.apply([*begun(KEY, rows), *begun(OTHER, chain("x"))])
    await store.facts.put(KEY, "", new(point("1 €")))
    await store.close()
    with closing(sqlite3.connect(path)) as file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
        file.execute("ALTER TABLE sessions DROP COLUMN read_to")
        file.execute("DROP TABLE dues")
        file.execute(f"PRAGMA user_version = {MIGRATION - 1}")
        file.commit()
    store = await open_store(f"sqlite:///{path}", on_damage=no_damage, cache_bytes=0)
    assert [one.session for one in await store.facts.unread(9)] == [OTHER]
    assert version >= MIGRATION
    await store.close()
