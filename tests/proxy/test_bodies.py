"""Compressed bodies both ways, bodies beyond the limit, and the bypass."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable

import brotli  # type: ignore[import-untyped]
import pytest

from ctxproxy.core.codings import zstd
from tests.proxy.conftest import StartProxy
from tests.proxy.running import CHAT, MODEL
from tests.scripted_upstream import Json, ScriptedUpstream, completion

CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
}
STREAM = (
    b"".join(
        b'data: {"choices":[{"index":0,"delta":{"content":"' + word + b'"},"finish_reason":' + end + b"}]}\n\n"
        for word, end in ((b"Hel", b"null"), (b"lo", b"null"), (b"", b'"stop"'))
    )
    + b"data: [DONE]\n\n"
)


def request_of(*texts: str) -> bytes:
    return json.dumps(
        {"model": MODEL, "messages": [{"role": "user" if n % 2 == 0 else "assistant", "content": t} for n, t in enumerate(texts)]}
    ).encode()


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_compressed_request_goes_up_as_it_came_and_is_understood(proxy: StartProxy, upstream: ScriptedUpstream, coding: str) -> None:
    upstream.script = Json(200, completion("ok"))
    running = await proxy(upstream)
    packed = CODINGS[coding](request_of("hello there"))
    assert (await running.send(packed, {"Content-Encoding": coding, "X-Session-Id": "s"})).status == 200
    assert (upstream.calls[0].body, upstream.calls[0].header("Content-Encoding")) == (packed, coding)
    assert await running.log("s") == ["user: hello there", "assistant: ok"]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_compressed_answer_reaches_the_client_as_it_came_and_is_kept(
    proxy: StartProxy, upstream: ScriptedUpstream, coding: str, *, stream: bool
) -> None:
    plain = STREAM if stream else json.dumps(completion("Hello")).encode()
    packed = CODINGS[coding](plain)
    upstream.script = Json(200, packed, [("Content-Type", "text/event-stream" if stream else "application/json"), ("Content-Encoding", coding)])
    running = await proxy(upstream)
    answer = await running.chat("hi", session="s", stream=stream)
    assert (answer.body, answer.headers["Content-Encoding"]) == (packed, coding)
    assert await running.log("s") == ["user: hi", "assistant: Hello"]


async def test_a_compressed_request_that_must_be_compacted_goes_up_as_identity(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    upstream.script = Json(200, completion("ok"))
    running = await proxy(upstream, context={"max_tokens": 2000}, summarizer={"kind": "extractive"})
    texts = [f"message {n}: " + "some words of no weight " * 60 for n in range(20)]
    answer = await running.send(gzip.compress(request_of(*texts, "last question")), {"Content-Encoding": "gzip"})
    (call,) = upstream.calls
    assert answer.status == 200
    assert answer.actions
    assert call.header("Content-Encoding") is None
    assert call.messages[-1]["content"] == "last question"
    assert int(call.header("Content-Length") or 0) == len(call.body) < 12_000


@pytest.mark.parametrize("bypass", ["false", "true"])
async def test_a_body_beyond_the_limit_gets_413_and_no_call(proxy: StartProxy, upstream: ScriptedUpstream, bypass: str) -> None:
    running = await proxy(upstream, listen={"max_body_mb": 0.01})
    big = request_of("x" * 20_000)

    async def parts() -> AsyncIterator[bytes]:
        for at in range(0, len(big), 1000):
            yield big[at : at + 1000]

    with_length = await running.send(big, {"X-Context-Bypass": bypass})
    async with running.http.post(running.url + CHAT, data=parts(), headers={"X-Context-Bypass": bypass}) as chunked:
        without = await chunked.json()
    assert (with_length.status, chunked.status, upstream.calls) == (413, 413, [])
    assert with_length.json["error"]["code"] == without["error"]["code"] == "request_too_large"
    assert "listen.max_body_mb" in without["error"]["message"]


async def test_a_bomb_gets_413_and_no_call(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, listen={"max_body_mb": 0.01})
    answer = await running.send(gzip.compress(request_of("x" * 2_000_000)), {"Content-Encoding": "gzip"})
    assert (answer.status, upstream.calls) == (413, [])


async def test_a_coding_that_cannot_be_undone_gets_415_that_names_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    for coding, body in (("rot13", b"{}"), ("gzip", b"no gzip at all"), ("gzip", gzip.compress(request_of("hi"))[:-9])):
        answer = await running.send(body, {"Content-Encoding": coding})
        assert (answer.status, answer.json["error"]["param"], upstream.calls) == (415, "Content-Encoding", [])
        assert coding in answer.json["error"]["message"]


async def test_the_bypass_forwards_what_cannot_be_understood_and_records_nothing(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    upstream.script = Json(200, completion("ok"))
    running = await proxy(upstream, context={"max_tokens": 500})
    long = request_of("long " * 5000)
    for body, headers in ((long, {}), (b"\xff{", {}), (b"packed", {"Content-Encoding": "rot13"})):
        answer = await running.send(body, {"X-Context-Bypass": "TRUE", "X-Session-Id": "s", **headers})
        assert answer.status == 200
        assert not [name for name in answer.headers if name.startswith("X-Context")]
    assert [call.body for call in upstream.calls] == [long, b"\xff{", b"packed"]
    assert upstream.calls[0].header("X-Context-Bypass") is None
    await running.settled()
    assert (await running.state.store.totals()).sessions == 0


async def test_the_bypass_goes_to_the_upstream_of_the_model(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    async with ScriptedUpstream(Json(200, completion("routed"))) as other:
        running = await proxy(upstream, upstream={"routes": [{"match": "qwen*", "base_url": other.url}]})
        body = b'{"model":"qwen3","messages":[{"role":"user","content":"hi"}]}'
        assert (await running.send(body)).text == "routed"
        assert (await running.send(body, {"X-Context-Bypass": "true"})).text == "routed"
    assert upstream.calls == []


async def test_the_bypass_still_takes_x_context_out(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.send(b'{"model":"m","messages":[{"role":"user","content":"hi","x_context":{"pin":true}}]}', {"X-Context-Bypass": "true"})
    assert upstream.calls[0].messages == [{"role": "user", "content": "hi"}]


async def test_a_wrong_flag_is_told(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    answer = await running.send(request_of("hi"), {"X-Context-Bypass": "yes"})
    assert (answer.status, answer.json["error"]["param"]) == (400, "X-Context-Bypass")
