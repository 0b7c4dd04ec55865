"""The desks behind the answers on their own: what they hold in memory, and what is let go of while they are at it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from ctxproxy.core.chunks import Chunk, Indexed
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.text_index import Place
from ctxproxy.ports.embedding import Access, VectorTable
from ctxproxy.proxy.index_desk import IndexDesk
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.proxy.vector_desk import VectorDesk
from ctxproxy.store.memory import MemoryStore
from tests.contract.samples import KEY, message, summary
from tests.embedding import PlainTable, TopicEmbedder

NOWHERE = Access("http://127.0.0.1:9/v1")
PLACES = [(message(text).tip, 0) for text in ("a", "b")]
PAINTS = bytes((1, 0, 0))


@dataclass
class Hooked(TopicEmbedder):
    """An embedder in whose work something happens."""

    meanwhile: Callable[[], object] = lambda: None
    made: Callable[[], VectorTable] = PlainTable
    name: str = "topics"
    needs_access: bool = False
    asked: list[list[str]] = field(default_factory=list)

    async def embed(self, texts: Sequence[str], access: Access | None, within_s: float) -> list[bytes]:
        if asyncio.iscoroutine(work := self.meanwhile()):
            await work
        return [PAINTS for _ in texts]

    def table(self) -> VectorTable:
        return self.made()


class Gate(PlainTable):
    """A table that counts the threads in it, and holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.within = self.most = 0
        self.entered, self.open = threading.Event(), threading.Event()

    def add(self, vectors: Mapping[Place, bytes]) -> None:
        self.within += 1
        self.most = max(self.most, self.within)
        self.entered.set()
        self.open.wait(60)
        super().add(vectors)
        self.within -= 1


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    """A session with two pieces, the first of which has a vector."""
    made = MemoryStore()
    await made.apply([OpenSession(KEY, 1.0)])
    await made.chunks.add(KEY, [Indexed(Chunk(tip, part, "paint", "user"), terms_of("paint"), 1, 1.0) for tip, part in PLACES])
    await made.chunks.put_vectors(KEY, "topics", {PLACES[0]: PAINTS})
    yield made
    await made.close()


def vector_desk(store: MemoryStore, tasks: Tasks, embedder: Hooked) -> VectorDesk:
    return VectorDesk(store, Metrics(), tasks, Lull(), embedder, 1_000_000, lambda: True)


async def test_a_table_that_is_let_go_of_while_the_question_is_embedded_is_read_again_whole(store: MemoryStore) -> None:
    tasks, embedder = Tasks(), Hooked()
    desk = vector_desk(store, tasks, embedder)
    assert (await desk.nearest(KEY, "paint", NOWHERE)).keys() == {PLACES[0]}
    await store.chunks.put_vectors(KEY, "topics", {PLACES[1]: PAINTS})
    embedder.meanwhile = lambda: desk.forget(KEY, [])
    assert (await desk.nearest(KEY, "paint", NOWHERE)).keys() == set(PLACES)
    await tasks.close(10.0)


async def test_of_a_session_that_is_erased_while_the_question_is_embedded_nothing_is_kept(store: MemoryStore) -> None:
    tasks, embedder = Tasks(), Hooked()
    desk = vector_desk(store, tasks, embedder)

    async def erased() -> None:
        await store.erase(KEY)
        await desk.erase([KEY])

    embedder.meanwhile = erased
    assert await desk.nearest(KEY, "paint", NOWHERE) == {}
    await tasks.close(10.0)


async def test_a_table_that_a_thread_is_at_is_nobody_elses_though_the_request_has_gone(store: MemoryStore) -> None:
    tasks, gate = Tasks(), Gate()
    desk = vector_desk(store, tasks, Hooked(made=lambda: gate))
    first = asyncio.create_task(desk.nearest(KEY, "paint", NOWHERE))
    await asyncio.to_thread(gate.entered.wait, 60)
    first.cancel()
    await asyncio.wait([first])
    gate.entered.clear()
    second = asyncio.create_task(desk.nearest(KEY, "paint", NOWHERE))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not second.done()
    gate.open.set()
    assert (await second).keys() == {PLACES[0]}
    assert (first.cancelled(), gate.most) == (True, 1)
    await tasks.close(10.0)


async def test_a_summary_that_is_noted_again_before_it_is_written_is_held_once(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    lull, tasks, held = Lull(), Tasks(), list[int]()
    monkeypatch.setattr(lull, "hold", held.append)
    desk = IndexDesk(store, Metrics(), tasks, lull, lambda: True, lambda _: None)
    for text in ("short", "somewhat longer"):
        desk.note_summary(KEY, summary(PLACES[0][0], text))
    assert sum(held) == len("somewhat longer")
    await tasks.close(10.0)
    assert sum(held) == 0
