"""What was said is compared by meaning: vectors are made behind the answers, and no request waits for, or breaks with, the embedder."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ctxproxy import wiring
from ctxproxy.core.records import SessionKey
from ctxproxy.errors import ConfigError
from ctxproxy.ports.embedding import Access
from ctxproxy.proxy import vector_desk
from tests.embedding import TopicEmbedder
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_retrieval import history, recalled, user
from tests.scripted_upstream import ScriptedUpstream

StartWith = Callable[..., Awaitable[Running]]
SISTER = "My sister Petra paints old houses in Oslo."
QUESTION = "Which relative daubs ancient dwellings beside northern fjords?"
NOWHERE = Access("http://127.0.0.1:9/v1")


@pytest.fixture
def with_embedder(proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> StartWith:
    """`await with_embedder(embedder, retrieval={…})`: a proxy whose prompts hold 1,200 tokens."""

    async def start(embedder: TopicEmbedder, **sections: Any) -> Running:
        monkeypatch.setattr(wiring, "missing_package", lambda _: None)
        monkeypatch.setattr(wiring, "open_embedder", lambda *_: embedder)
        asked = {"context": {"max_tokens": 1200}, "summarizer": {"kind": "off"}, "retrieval": {"kind": "dense"}, **sections}
        monkeypatch.setattr("ctxproxy.config.checks.missing_package", lambda _: None)
        return await proxy(upstream, **asked)

    return start


def past() -> list[dict[str, Any]]:
    """Not told at the very beginning, which stays in every prompt."""
    return [*history(2), user(SISTER), {"role": "assistant", "content": "How nice."}, *history(50)]


async def key_of(running: Running, name: str = "s") -> SessionKey:
    (session,) = await running.state.store.find(name)
    return session.key


@pytest.mark.parametrize("store", ["memory://", "sqlite:///s.db"])
async def test_what_shares_no_word_with_the_question_is_found_by_its_meaning(
    with_embedder: StartWith, upstream: ScriptedUpstream, store: str
) -> None:
    running = await with_embedder(TopicEmbedder(), store={"url": store})
    await running.chat(past(), session="s")
    await running.settled()
    said = await running.chat([*past(), user(QUESTION)], session="s")
    assert SISTER in recalled(upstream)
    assert said.actions.get("retrieval", 0) > 0
    assert [message["role"] for message in upstream.calls[-1].messages[-3:]] == ["user", "assistant", "user"]


async def test_what_words_and_meaning_find_comes_back_together(with_embedder: StartWith, upstream: ScriptedUpstream) -> None:
    running = await with_embedder(TopicEmbedder(), retrieval={"kind": "hybrid", "top_k": 3, "embedder": "wordllama"})
    await running.chat(past(), session="s")
    await running.settled()
    await running.chat([*past(), user("Behind which old dwelling did the otter number i sleep?")], session="s")
    assert "the otter number i slept" in recalled(upstream)
    assert SISTER in recalled(upstream), "a dwelling is a house"


async def test_words_alone_are_compared_where_nothing_else_is_wanted(with_embedder: StartWith) -> None:
    embedder = TopicEmbedder()
    running = await with_embedder(embedder, retrieval={"kind": "keyword"})
    await running.chat(past(), session="s")
    await running.settled()
    await running.chat([*past(), user(QUESTION)], session="s")
    await running.settled()
    assert embedder.asked == []
    assert running.state.vectors.means("keyword") == "words alone"


async def test_a_remark_is_not_compared_by_meaning_beside_words(with_embedder: StartWith) -> None:
    embedder = TopicEmbedder()
    running = await with_embedder(embedder, retrieval={"kind": "hybrid"})
    await running.chat(past(), session="s")
    await running.settled()
    before = len(embedder.asked)
    remark = "I do like those old dwellings by the fjords."
    await running.chat([*past(), user(remark)], session="s")
    assert [remark] not in embedder.asked[before:]


async def test_pieces_are_read_in_small_batches_each_once(with_embedder: StartWith) -> None:
    embedder = TopicEmbedder()
    running = await with_embedder(embedder)
    await running.chat(past(), session="s")
    await running.settled()
    await running.chat([*past(), user(QUESTION)], session="s")
    await running.settled()
    made = [text for texts in embedder.asked for text in texts if text != QUESTION]
    assert made.count(SISTER) == 1
    assert made.count("How nice.") == 1, "what it cannot read is not asked for again, either"
    assert max(map(len, embedder.asked)) <= vector_desk.AT_ONCE_PIECES


async def test_an_embedder_that_fails_breaks_no_request_and_rests(with_embedder: StartWith, upstream: ScriptedUpstream) -> None:
    embedder = TopicEmbedder()
    running = await with_embedder(embedder)
    await running.chat(past(), session="s")
    await running.settled()
    embedder.broken = True
    said = await running.chat([*past(), user(QUESTION)], session="s")
    assert said.status == 200
    assert recalled(upstream) == ""
    assert "ctxproxy_embedding_failures_total 1.0" in running.state.metrics.text().decode()
    asked = len(embedder.asked)
    await running.chat([*past(), user("Which relative daubs ancient dwellings beside southern fjords?")], session="s")
    await running.settled()
    assert len(embedder.asked) == asked
    elsewhere = await running.chat(past(), session="s", headers={"Authorization": "Bearer else"})
    assert elsewhere.status == 200
    await running.settled()
    assert len(embedder.asked) == asked + 1, "another tenant is not kept from asking"


async def test_one_that_asks_an_upstream_does_so_only_when_something_was_lost_and_with_the_requests_credential(with_embedder: StartWith) -> None:
    embedder = TopicEmbedder(needs_access=True)
    running = await with_embedder(embedder)
    await running.chat(past()[:6], session="s", headers={"Authorization": "Bearer mine"})
    await running.settled()
    assert embedder.asked == []
    await running.chat([*past(), user(QUESTION)], session="s", headers={"Authorization": "Bearer mine"})
    await running.settled()
    assert SISTER in [text for texts in embedder.asked for text in texts]
    assert all(access is not None and ("Authorization", "Bearer mine") in access.credentials for access in embedder.accesses)
    assert "mine" not in repr(embedder.accesses)


async def test_what_is_forgotten_or_erased_is_not_compared(with_embedder: StartWith, upstream: ScriptedUpstream) -> None:
    running = await with_embedder(TopicEmbedder())
    await running.chat([*past(), user(QUESTION)], session="s")
    await running.settled()
    key = await key_of(running)
    assert await running.state.vectors.nearest(key, QUESTION, NOWHERE)
    _, listed = await running.admin("GET", "sessions/s/messages")
    tip = next(row["tip"] for row in listed["data"] if row["message"]["content"] == SISTER)
    await running.admin("DELETE", f"sessions/s/messages/{tip}")
    assert (tip, 0) not in await running.state.vectors.nearest(key, QUESTION, NOWHERE)
    await running.admin("DELETE", "sessions/s")
    assert await running.state.vectors.nearest(key, QUESTION, NOWHERE) == {}


async def test_another_session_shows_nothing_of_this_one(with_embedder: StartWith, upstream: ScriptedUpstream) -> None:
    running = await with_embedder(TopicEmbedder())
    await running.chat([*past(), user(QUESTION)], session="s")
    await running.settled()
    for session, headers in (("other", {}), ("s", {"Authorization": "Bearer else"})):
        await running.chat([*history(50), user(QUESTION)], session=session, headers=headers)
        assert SISTER not in str(upstream.calls[-1].messages)


async def test_tables_are_kept_within_their_bytes_and_read_again(with_embedder: StartWith) -> None:
    embedder = TopicEmbedder()
    running = await with_embedder(embedder, retrieval={"kind": "dense", "cache_mb": 0})
    for name in ("a", "b"):
        await running.chat(past(), session=name)
    await running.settled()
    desk = running.state.vectors
    keys = [await key_of(running, name) for name in ("a", "b")]
    for key in (*keys, *keys):
        assert await desk.nearest(key, QUESTION, NOWHERE)
        assert list(desk._tables) == [key]


async def test_a_table_that_has_grown_is_read_again_from_the_newest_on(with_embedder: StartWith, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_desk, "MOST_VECTORS", 2)
    monkeypatch.setattr(vector_desk, "GROWN_VECTORS", 2)
    running = await with_embedder(TopicEmbedder())
    told = [user(f"The {what} is red.") for what in ("house", "dwelling", "old house")]
    said = await running.chat(told, session="s")
    await running.settled()
    key = await key_of(running)
    assert len(await running.state.vectors.nearest(key, "house", NOWHERE)) == 2
    await running.chat([*told, said.message, user("The house is blue.")], session="s")
    await running.settled()
    assert len(await running.state.vectors.nearest(key, "house", NOWHERE)) == 3
    assert len(await running.state.vectors.nearest(key, "house", NOWHERE)) == 2


async def test_erasing_does_not_wait_for_an_embedder_that_hangs(with_embedder: StartWith, upstream: ScriptedUpstream) -> None:
    embedder = TopicEmbedder()
    hangs = asyncio.Event()

    async def never(*_: object) -> list[bytes]:
        hangs.set()
        return await asyncio.get_running_loop().create_future()

    embedder.embed = never  # type: ignore[method-assign,assignment]
    running = await with_embedder(embedder)
    await running.chat(past(), session="s")
    await hangs.wait()
    status, _ = await running.admin("DELETE", "sessions/s")
    assert status == 200


async def test_a_broken_embedder_stops_the_start_only_where_words_were_not_to_do(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ConfigError("retrieval.embedder: wordllama cannot be loaded: ImportError: no such thing")

    monkeypatch.setattr(wiring, "missing_package", lambda _: None)
    monkeypatch.setattr("ctxproxy.config.checks.missing_package", lambda _: None)
    monkeypatch.setattr(wiring, "open_embedder", broken)
    with caplog.at_level(logging.WARNING, "ctxproxy"):
        running = await proxy(upstream, retrieval={"kind": "hybrid"})
    assert running.state.vectors.means("hybrid") == "words alone"
    assert "cannot be loaded" in caplog.text
    with pytest.raises(ConfigError, match="cannot be loaded"):
        await proxy(upstream, retrieval={"kind": "dense"})


@pytest.mark.parametrize(("kind", "means"), [("off", "nothing"), ("keyword", "words alone"), ("dense", "topics"), ("hybrid", "words and topics")])
async def test_what_is_compared_is_said(with_embedder: StartWith, kind: str, means: str) -> None:
    running = await with_embedder(TopicEmbedder(), retrieval={"kind": kind})
    assert running.state.vectors.means(kind) == means
