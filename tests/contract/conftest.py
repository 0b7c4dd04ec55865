"""The stores that the contract is run over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ctxproxy.ports import Store
from ctxproxy.store import MemoryStore, SetAside, open_store


def no_damage(found: SetAside) -> None:
    raise AssertionError(f"a sound file was set aside: {found}")


@dataclass(frozen=True, slots=True)
class Handles:
    """Where a test writes and where it reads: one store, or two handles on the same one."""

    write: Store
    read: Store


CACHE_BYTES = 1_000_000


@pytest.fixture(params=["memory", "sqlite", "sqlite by two handles", "sqlite by two handles that remember"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Handles]:
    if request.param == "memory":
        write = read = MemoryStore()
    else:
        url = f"sqlite:///{tmp_path}/talks.db"
        cache_bytes = CACHE_BYTES if "remember" in request.param else 0
        write = read = await open_store(url, on_damage=no_damage, cache_bytes=cache_bytes)
        if "two handles" in request.param:
            read = await open_store(url, on_damage=no_damage, cache_bytes=cache_bytes)
    yield Handles(write, read)
    await write.close()
    await read.close()
