"""What a store remembers of histories is what is stored, whoever has written since; and it reads only what came since."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from ctxproxy.core.effects import AppendMessages, Forget, MoveTip, OpenSession
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import StoredMessage
from ctxproxy.store import SqliteStore, cached, open_store
from ctxproxy.store.cached import Histories, Since
from tests.contract.conftest import CACHE_BYTES, Handles, no_damage
from tests.contract.samples import KEY, OTHER, begun, chain, message

TRUNK = chain(*"abcdefgh")


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Handles]:
    """Two handles that remember, as two processes have."""
    opened = [await open_store(f"sqlite:///{tmp_path}/talks.db", on_damage=no_damage, cache_bytes=CACHE_BYTES) for _ in range(2)]
    yield Handles(*opened)
    for store in opened:
        await store.close()


def held(store: object) -> Histories:
    assert isinstance(store, SqliteStore)
    return store._histories


async def test_what_another_handle_appends_is_read_behind_what_is_remembered(both: Handles) -> None:
    await both.write.apply(begun(KEY, TRUNK[:4]))
    for end in (4, 6, 6, 8):
        await both.write.apply([AppendMessages(KEY, tuple(TRUNK[:end]))])
        assert await both.read.history(KEY, TRUNK[end - 1].tip) == TRUNK[:end]
        assert await both.write.history(KEY, TRUNK[end - 1].tip) == TRUNK[:end]


async def test_what_is_asked_for_beside_what_is_remembered_is_read_anew(both: Handles) -> None:
    fork = chain("x", "y", parent=TRUNK[2].tip)
    await both.write.apply([*begun(KEY, TRUNK), AppendMessages(KEY, tuple(fork)), *begun(OTHER, TRUNK[:2])])
    for tip, expected in (
        (TRUNK[7].tip, TRUNK),
        (TRUNK[3].tip, TRUNK[:4]),
        (fork[1].tip, [*TRUNK[:3], *fork]),
        (TRUNK[7].tip, TRUNK),
        ("", []),
        ("ff" * 16, []),
        ("no tip \ud83c", []),
        (TRUNK[7].tip, TRUNK),
    ):
        assert await both.read.history(KEY, tip) == expected
    assert await both.read.history(OTHER, TRUNK[7].tip) == []
    assert await both.read.history(OTHER, TRUNK[1].tip) == TRUNK[:2]


async def test_what_another_handle_erases_or_mends_is_seen_at_once(both: Handles) -> None:
    partial = replace(TRUNK[3], raw=b"{", partial=True)
    await both.write.apply(begun(KEY, [*TRUNK[:3], partial]))
    assert (await both.read.history(KEY, TRUNK[3].tip))[-1].partial
    await both.write.apply([AppendMessages(KEY, (TRUNK[3],))])
    assert await both.read.history(KEY, TRUNK[3].tip) == TRUNK[:4]
    await both.write.apply([Forget(KEY, TRUNK[1].tip, erase=True)])
    assert [one.raw for one in await both.read.history(KEY, TRUNK[3].tip)] == [TRUNK[0].raw, b"", TRUNK[2].raw, TRUNK[3].raw]
    await both.write.apply([AppendMessages(KEY, (TRUNK[4],)), Forget(KEY, TRUNK[0].tip, erase=True)])
    assert [one.raw for one in await both.read.history(KEY, TRUNK[4].tip)][:2] == [b"", b""]


async def test_a_session_that_another_handle_erased_is_gone_and_one_begun_anew_is_another(both: Handles) -> None:
    await both.write.apply(begun(KEY, TRUNK))
    assert await both.read.history(KEY, TRUNK[7].tip) == TRUNK
    assert await both.write.erase(KEY)
    assert await both.read.history(KEY, TRUNK[7].tip) == []
    await both.write.apply(begun(KEY, TRUNK))
    assert await both.read.history(KEY, TRUNK[7].tip) == TRUNK
    assert await both.write.erase(KEY)
    later = [replace(one, created=9.0, tokens=1) for one in TRUNK]
    await both.write.apply(begun(KEY, later))
    assert await both.read.history(KEY, TRUNK[7].tip) == later


@pytest.mark.parametrize("how", ["erase", "forget", "retention"])
async def test_erasing_through_a_handle_leaves_nothing_in_its_memory(both: Handles, how: str) -> None:
    await both.write.apply([*begun(KEY, TRUNK), *begun(OTHER, TRUNK[:1])])
    for key in (KEY, OTHER):
        await both.write.history(key, TRUNK[0].tip)
    assert len(held(both.write)._held) == 2
    if how == "erase":
        await both.write.erase(KEY)
    elif how == "forget":
        await both.write.apply([Forget(KEY, TRUNK[0].tip, erase=True)])
    else:
        assert await both.write.retention.erase(KEY, 99.0)
    assert held(both.write)._held.get(KEY) is None
    assert held(both.write)._held.get(OTHER)


async def test_many_that_write_and_read_at_once_see_what_is_stored(both: Handles) -> None:
    await both.write.apply([OpenSession(KEY, 1.0)])
    long = chain(*(f"message {n}" for n in range(40)))

    async def grow() -> None:
        for one in long:
            await both.write.apply([AppendMessages(KEY, (one,)), MoveTip(KEY, None, one.tip)])

    async def follow() -> None:
        while True:
            session = await both.read.session(KEY)
            assert session
            found = await both.read.history(KEY, session.tip)
            assert found == long[: len(found)]
            if session.tip == long[-1].tip:
                return

    await asyncio.gather(grow(), *(follow() for _ in range(4)))


# ---------------------------------------------------------------- what is remembered, by itself


class Reading:
    """A stored history that tells from where it was read."""

    def __init__(self, messages: list[StoredMessage], revision: int = 1) -> None:
        self.messages = messages
        self.revision = revision
        self.asked: list[Tip] = []

    async def __call__(self, known: Tip) -> Since | None:
        self.asked.append(known)
        tips = [one.tip for one in self.messages]
        return Since(self.revision, self.messages[tips.index(known) + 1 if known in tips else 0 :]) if self.messages else None


async def test_only_what_came_since_is_read() -> None:
    histories, tip = Histories(CACHE_BYTES), TRUNK[5].tip
    await histories.of(KEY, TRUNK[3].tip, Reading(TRUNK[:4]))
    reading = Reading(TRUNK[:6])
    assert await histories.of(KEY, tip, reading) == TRUNK[:6]
    assert await histories.of(KEY, tip, reading) == TRUNK[:6]
    assert reading.asked == [TRUNK[3].tip, tip]


async def test_under_another_revision_all_is_read_again() -> None:
    histories = Histories(CACHE_BYTES)
    await histories.of(KEY, TRUNK[3].tip, Reading(TRUNK[:4]))
    changed = [replace(TRUNK[0], raw=b""), *TRUNK[1:6]]
    reading = Reading(changed, revision=2)
    assert await histories.of(KEY, TRUNK[5].tip, reading) == changed
    assert reading.asked == [TRUNK[3].tip, ""]


async def test_a_session_that_is_gone_is_remembered_no_more() -> None:
    histories = Histories(CACHE_BYTES)
    await histories.of(KEY, TRUNK[3].tip, Reading(TRUNK[:4]))
    assert await histories.of(KEY, TRUNK[3].tip, Reading([])) == []
    reading = Reading(TRUNK[:4])
    await histories.of(KEY, TRUNK[3].tip, reading)
    assert reading.asked == [""]


async def test_a_part_of_what_is_remembered_does_not_take_its_place() -> None:
    histories = Histories(CACHE_BYTES)
    await histories.of(KEY, TRUNK[7].tip, Reading(TRUNK))
    await histories.of(KEY, TRUNK[1].tip, Reading(TRUNK[:2]))
    reading = Reading(TRUNK)
    await histories.of(KEY, TRUNK[7].tip, reading)
    assert reading.asked == [TRUNK[7].tip]


async def test_what_is_read_while_its_session_is_erased_is_not_remembered() -> None:
    histories = Histories(CACHE_BYTES)

    async def erased_meanwhile(known: Tip) -> Since | None:
        histories.drop(KEY)
        return Since(1, TRUNK)

    assert await histories.of(KEY, TRUNK[7].tip, erased_meanwhile) == TRUNK
    assert len(histories._held) == 0


async def test_without_room_nothing_is_remembered_and_with_little_the_rest_goes() -> None:
    none, little = Histories(0), Histories(2 * (cached.MESSAGE_BYTES + 100))
    for histories, number in ((none, 0), (little, 2)):
        for text in "xyz":
            one = message(text)
            key = KEY._replace(name=text)
            assert await histories.of(key, one.tip, Reading([one])) == [one]
        assert len(histories._held) == number


async def test_what_is_given_out_can_be_changed_without_harm() -> None:
    histories = Histories(CACHE_BYTES)
    (await histories.of(KEY, TRUNK[3].tip, Reading(TRUNK[:4]))).clear()
    assert await histories.of(KEY, TRUNK[3].tip, Reading(TRUNK[:4])) == TRUNK[:4]
