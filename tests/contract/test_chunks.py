"""The search index, in every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxproxy.core.chunks import Chunk, Indexed, Piece
from ctxproxy.core.effects import AppendMessages, Forget, OpenSession, PutSummary
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import SessionKey
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.text_index import NO_POSTINGS, Posting
from ctxproxy.store import open_store, sqlite_chunks
from tests.contract.conftest import Handles, no_damage
from tests.contract.samples import KEY, OTHER, begun, chain, message, summary

A, B = message("a").tip, message("b").tip


def indexed(text: str, tip: Tip = A, part: int = 0, created: float = 1.0, role: str = "user") -> Indexed:
    return Indexed(Chunk(tip, part, text, role), terms_of(text), 1, created)


async def test_an_index_of_a_session_that_is_not_there_is_empty_and_stays_so(stores: Handles) -> None:
    await stores.write.chunks.add(KEY, [indexed("hello world")])
    assert await stores.read.chunks.postings(KEY, ["hello"]) == NO_POSTINGS
    assert await stores.read.chunks.indexed(KEY) == frozenset()
    assert await stores.read.chunks.texts(KEY, [(A, 0)]) == []


async def test_terms_are_found_with_how_often_they_stand_where(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0), OpenSession(OTHER, 1.0)])
    await stores.write.chunks.add(KEY, [indexed("green tea, black tea"), indexed("tea time", part=1), indexed("杭州的天气", B)])
    await stores.write.chunks.add(OTHER, [indexed("tea elsewhere")])
    found = await stores.read.chunks.postings(KEY, ["tea", "杭州", "coffee"])
    assert {term: sorted(held) for term, held in found.by_term.items()} == {
        "tea": sorted([Posting((A, 0), 4, 2), Posting((A, 1), 2, 1)]),
        "杭州": [Posting((B, 0), 4, 1)],
    }
    assert (found.pieces, found.average_length) == (3, pytest.approx(10 / 3))
    assert await stores.read.chunks.indexed(KEY) == {A, B}


async def test_many_places_are_told_as_few_are(stores: Handles, monkeypatch: pytest.MonkeyPatch) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0)])
    await stores.write.chunks.add(KEY, [indexed(f"tea {n}", part=n) for n in range(20)])
    few = await stores.read.chunks.postings(KEY, ["tea", "7"])
    monkeypatch.setattr(sqlite_chunks, "MANY", 1)
    assert await stores.read.chunks.postings(KEY, ["tea", "7"]) == few
    assert {term: len(held) for term, held in few.by_term.items()} == {"tea": 20, "7": 1}


@pytest.mark.parametrize(
    "text",
    ["see src/app.py:12 and https://example.test/a?b=c", "AC/DC \ud83c odd", "ключ №7 naïve café", "x'; DROP TABLE t; --", 'a "quoted" NEAR b*'],
)
async def test_every_term_of_a_text_finds_it_whatever_signs_are_in_it(stores: Handles, text: str) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0)])
    await stores.write.chunks.add(KEY, [indexed(text)])
    found = await stores.read.chunks.postings(KEY, list(terms_of(text)))
    assert found.by_term.keys() == terms_of(text).keys()
    assert await stores.read.chunks.texts(KEY, [(A, 0), (B, 0)]) == [Piece(KEY, Chunk(A, 0, text, "user"), 1.0)]


async def test_a_piece_that_is_there_stays_as_it_is(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0)])
    await stores.write.chunks.add(KEY, [indexed("first words")])
    await stores.write.chunks.add(KEY, [indexed("other words"), indexed("new words", B)])
    assert [piece.chunk.text for piece in await stores.read.chunks.texts(KEY, [(A, 0), (B, 0)])] == ["first words", "new words"]
    assert (await stores.read.chunks.postings(KEY, ["first", "other"])).by_term.keys() == {"first"}


async def test_a_session_is_behind_while_the_newest_message_of_a_branch_or_a_summary_is_not_in_the_index(stores: Handles) -> None:
    one, two, three = chain("a", "b", "c")
    fork = chain("d", parent=one.tip)
    await stores.write.apply([*begun(KEY, [one, two, three], 2.0), *begun(OTHER, [one, two, three])])
    assert await stores.read.chunks.behind(9) == [KEY, OTHER]
    assert await stores.read.chunks.behind(1) == [KEY]
    await stores.write.chunks.add(OTHER, [indexed("said", three.tip)])
    await stores.write.chunks.add(KEY, [indexed("said", two.tip), indexed("summed up", three.tip, -1)])
    assert await stores.read.chunks.behind(9) == [KEY]
    await stores.write.chunks.add(KEY, [indexed("said", three.tip)])
    assert await stores.read.chunks.behind(9) == []
    await stores.write.apply([AppendMessages(KEY, tuple(fork)), PutSummary(OTHER, summary(three.tip))])
    assert await stores.read.chunks.behind(9) == [KEY, OTHER]
    await stores.write.chunks.add(KEY, [indexed("said", fork[0].tip)])
    await stores.write.chunks.add(OTHER, [indexed("summed up", three.tip, -1)])
    assert await stores.read.chunks.behind(9) == []


@pytest.mark.parametrize("erase", [False, True])
async def test_what_was_forgotten_leaves_no_session_behind(stores: Handles, *, erase: bool) -> None:
    rows = chain("a", "b")
    await stores.write.apply([*begun(KEY, rows), Forget(KEY, rows[1].tip, erase=erase)])
    assert await stores.read.chunks.behind(9) == []


async def test_a_message_up_to_which_a_summary_tells_is_not_in_the_index_for_that(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0)])
    await stores.write.chunks.add(KEY, [indexed("said"), indexed("told in short", B, -1)])
    assert await stores.read.chunks.indexed(KEY) == {A}


async def test_what_is_dropped_forgotten_or_erased_is_found_no_more_and_does_not_come_back(stores: Handles) -> None:
    await stores.write.apply([*begun(KEY, [message("a")]), OpenSession(OTHER, 1.0)])
    pieces = [indexed("secret plan"), indexed("open plan", B)]
    await stores.write.chunks.add(KEY, pieces)
    await stores.write.chunks.drop(KEY, B)
    assert await stores.read.chunks.indexed(KEY) == {A}
    await stores.write.apply([Forget(KEY, A)])
    await stores.write.chunks.add(KEY, pieces)
    assert await stores.read.chunks.indexed(KEY) == {B}
    assert (await stores.read.chunks.postings(KEY, ["secret", "plan"])).pieces == 1
    await stores.write.erase(KEY)
    await stores.write.apply([OpenSession(KEY, 2.0)])
    assert await stores.read.chunks.postings(KEY, ["plan"]) == NO_POSTINGS


async def test_what_a_user_had_recalled_most_often_is_the_hottest(stores: Handles) -> None:
    stranger = SessionKey("1f" * 16, "talk")
    await stores.write.apply([OpenSession(KEY, 1.0, user="ann"), OpenSession(OTHER, 1.0, user="ann"), OpenSession(stranger, 1.0, user="ann")])
    await stores.write.chunks.add(KEY, [indexed("warm"), indexed("cold", part=1)])
    await stores.write.chunks.add(OTHER, [indexed("hot", B), indexed("warm too, and newer", B, 1, created=2.0)])
    await stores.write.chunks.add(stranger, [indexed("not hers")])
    for key, places in ((KEY, [(A, 0)]), (OTHER, [(B, 0), (B, 1)]), (OTHER, [(B, 0)]), (stranger, [(A, 0)]), (KEY, [("?", 3)])):
        await stores.write.chunks.touch(key, places)
    assert [piece.chunk.text for piece in await stores.read.chunks.hottest(KEY.tenant, "ann", 5)] == ["hot", "warm too, and newer", "warm"]
    assert [piece.chunk.text for piece in await stores.read.chunks.hottest(KEY.tenant, "ann", 1)] == ["hot"]
    assert await stores.read.chunks.hottest(KEY.tenant, "bob", 5) == []


async def test_003_50_what_answers_have_quoted_is_told_with_what_is_found_until_it_is_gone(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0), OpenSession(OTHER, 1.0)])
    await stores.write.chunks.add(KEY, [indexed("green tea"), indexed("tea time", part=1), indexed("more tea", B)])
    for places in ([(A, 0), (B, 0), (A, 9)], [(A, 0)]):
        await stores.write.chunks.note_quoted(KEY, places)
    await stores.write.chunks.note_quoted(OTHER, [(A, 1)])
    assert dict((await stores.read.chunks.postings(KEY, ["tea"])).quoted) == {(A, 0): 2, (B, 0): 1}
    await stores.write.chunks.drop(KEY, A)
    await stores.write.chunks.add(KEY, [indexed("green tea")])
    assert dict((await stores.read.chunks.postings(KEY, ["tea"])).quoted) == {(B, 0): 1}


async def test_nothing_of_an_erased_session_is_left_in_the_index_files(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/talks.db", on_damage=no_damage)
    await store.apply([OpenSession(KEY, 1.0), OpenSession(OTHER, 1.0)])
    await store.chunks.add(KEY, [indexed(f"zanzibar{n} marzipan", part=n) for n in range(300)])
    await store.chunks.add(OTHER, [indexed("kept")])
    await store.erase(KEY)
    await store.close()
    left = everything_in(tmp_path)
    assert b"marzipan" not in left
    assert b"zanzibar7" not in left


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


# ---------------------------------------------------------------- what pieces mean
async def test_vectors_stand_beside_the_pieces_and_are_read_on_from_a_number(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0), OpenSession(OTHER, 1.0)])
    await stores.write.chunks.add(KEY, [indexed("one"), indexed("two", part=1), indexed("三", B), indexed("a summary", B, -1, role="summary")])
    await stores.write.chunks.add(OTHER, [indexed("one elsewhere")])
    assert await stores.read.chunks.without_vector(KEY, "e", 9) == [Chunk(A, 0, "one", ""), Chunk(A, 1, "two", ""), Chunk(B, 0, "三", "")]
    assert await stores.read.chunks.without_vector(KEY, "e", 2) == [Chunk(A, 0, "one", ""), Chunk(A, 1, "two", "")]
    await stores.write.chunks.put_vectors(KEY, "e", {(A, 0): b"\x01\x00", (B, 0): b"", ("?", 0): b"\x05"})
    assert await stores.read.chunks.without_vector(KEY, "e", 9) == [Chunk(A, 1, "two", "")]
    (first,) = await stores.read.chunks.vectors(KEY, "e", 0, 9)
    assert (first.place, first.vector) == ((A, 0), b"\x01\x00")
    await stores.write.chunks.put_vectors(KEY, "e", {(A, 1): b"\xff\x02"})
    (second,) = await stores.read.chunks.vectors(KEY, "e", first.number, 9)
    assert (second.place, second.vector) == ((A, 1), b"\xff\x02")
    assert await stores.read.chunks.vectors(KEY, "e", 0, 9) == [first, second]
    assert await stores.read.chunks.vectors(KEY, "e", 0, 1) == [second]
    assert await stores.read.chunks.vectors(OTHER, "e", 0, 9) == []


async def test_another_embedder_begins_anew(stores: Handles) -> None:
    await stores.write.apply([OpenSession(KEY, 1.0)])
    await stores.write.chunks.add(KEY, [indexed("one")])
    await stores.write.chunks.put_vectors(KEY, "old", {(A, 0): b"\x01"})
    assert await stores.read.chunks.vectors(KEY, "new", 0, 9) == []
    assert await stores.read.chunks.without_vector(KEY, "new", 9) == [Chunk(A, 0, "one", "")]
    await stores.write.chunks.put_vectors(KEY, "new", {(A, 0): b"\x02"})
    assert [one.vector for one in await stores.read.chunks.vectors(KEY, "new", 0, 9)] == [b"\x02"]
    assert await stores.read.chunks.vectors(KEY, "old", 0, 9) == []


async def test_a_vector_goes_with_its_piece_and_none_comes_without_one(stores: Handles) -> None:
    await stores.write.apply([*begun(KEY, [message("a")])])
    await stores.write.chunks.add(KEY, [indexed("secret"), indexed("open", B)])
    await stores.write.chunks.put_vectors(KEY, "e", {(A, 0): b"\x01", (B, 0): b"\x02"})
    await stores.write.apply([Forget(KEY, A)])
    await stores.write.chunks.put_vectors(KEY, "e", {(A, 0): b"\x01"})
    (left,) = await stores.read.chunks.vectors(KEY, "e", 0, 9)
    assert left.place == (B, 0)
    await stores.write.erase(KEY)
    await stores.write.chunks.put_vectors(KEY, "e", {(B, 0): b"\x02"})
    assert await stores.read.chunks.vectors(KEY, "e", 0, 9) == []
    await stores.write.apply([OpenSession(KEY, 2.0)])
    await stores.write.chunks.add(KEY, [indexed("open", B)])
    await stores.write.chunks.put_vectors(KEY, "e", {(B, 0): b"\x03"})
    assert [one.vector for one in await stores.read.chunks.vectors(KEY, "e", left.number, 9)] == [b"\x03"], "no number is used twice"


async def test_nothing_of_an_erased_sessions_vectors_is_left_in_the_files(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/talks.db", on_damage=no_damage)
    await store.apply([OpenSession(KEY, 1.0)])
    await store.chunks.add(KEY, [indexed("one")])
    await store.chunks.put_vectors(KEY, "e", {(A, 0): b"vectors of a secret"})
    assert b"vectors of a secret" in everything_in(tmp_path)
    await store.erase(KEY)
    await store.close()
    assert b"vectors of a secret" not in everything_in(tmp_path)
