"""Erasing what was not used for long, in every store."""

from __future__ import annotations

from pathlib import Path

from ctxproxy.core.effects import Choose, OpenSession, PutPin
from ctxproxy.core.records import Owned, Pin, SessionKey
from ctxproxy.store import open_store
from tests.contract.conftest import Handles, no_damage
from tests.contract.samples import KEY, begun, chain

TENANT = KEY.tenant


def named(name: str) -> SessionKey:
    return SessionKey(TENANT, name)


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()]


async def filled(stores: Handles) -> None:
    for at, name in enumerate(("oldest", "kept", "pinned", "older", "new")):
        await stores.write.apply([OpenSession(named(name), float(at), user="ann\ud83c" if at % 2 == 0 else "")])
    await stores.write.apply([Choose(named("kept"), kept=True), PutPin(named("pinned"), Pin(1, "text", 1.0))])


async def test_what_was_not_used_for_long_is_found_the_oldest_first_but_not_what_is_kept_or_has_a_pin(stores: Handles) -> None:
    await filled(stores)
    assert await stores.read.retention.unused(4.0, 10) == [Owned(named("oldest"), "ann\ud83c"), Owned(named("older"), "")]
    assert await stores.read.retention.unused(4.0, 1) == [Owned(named("oldest"), "ann\ud83c")]
    assert await stores.read.retention.unused(0.0, 10) == []


async def test_what_was_used_kept_or_pinned_meanwhile_is_not_erased(stores: Handles) -> None:
    await filled(stores)
    assert not await stores.write.retention.erase(named("new"), 4.0)
    assert not await stores.write.retention.erase(named("kept"), 4.0)
    assert not await stores.write.retention.erase(named("pinned"), 4.0)
    assert not await stores.write.retention.erase(named("none"), 4.0)
    assert await stores.write.retention.erase(named("oldest"), 4.0)
    assert not await stores.write.retention.erase(named("oldest"), 4.0)
    assert await stores.read.session(named("oldest")) is None
    assert await stores.read.session(named("older")) is not None


async def test_after_compacting_nothing_of_it_is_left_in_the_file_and_the_file_is_smaller(tmp_path: Path) -> None:
    file = tmp_path / "talks.db"
    store = await open_store(f"sqlite:///{file}", on_damage=no_damage)
    for n in range(20):
        await store.apply(begun(named(f"zebra {n}"), chain(*(f"zebra {n} {part} " + "striped " * 500 for part in range(10)))))
    before = sum(map(len, contents(tmp_path)))
    for n in range(20):
        assert await store.retention.erase(named(f"zebra {n}"), 9.0)
    await store.retention.compact()
    left = contents(tmp_path)
    await store.close()
    assert not any(b"zebra" in raw or b"striped" in raw for raw in left)
    assert sum(map(len, left)) < before / 4


async def test_the_sessions_of_a_user_come_last_used_first_and_only_those_of_the_tenant(stores: Handles) -> None:
    await filled(stores)
    await stores.write.apply([OpenSession(SessionKey("1f" * 16, "elsewhere"), 9.0, user="ann\ud83c")])
    assert [session.key.name for session in await stores.read.of_user(TENANT, "ann\ud83c", 10)] == ["new", "pinned", "oldest"]
    assert [session.key.name for session in await stores.read.of_user(TENANT, "ann\ud83c", 2)] == ["new", "pinned"]
    assert await stores.read.of_user(TENANT, "bob", 10) == []
