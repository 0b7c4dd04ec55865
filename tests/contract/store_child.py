"""A process of its own that writes to a store, for what only another process can show: being killed, and a disk that is full.

`python -m tests.contract.store_child turns PATH`: apply one turn after the other, and print how many are durable.
`python -m tests.contract.store_child full PATH`: write, have no file grow, write again, and let files grow again; print each outcome.
`python -m tests.contract.store_child leave PATH`: end with status 7 while the store is open.
"""

from __future__ import annotations

import asyncio
import itertools
import resource
import sys
from pathlib import Path

from ctxproxy.core.effects import AppendMessages, MoveTip, OpenSession
from ctxproxy.errors import StoreUnavailable
from ctxproxy.store import SqliteStore
from tests.contract.conftest import no_damage
from tests.contract.samples import KEY, begun, chain, message


async def turns(store: SqliteStore) -> None:
    await store.apply([OpenSession(KEY, 1.0)])
    parent = ""
    for number in itertools.count():
        one = message(str(number), parent)
        await store.apply([AppendMessages(KEY, (one,)), MoveTip(KEY, parent, one.tip)])
        parent = one.tip
        print(number, flush=True)


async def full(store: SqliteStore) -> None:
    trunk = chain("a", "b" * 100_000, "c")
    await store.apply(begun(KEY, trunk[:1]))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    for _ in range(3):
        try:
            await store.apply([AppendMessages(KEY, tuple(trunk[1:]))])
            print("written", flush=True)
        except StoreUnavailable:
            print("unavailable, history", len(await store.history(KEY, trunk[0].tip)), flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await store.apply([AppendMessages(KEY, tuple(trunk[1:]))])
    print("history", len(await store.history(KEY, trunk[-1].tip)), flush=True)
    await store.close()


async def leave(store: SqliteStore) -> None:
    await store.session(KEY)
    sys.exit(7)


async def main(what: str, path: str) -> None:
    store = await SqliteStore.open(Path(path), no_damage)
    await {"turns": turns, "full": full, "leave": leave}[what](store)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
