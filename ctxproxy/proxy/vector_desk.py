"""What pieces mean is worked out behind the answers, in small batches; a request waits for one vector only, its own, and not for long."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ctxproxy.core.chunks import Chunk, StoredVector
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import SessionKey
from ctxproxy.core.text_index import Place
from ctxproxy.errors import EmbedderUnavailable, StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.ports.embedding import Access, Embedder, VectorTable
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
READ_PIECES = 256
AT_ONCE_PIECES = 64
"""Given to the embedder in one go: 30 milliseconds of a thread, or one call of an upstream."""
BATCH_WITHIN_S = 30.0
QUERY_WITHIN_S = 0.5
"""What an upstream may take for the vector of a request, which waits for it."""
REST_S = 60.0
"""After a failure nothing is asked for so long."""
NEAREST = 300
"""More than fit into a prompt."""
MOST_VECTORS = 20_000
"""Of one session, the newest: 1.8 million tokens of text."""
GROWN_VECTORS = 25_000
KNOWN_ACCESSES = 1000
MOST_RESTING = 1000
"""Tenants."""


@dataclass(slots=True)
class _Kept:
    """A session's table, and the number up to which its vectors were read."""

    table: VectorTable
    after: int = 0


class VectorDesk:
    """Keeps up with the search index, and compares; an `erasing.Part`. Without an embedder it does nothing."""

    def __init__(
        self, store: Store, metrics: Metrics, tasks: Tasks, lull: Lull, embedder: Embedder | None, cache_bytes: int, is_wanted: Callable[[], bool]
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._tasks = tasks
        self._lull = lull
        self._embedder = embedder
        self._cache_bytes = cache_bytes
        self._is_wanted = is_wanted
        self._tables: OrderedDict[SessionKey, _Kept] = OrderedDict()
        self._accesses: OrderedDict[SessionKey, Access] = OrderedDict()
        self._due: set[SessionKey] = set()
        self._work: dict[SessionKey, asyncio.Task[None]] = {}
        self._one = asyncio.Semaphore(1)
        self._looking = asyncio.Semaphore(1)
        self._rests_until_s: dict[str, float] = {}

    def means(self, kind: str) -> str:
        """What is compared where retrieval is of this kind, in words for the log."""
        if self._embedder is None or kind not in ("dense", "hybrid"):
            return "words alone" if kind != "off" else "nothing"
        return self._embedder.name if kind == "dense" else f"words and {self._embedder.name}"

    def begin(self, key: SessionKey) -> None:
        """Have vectors made for the pieces of a session that have none; returns at once."""
        embedder = self._embedder
        if embedder is None or not self._is_wanted() or self._rests(key) or (embedder.needs_access and key not in self._accesses):
            return
        self._due.add(key)
        if key not in self._work or self._work[key].done():  # one that is given up before it has begun runs no `finally`
            self._work[key] = self._tasks.start(self._keep_up(key, embedder), "vectors")

    async def nearest(self, key: SessionKey, text: str, access: Access) -> Mapping[Place, float]:
        """The pieces of a session that are nearest in meaning to a text, with their cosines; none where that cannot be said now.

        Raises StoreUnavailable.
        """
        embedder = self._embedder
        if embedder is None or not self._is_wanted() or self._rests(key):
            return {}
        self._remember(key, access)
        if key not in self._tables and not await self._store.chunks.vectors(key, embedder.name, 0, 1):
            return {}
        try:
            (vector,) = await embedder.embed([text], access, QUERY_WITHIN_S)
        except EmbedderUnavailable as error:
            self._rest(key, error)
            return {}
        if not vector:
            return {}
        return await asyncio.shield(self._tasks.start(self._compared(key, embedder, vector), "nearest"))  # a thread is not cancelled

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Let go of these sessions; what is just being made of them is given up."""
        for key in keys:
            self._accesses.pop(key, None)
        await self._let_go(keys)

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        """Let go of what is kept in memory of the session: it is read again."""
        await self._let_go([key])

    async def _let_go(self, keys: Collection[SessionKey]) -> None:
        self._due.difference_update(keys)
        work = [self._work[key] for key in keys if key in self._work]
        for one in work:
            one.cancel()
        if work:
            await asyncio.wait(work)
        async with self._looking:
            for key in keys:
                self._tables.pop(key, None)

    def _remember(self, key: SessionKey, access: Access) -> None:
        """Where to ask for the session's vectors; pieces of before a restart, or without vectors for another reason, get theirs now."""
        is_new = key not in self._accesses
        self._accesses[key] = access
        self._accesses.move_to_end(key)
        if len(self._accesses) > KNOWN_ACCESSES:
            self._accesses.popitem(last=False)
        if is_new:
            self.begin(key)

    async def _compared(self, key: SessionKey, embedder: Embedder, vector: bytes) -> Mapping[Place, float]:
        """What is nearest in the session's table, brought up to date: what was let go of until now is read again, or is gone."""
        async with self._looking:
            kept = self._tables.get(key) or _Kept(embedder.table())
            fresh = await self._store.chunks.vectors(key, embedder.name, kept.after, MOST_VECTORS)
            if not fresh and key not in self._tables:
                return {}
            found, self._tables[key] = await asyncio.to_thread(_looked_up, kept, fresh, vector)
            self._bound(key)
            return found

    def _bound(self, key: SessionKey) -> None:
        self._tables.move_to_end(key)
        if len(self._tables[key].table) > GROWN_VECTORS:
            del self._tables[key]  # the newest are read again
        while len(self._tables) > 1 and sum(kept.table.size_bytes for kept in self._tables.values()) > self._cache_bytes:
            self._tables.popitem(last=False)

    async def _keep_up(self, key: SessionKey, embedder: Embedder) -> None:
        try:
            while key in self._due:
                self._due.discard(key)
                while chunks := await self._store.chunks.without_vector(key, embedder.name, READ_PIECES):
                    async with self._lull.piece():
                        pass  # begun in a lull, but in nobody's way: the embedder may be far
                    for batch in _batches(chunks):
                        await self._make(key, embedder, batch)
        except EmbedderUnavailable as error:
            self._rest(key, error)
        except StoreUnavailable as error:
            self._metrics.store_errors.inc()
            log.warning("session %s got no vectors: %s", key.id, error.message)
        finally:
            self._due.discard(key)
            del self._work[key]

    async def _make(self, key: SessionKey, embedder: Embedder, chunks: Sequence[Chunk]) -> None:
        async with self._one:
            vectors = await embedder.embed([chunk.text for chunk in chunks], self._accesses.get(key), BATCH_WITHIN_S)
        places = [(chunk.tip, chunk.part) for chunk in chunks]
        await self._store.chunks.put_vectors(key, embedder.name, dict(zip(places, vectors, strict=True)))

    def _rests(self, key: SessionKey) -> bool:
        return time.monotonic() < self._rests_until_s.get(key.tenant, 0.0)

    def _rest(self, key: SessionKey, error: EmbedderUnavailable) -> None:
        """Ask nothing more for a while, for this tenant: another one has another credential, or another upstream."""
        if len(self._rests_until_s) >= MOST_RESTING:
            self._rests_until_s.clear()
        self._rests_until_s[key.tenant] = time.monotonic() + REST_S
        self._metrics.embedding_failures.inc()
        log.warning("session %s is searched by words alone for %.0f s, as are its tenant's others: %s", key.id, REST_S, error.message)


def _batches(chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
    return (chunks[at : at + AT_ONCE_PIECES] for at in range(0, len(chunks), AT_ONCE_PIECES))


def _looked_up(kept: _Kept, fresh: Sequence[StoredVector], vector: bytes) -> tuple[Mapping[Place, float], _Kept]:
    kept.table.add({one.place: one.vector for one in fresh})
    return kept.table.nearest(vector, NEAREST), _Kept(kept.table, max([kept.after, *(one.number for one in fresh)]))
