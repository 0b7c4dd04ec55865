"""The embedder that ships its table of words: real vectors, and a running proxy that finds by them."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.core.text_index import Place
from ctxproxy.embedders.open import open_embedder
from ctxproxy.errors import ConfigError
from ctxproxy.ports.embedding import Embedder
from tests.proxy.conftest import StartProxy, proxy, upstream
from tests.proxy.test_retrieval import history, recalled, user
from tests.scripted_upstream import ScriptedUpstream

__all__ = ["proxy", "upstream"]
wordllama = pytest.importorskip("wordllama", reason="the extra semantic is not installed; CTXPROXY_TEST_SERVICES=required installs it")
PHYSICIAN = "The physician told me to take the pills after breakfast."


def none(_: str) -> Any:
    raise AssertionError("no upstream is asked")


@pytest.fixture
def embedder() -> Embedder:
    return open_embedder("wordllama", "", none)


async def test_texts_are_near_by_what_they_mean(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", none)
    texts = [PHYSICIAN, "The train to Oslo leaves at nine.", "My car needs new tyres.", "The recipe asks for two eggs."]
    vectors = await embedder.embed(texts, None, 1.0)
    assert {len(vector) for vector in vectors} == {256}
    table = embedder.table()
    places: list[Place] = [(str(n), 0) for n in range(len(texts))]
    table.add(dict(zip(places, vectors, strict=True)))
    (asked,) = await embedder.embed(["What medicine did the doctor prescribe?"], None, 1.0)
    found = table.nearest(asked, 4)
    assert max(found, key=lambda place: found[place]) == places[0]
    assert await embedder.embed(texts[:1], None, 1.0) == vectors[:1], "alone as among others"


async def test_what_it_cannot_read_has_no_vector_and_nothing_breaks_it(embedder: Embedder) -> None:
    texts = ["大门的钥匙在哪里？", "", "12345 + 1", "a lone \ud83c surrogate", "Ключ от двери"]
    assert [len(vector) for vector in await embedder.embed(texts, None, 1.0)] == [0, 0, 0, 256, 0]
    assert await embedder.embed([], None, 1.0) == []


def test_loading_it_leaves_the_log_of_the_program_as_it_was() -> None:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    open_embedder("wordllama", "", none)
    assert (root.handlers, root.level) == before


def test_one_that_is_broken_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise FileNotFoundError("no weights")

    monkeypatch.setattr(wordllama.WordLlama, "load", broken)
    with pytest.raises(ConfigError, match=r"retrieval\.embedder: wordllama cannot be loaded: FileNotFoundError: no weights"):
        open_embedder("wordllama", "", none)


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
async def test_what_was_said_in_other_words_comes_back(proxy: StartProxy, upstream: ScriptedUpstream, tmp_path: Path, kind: str) -> None:
    running = await proxy(
        upstream,
        context={"max_tokens": 1200, "pipeline": [{"stage": "drop_oldest"}]},
        store={"url": f"sqlite:///{tmp_path}/s.db"},
        memory={"daily_files": False},
        retrieval={"kind": kind, "max_tokens": 300},
    )
    past = [*history(2), user(PHYSICIAN), {"role": "assistant", "content": "Then do so."}, *history(50)]
    await running.chat(past, session="s")
    await running.settled()
    await running.chat([*past, user("What medicine did the doctor prescribe for my sore throat?")], session="s")
    assert PHYSICIAN in recalled(upstream)
