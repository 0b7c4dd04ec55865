"""Vectors from the upstream's own `/v1/embeddings`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ctxproxy.embedders.open import open_embedder
from ctxproxy.errors import EmbedderUnavailable, UpstreamUnreachable
from ctxproxy.ports import Call, Headers
from ctxproxy.ports.embedding import Access

pytest.importorskip("wordllama", reason="the extra semantic is not installed; CTXPROXY_TEST_SERVICES=required installs it")
ACCESS = Access("http://up.test/v1", (("Authorization", "Bearer k"),))


class Said:
    """An answer in one chunk."""

    reason = ""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.status = status
        self.headers: Headers = [("Content-Type", "application/json")]
        self.body = body
        self.closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body

    async def close(self) -> None:
        self.closed = True


class Scripted:
    """An upstream that gives one answer, raises, or hangs."""

    def __init__(self, answer: Said | Exception | None) -> None:
        self.answer = answer
        self.calls: list[Call] = []

    async def send(self, call: Call) -> Said:
        self.calls.append(call)
        if self.answer is None:
            await asyncio.get_running_loop().create_future()
        if isinstance(self.answer, Exception):
            raise self.answer
        assert self.answer is not None
        return self.answer

    async def close(self) -> None: ...


def body(*vectors: list[float], indices: list[int] | None = None) -> bytes:
    order = indices or list(range(len(vectors)))
    data = [{"object": "embedding", "index": n, "embedding": vectors[n] if n < len(vectors) else [1.0]} for n in order]
    return json.dumps({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1}}).encode()


async def embedded(answer: Said | Exception | None, texts: list[str], access: Access | None = ACCESS, within_s: float = 5.0) -> tuple[Any, Scripted]:
    upstream = Scripted(answer)
    embedder = open_embedder("upstream", "text-embedding-3-small", lambda _: upstream)
    assert embedder.needs_access
    assert embedder.name == "upstream:text-embedding-3-small"
    return await embedder.embed(texts, access, within_s), upstream


async def test_texts_are_asked_for_with_the_requests_credential_and_come_back_in_order() -> None:
    said = Said(body([1.0, 0.0], [0.5, -1.0], indices=[1, 0]))
    vectors, upstream = await embedded(said, ["a", "b \ud83c"])
    (call,) = upstream.calls
    assert (call.method, call.url) == ("POST", "http://up.test/v1/embeddings")
    assert ("Authorization", "Bearer k") in call.headers
    assert isinstance(call.body, bytes)
    assert json.loads(call.body) == {"model": "text-embedding-3-small", "input": ["a", "b \ud83c"], "encoding_format": "float"}
    assert vectors == [bytes([127, 0]), bytes([64, 129])]
    assert said.closed


FAULTS = [
    (Said(b"{}", 401), "answered 401"),
    (Said(b"not json"), "is none"),
    (Said(b'{"data": [{"index": 0, "embedding": "AAAA"}]}'), "is none"),
    (Said(body([1.0])), "not one for each"),
    (Said(body([1.0], [1.0, 2.0])), "not one for each"),
    (Said(body([1.0], indices=[0, 0])), "not one for each"),
    (Said(b" " * 16_777_217), "does not end"),
    (UpstreamUnreachable("no"), "upstream_unreachable"),
]


@pytest.mark.parametrize(("answer", "told"), FAULTS, ids=[row[1] for row in FAULTS])
async def test_what_is_no_answer_says_so_and_nothing_of_it(answer: Said | Exception, told: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=told):
        await embedded(answer, ["a", "b"])
    assert not isinstance(answer, Said) or answer.closed


async def test_an_upstream_that_hangs_is_not_waited_for() -> None:
    with pytest.raises(EmbedderUnavailable, match=r"within 0\.01 s"):
        await embedded(None, ["a"], within_s=0.01)


async def test_without_a_request_nobody_is_asked() -> None:
    with pytest.raises(EmbedderUnavailable, match="no request"):
        await embedded(Said(body([1.0])), ["a"], access=None)
