"""Streams: passed on as they come, kept however they end."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import socket
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from ctxproxy.core.wire import ChatRequest
from ctxproxy.ports import Call
from ctxproxy.proxy.middleware import Relayed
from tests.proxy.conftest import StartProxy
from tests.proxy.running import CHAT, PATIENCE_S, Running
from tests.scripted_upstream import CUT, Answer, Cut, Json, ScriptedUpstream, Sse, Stall, chunk, completion, event

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
HEADERS = {"X-Session-Id": "s", "Authorization": "Bearer sk-tested"}
ROLE = event(chunk({"role": "assistant", "content": ""}))


def opened(running: Running, **fields: Any) -> aiohttp.client._BaseRequestContextManager[aiohttp.ClientResponse]:
    return running.http.post(running.url + CHAT, data=json.dumps({**ASKED, **fields}), headers=HEADERS)


async def read_until(answer: aiohttp.ClientResponse, mark: bytes) -> None:
    """Read on until the mark has come."""
    got = b""
    async with asyncio.timeout(PATIENCE_S):
        while mark not in got:
            got += await answer.content.readany()


async def read(answer: aiohttp.ClientResponse, awaited: bytes) -> bytes:
    """Read exactly what should be there by now."""
    async with asyncio.timeout(PATIENCE_S):
        return await answer.content.readexactly(len(awaited))


async def test_each_event_reaches_the_client_before_the_next_is_made(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    events = [event(chunk({"content": f"word {n} "})) for n in range(5)]
    gates = [asyncio.Event() for _ in events]
    upstream.script = Sse(ROLE, *[part for gate, one in zip(gates, events, strict=True) for part in (gate, one)], event(chunk({}, finish="stop")))
    gates[0].set()
    async with opened(running) as answer:
        await read(answer, ROLE)
        for one, gate in zip(events, [*gates[1:], asyncio.Event()], strict=True):
            assert await read(answer, one) == one
            gate.set()
        assert (await answer.read()).endswith(b"data: [DONE]\n\n")


async def test_a_stream_does_not_hold_what_was_asked_as_it_came(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, sessions={"cache_mb": 1})
    pause = asyncio.Event()
    upstream.script = Sse("a", pause, "b")
    asked = json.dumps({**ASKED, "messages": [{"role": "user", "content": "more than is kept of bodies " * 40_000}]}).encode()
    async with running.http.post(running.url + CHAT, data=io.BytesIO(asked), headers=HEADERS) as answer:
        await read_until(answer, b'"a"')
        gc.collect()
        assert not [one for one in gc.get_objects() if isinstance(one, Call | ChatRequest) and one.body == asked]
        pause.set()
        await answer.read()
    assert (await running.log("s"))[1:] == ["assistant: ab"]


async def test_comments_and_halves_of_events_pass_at_once(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    first = event(chunk({"content": "x"}))
    whole = 'data: {"choices":[{"index":0,"delta":{"content":"größer 字"}}]}\r\n\r\n'.encode()
    at = whole.index("字".encode()) + 1
    pieces = [b": ping\n\n", b"\r\n: OPENROUTER PROCESSING\r\n\r\n", whole[:at], whole[at:]]
    gates = [asyncio.Event() for _ in pieces]
    upstream.script = Sse(first, *[part for piece, gate in zip(pieces, gates, strict=True) for part in (gate, piece)])
    async with opened(running) as answer:
        await read(answer, first)
        for piece, gate in zip(pieces, gates, strict=True):
            gate.set()
            assert await read(answer, piece) == piece
        await answer.read()
    assert await running.log("s") == ["user: hi", "assistant: xgrößer 字"]


async def test_a_bare_role_is_not_held_back_for_long(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    gate, word = asyncio.Event(), event(chunk({"content": "word"}))
    upstream.script = Sse(ROLE, gate, word, event(chunk({}, finish="stop")))
    async with opened(running) as answer:
        assert await read(answer, ROLE) == ROLE
        gate.set()
        assert await read(answer, word) == word
        await answer.read()
    assert await running.log("s") == ["user: hi", "assistant: word"]


async def test_an_answer_with_a_finish_but_no_done_is_whole(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    upstream.script = Sse("Hel", "lo", done=False)
    answer = await running.chat("hi", session="s", stream=True)
    assert b"[DONE]" not in answer.body
    assert await running.log("s") == ["user: hi", "assistant: Hello"]


@pytest.mark.parametrize("last", [event(chunk({}, finish="stop")), b"data: [DONE]\n\n"], ids=["finish", "done"])
async def test_an_answer_whose_last_event_lacks_its_blank_line_is_whole(proxy: StartProxy, upstream: ScriptedUpstream, last: bytes) -> None:
    running = await proxy(upstream)
    upstream.script = Sse(event(chunk({"content": "Hello"})), last.rstrip(), done=False)
    answer = await running.chat("hi", session="s", stream=True)
    assert answer.body.endswith(last.rstrip())
    assert await running.log("s") == ["user: hi", "assistant: Hello"]


@pytest.mark.parametrize("parts", [("half ", "a word"), (ROLE, event(chunk({"content": "half a word"})), b'data: {"cho')])
async def test_a_stream_that_breaks_off_breaks_off_for_the_client_and_is_kept_as_partial(
    proxy: StartProxy, upstream: ScriptedUpstream, parts: tuple[Any, ...]
) -> None:
    running = await proxy(upstream)
    seen = asyncio.Event()
    upstream.script = Sse(*parts, seen, CUT)
    async with opened(running) as answer:
        await read_until(answer, b"a word")
        seen.set()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    assert await running.log("s") == ["user: hi"]
    assert await running.branches("s") == [["user: hi", "assistant: half a word (partial)"]]
    upstream.script = Answer("a whole one")
    await running.chat("go on", session="s", headers={"X-Context-Mode": "append"})
    assert [m["content"] for m in upstream.calls[-1].messages] == ["hi", "go on"]


async def test_a_whole_answer_takes_the_place_of_the_partial_one(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    seen = asyncio.Event()
    upstream.script = [Sse("Hel", "lo", seen, CUT), Sse("Hel", "lo")]
    async with opened(running) as answer:
        await read_until(answer, b'"lo"')
        seen.set()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    await running.settled()
    await running.chat("hi", session="s", stream=True)
    assert await running.branches("s") == [["user: hi", "assistant: Hello"]]


@pytest.mark.parametrize("parts", [(), (b": wait\n\n",), (ROLE,), (ROLE, event(chunk({"content": "half"})))])
async def test_a_client_that_leaves_cancels_the_upstreams_work(proxy: StartProxy, upstream: ScriptedUpstream, parts: tuple[bytes, ...]) -> None:
    running = await proxy(upstream)
    never = asyncio.Event()
    upstream.script = Sse(*parts, never) if parts else Stall(never)
    asking = asyncio.create_task(leave_after(running, parts[-1] if len(parts) == 2 else b""))
    call = await upstream.call(0)
    if len(parts) < 2:
        asking.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait([asking])
        await call.gone.wait()
    await running.settled()
    kept = [["user: hi", "assistant: half (partial)"]] if len(parts) == 2 else []
    assert (await running.branches("s") if await running.state.store.find("s") else []) == kept


async def leave_after(running: Running, awaited: bytes) -> None:
    """Ask, and leave as soon as these bytes have come."""
    async with opened(running) as answer:
        while awaited not in await answer.content.readany():
            pass
        answer.close()


async def test_a_client_that_leaves_while_a_whole_answer_is_read_cancels_the_upstreams_work(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    upstream.script = Sse(b'{"choices":', asyncio.Event(), headers=[("Content-Type", "application/json")])
    asking = asyncio.create_task(running.chat("hi", session="s"))
    call = await upstream.call(0)
    asking.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await call.gone.wait()


@pytest.mark.parametrize("began", [True, False])
async def test_with_drain_the_answer_is_heard_to_its_end_and_kept(proxy: StartProxy, upstream: ScriptedUpstream, *, began: bool) -> None:
    running = await proxy(upstream, upstream={"on_disconnect": "drain"})
    gate, half = asyncio.Event(), event(chunk({"content": "half and "}))
    end = event(chunk({}, finish="stop")).rstrip()
    upstream.script = Sse(*([ROLE, half] if began else []), gate, event(chunk({"content": "half"})), end, done=False)
    asking = asyncio.create_task(leave_after(running, half))
    call = await upstream.call(0)
    if not began:
        asking.cancel()
    await asyncio.wait([asking])
    await gone(running)
    gate.set()
    async with asyncio.timeout(PATIENCE_S):
        await call.done.wait()
    assert await running.log("s") == ["user: hi", f"assistant: {'half and ' if began else ''}half"]


async def test_with_drain_an_answer_that_is_no_stream_is_kept_too(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, upstream={"on_disconnect": "drain"})
    gate = asyncio.Event()
    upstream.script = Stall(gate, Json(200, completion("late")))
    asking = asyncio.create_task(running.chat("hi", session="s"))
    await upstream.call(0)
    asking.cancel()
    await asyncio.wait([asking])
    await gone(running)
    gate.set()
    assert await running.log("s") == ["user: hi", "assistant: late"]


async def gone(running: Running) -> None:
    """Wait until the server has seen its client leave: a request of another connection is served after that."""
    async with aiohttp.ClientSession() as other, other.get(f"{running.url}/healthz") as answer:
        assert answer.status == 200


async def test_no_connection_in_time_is_told(proxy: StartProxy) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(("127.0.0.1", port))  # the backlog is full now: a third is not answered
            running = await proxy(f"http://127.0.0.1:{port}", upstream={"connect_timeout_s": 0.3})
            answer = await running.chat("hi")
    assert (answer.status, answer.json["error"]["code"]) == (504, "upstream_timeout")
    assert "upstream.connect_timeout_s" in answer.json["error"]["message"]


async def test_no_first_byte_in_time_is_told(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, upstream={"first_byte_timeout_s": 1})
    upstream.script = Stall(asyncio.Event())
    answer = await running.chat("hi", stream=True)
    assert (answer.status, answer.json["error"]["code"]) == (504, "upstream_timeout")
    assert "upstream.first_byte_timeout_s" in answer.json["error"]["message"]
    await asyncio.wait_for(upstream.calls[0].gone.wait(), PATIENCE_S)


async def test_silence_before_the_first_event_is_told(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, upstream={"idle_timeout_s": 1})
    upstream.script = Sse(b": wait\n\n", asyncio.Event())
    answer = await running.chat("hi", stream=True)
    assert (answer.status, answer.json["error"]["code"]) == (504, "upstream_timeout")


async def test_silence_within_an_answer_ends_it_with_an_error_event_and_a_broken_connection(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, upstream={"idle_timeout_s": 1})
    upstream.script = Sse(ROLE, event(chunk({"content": "half"})), asyncio.Event())
    seen = b""
    async with opened(running) as answer:
        with pytest.raises(aiohttp.ClientPayloadError):
            while True:
                seen += await answer.content.readany()
    error = json.loads(seen.rpartition(b"data: ")[2])["error"]
    assert (error["code"], "upstream.idle_timeout_s" in error["message"]) == ("upstream_timeout", True)
    assert await running.branches("s") == [["user: hi", "assistant: half (partial)"]]


@pytest.mark.parametrize("on_disconnect", ["cancel", "drain"])
async def test_an_upstream_that_cannot_be_reached_is_told(proxy: StartProxy, upstream: ScriptedUpstream, on_disconnect: str) -> None:
    running = await proxy(upstream, upstream={"on_disconnect": on_disconnect})
    for reply in (Cut(), Cut(b"HTTP/1.1 200 OK\r\nContent-Le", reset=True)):
        upstream.script = reply
        answer = await running.chat("hi")
        assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_unreachable")
    await upstream.stop()
    answer = await running.chat("hi", stream=True)
    assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_unreachable")


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_is_kept_before_its_last_byte_leaves(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, store={"url": "sqlite:///s.db"}, sessions={"mode": "append"})
    gate = asyncio.Event()
    upstream.script = lambda call: Sse("answer ", gate, str(len(call.messages))) if stream else Answer(f"answer {len(call.messages)}")
    for turn in range(40):
        gate.clear()
        async with opened(running, messages=[{"role": "user", "content": f"question {turn}"}], stream=stream) as answer:
            if stream:
                await answer.content.readuntil(b"\n\n")
                gate.set()
                await answer.content.readuntil(b"data: [DONE]\n\n")  # not to the end of the response: asks again at once
            else:
                await answer.content.readexactly(int(answer.headers["Content-Length"]))
        expected = [text for n in range(turn) for text in (f"question {n}", f"answer {2 * n + 1}")] + [f"question {turn}"]
        assert [m["content"] for m in upstream.calls[-1].messages] == expected


async def test_a_client_that_closes_at_the_last_event_is_no_error_of_ours(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def closed(self: web.StreamResponse, data: bytes = b"") -> None:
        raise ConnectionResetError("Cannot write to closing transport")

    running = await proxy(upstream)
    monkeypatch.setattr(Relayed, "write_eof", closed, raising=False)
    upstream.script = Sse("Hel", "lo")
    async with opened(running) as answer:
        await read_until(answer, b"[DONE]")
    assert await running.log("s") == ["user: hi", "assistant: Hello"]
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []
