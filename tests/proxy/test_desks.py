"""The desks behind the answers on their own: what they hold in memory, and what is let go of while they are at it."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from ctxproxy.core.chunks import Chunk, Indexed
from ctxproxy.core.effects import AppendMessages, Forget, OpenSession, PutSummary
from ctxproxy.core.messages import ROOT
from ctxproxy.core.records import SessionKey, Span, StoredMessage
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.sessions import Joined, Reconciled
from ctxproxy.core.text_index import Place, Postings
from ctxproxy.ports.embedding import Access, VectorTable
from ctxproxy.proxy import cut_pieces
from ctxproxy.proxy import index_desk as index_desk_module
from ctxproxy.proxy.index_desk import IndexDesk
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.proxy.vector_desk import VectorDesk
from ctxproxy.store.memory import MemoryStore
from tests.contract.samples import KEY, chain, message, summary
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


async def test_work_that_is_given_up_before_it_has_begun_is_begun_again(store: MemoryStore) -> None:
    tasks = Tasks()
    desk = vector_desk(store, tasks, Hooked())
    desk.begin(KEY)
    await desk.forget(KEY, [])
    desk.begin(KEY)
    await tasks.close(10.0)
    assert await store.chunks.without_vector(KEY, "topics", 9) == []


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


def asking(rows: Sequence[StoredMessage], fresh_from: int) -> Reconciled:
    """A request with these messages, the first of which are stored."""
    return Reconciled(Joined.EXTENDS, tuple(row.message for row in rows), tuple(row.tip for row in rows), fresh_from)


def index_desk(store: MemoryStore, tasks: Tasks, lull: Lull) -> IndexDesk:
    return IndexDesk(store, Metrics(), tasks, lull, lambda: True, lambda _: None)


async def test_messages_wait_by_name_only_and_are_found_in_the_request_that_asks(store: MemoryStore) -> None:
    tasks, lull, rows = Tasks(), Lull(), chain("hello", "a zebra", "which zebra")
    await store.apply([AppendMessages(KEY, tuple(rows[:2]))])
    desk = index_desk(store, tasks, lull)
    asked = asking(rows, 2)
    with lull.request():
        desk.note(KEY, Span(ROOT, rows[0].tip), 0)
        desk.note(KEY, Span(rows[0].tip, rows[1].tip), 1)
        assert [(one.after, one.tip) for one in desk._waiting[KEY].stretches] == [(ROOT, rows[1].tip)]
        for fresh_from in (2, 0, 1):  # what waits, what is not stored yet, both
            found = await desk.postings(KEY, ["zebra"], replace(asked, fresh_from=fresh_from))
            assert [posting.place for posting in found.by_term["zebra"]] == [(rows[1].tip, 0)]
    await tasks.close(10.0)
    assert {rows[0].tip, rows[1].tip} <= await store.chunks.indexed(KEY)
    assert (await desk.postings(KEY, ["zebra"], asked)).by_term["zebra"][0].place == (rows[1].tip, 0)
    assert desk._waiting == {}
    assert not await store.chunks.indexed(KEY) & {rows[2].tip}


async def test_what_the_index_lacks_of_a_history_is_noted_when_it_is_searched(store: MemoryStore) -> None:
    tasks, rows = Tasks(), chain("a zebra", "hello", "a zebu", "and?")
    await store.apply([AppendMessages(KEY, tuple(rows[:3]))])
    await store.chunks.add(KEY, [Indexed(Chunk(rows[1].tip, 0, "hello", "user"), terms_of("hello"), 2, 1.0)])
    desk = index_desk(store, tasks, Lull())
    asked = asking(rows, 3)
    found = await desk.postings(KEY, ["zebra", "zebu"], asked)
    assert {term: postings[0].place[0] for term, postings in found.by_term.items()} == {"zebra": rows[0].tip, "zebu": rows[2].tip}
    await tasks.close(10.0)
    assert {row.tip for row in rows[:3]} <= await store.chunks.indexed(KEY)


async def test_what_is_forgotten_while_it_waits_or_is_written_is_not_in_the_index(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, lull, rows = Tasks(), Lull(), chain("one", "two", "three")
    await store.apply([AppendMessages(KEY, tuple(rows))])
    desk, add = index_desk(store, tasks, lull), store.chunks.add

    async def forgotten_first(key: SessionKey, chunks: Sequence[Indexed]) -> None:
        await store.apply([Forget(KEY, rows[1].tip)])
        await add(key, chunks)

    with lull.request():
        desk.note(KEY, Span(ROOT, rows[2].tip), 0)
        await store.apply([Forget(KEY, rows[0].tip)])
    monkeypatch.setattr(store.chunks, "add", forgotten_first)
    await tasks.close(10.0)
    assert await store.chunks.indexed(KEY) & {row.tip for row in rows} == {rows[2].tip}


async def test_a_summary_that_is_noted_again_before_it_is_written_is_written_once(store: MemoryStore) -> None:
    tasks, lull, tip = Tasks(), Lull(), PLACES[0][0]
    desk = index_desk(store, tasks, lull)
    with lull.request():
        for text in ("a zebra", "a zebu"):
            await store.apply([PutSummary(KEY, summary(tip, text))])
            desk.note_summary(KEY, summary(tip, text))
    await tasks.close(10.0)
    found = await store.chunks.postings(KEY, ["zebra", "zebu"])
    assert {term: len(postings) for term, postings in found.by_term.items()} == {"zebu": 1}


async def test_what_waits_is_cut_once_however_often_it_is_searched(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, lull, rows, cut = Tasks(), Lull(), chain("a zebra", "hello", "and?"), list[str]()
    await store.apply([AppendMessages(KEY, tuple(rows[:2]))])
    desk, terms = index_desk(store, tasks, lull), cut_pieces.terms_of

    def counted(text: str) -> Counter[str]:
        cut.append(text)
        return terms(text)

    monkeypatch.setattr(cut_pieces, "terms_of", counted)
    asked = asking(rows, 2)
    with lull.request():
        for _ in range(2):
            assert (await desk.postings(KEY, ["zebra"], asked)).by_term["zebra"][0].place == (rows[0].tip, 0)
    await tasks.close(10.0)
    assert sorted(cut) == ["a zebra", "hello"]
    assert {rows[0].tip, rows[1].tip} <= await store.chunks.indexed(KEY)
    assert (desk._cut, desk._cut_bytes) == ({}, 0)


async def test_what_two_requests_cut_at_the_same_time_is_held_once(store: MemoryStore) -> None:
    tasks, lull, rows = Tasks(), Lull(), chain("a zebra", "hello", "and?")
    await store.apply([AppendMessages(KEY, tuple(rows[:2]))])
    desk = index_desk(store, tasks, lull)
    asked = asking(rows, 2)
    with lull.request():
        both = await asyncio.gather(*(desk.postings(KEY, ["zebra"], asked) for _ in range(2)))
        assert [found.by_term["zebra"][0].place for found in both] == [(rows[0].tip, 0)] * 2
        assert desk._cut_bytes == sum(len(row.raw) for row in rows[:2])
    await tasks.close(10.0)
    assert (desk._cut, desk._cut_bytes) == ({}, 0)


async def test_what_is_written_while_it_is_searched_is_found_once(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, lull, rows, postings = Tasks(), Lull(), chain("a zebra", "hello", "and?"), store.chunks.postings
    await store.apply([AppendMessages(KEY, tuple(rows[:2]))])
    desk = index_desk(store, tasks, lull)

    async def written_first(key: SessionKey, terms: Sequence[str]) -> Postings:
        lull.open()
        await tasks.close(10.0)
        return await postings(key, terms)

    monkeypatch.setattr(store.chunks, "postings", written_first)
    asked = asking(rows, 2)
    assert [one.place for one in (await desk.postings(KEY, ["zebra"], asked)).by_term["zebra"]] == [(rows[0].tip, 0)]
    assert desk._waiting == {}


async def test_what_was_cut_takes_only_so_much_and_goes_with_its_session(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, lull, rows = Tasks(), Lull(), chain("a zebra", "hello", "and?")
    await store.apply([AppendMessages(KEY, tuple(rows[:2]))])
    desk = index_desk(store, tasks, lull)
    asked = asking(rows, 2)
    monkeypatch.setattr(index_desk_module, "CUT_BYTES", len(rows[0].raw))
    with lull.request():
        assert (await desk.postings(KEY, ["hello", "zebra"], asked)).by_term.keys() == {"hello", "zebra"}
        assert [tip for _, tip in desk._cut] == [rows[0].tip]
        await desk.forget(KEY, [rows[0].tip])
        assert desk._cut_bytes == 0
        await desk.postings(KEY, ["zebra"], asked)
        await desk.erase([KEY])
        assert (desk._cut, desk._cut_bytes) == ({}, 0)
        monkeypatch.setattr(cut_pieces, "SEARCHED_BYTES", len(rows[1].raw))
        assert (await desk.postings(KEY, ["hello", "zebra"], asked)).by_term.keys() == {"hello"}
    await tasks.close(10.0)
