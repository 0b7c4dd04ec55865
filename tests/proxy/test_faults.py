"""Whatever the upstream does, nothing hangs, nothing crashes, nothing that was kept is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import count
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.proxy.conftest import StartProxy
from tests.proxy.running import CHAT, PATIENCE_S, Running
from tests.scripted_upstream import (
    CUT,
    Answer,
    Cut,
    Garbage,
    Hangup,
    Json,
    Overflow,
    Received,
    ScriptedUpstream,
    Sse,
    Stall,
    chunk,
    completion,
    error_body,
    event,
)

APPEND = {"X-Context-Mode": "append"}
HEAD = b"HTTP/1.1 200 OK\r\n"
JSON_TYPE, SSE_TYPE = [("Content-Type", "application/json")], [("Content-Type", "text/event-stream")]
WORD = event(chunk({"content": "word"}))
NONSENSE = b"data: {\n\ndata: 7\n\ndata: null\n\nid\n\nevent: x\ndata: []\n\n\xff\xfe\0"
BROKEN_CALLS = [None, {"index": "a"}, {"index": -1, "function": 7}, {"function": {"name": []}}]
NUMBERS = count()
"""Names for sessions: every example has one of its own."""


def released() -> asyncio.Event:
    """An event that is set as soon as the loop gets to it."""
    gate = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, gate.set)
    return gate


BEHAVIOURS: dict[str, Callable[[], Any]] = {
    "answers": lambda: Answer("an answer"),
    "answers and hangs up": lambda: Hangup(Json(200, completion("an answer"))),
    "refuses with 400": lambda: Json(400, error_body("no such parameter")),
    "refuses with 429": lambda: Json(429, error_body("slow down"), [("Retry-After", "1")]),
    "fails with 500": lambda: Json(500, b"<html>boom</html>", [("Content-Type", "text/html")]),
    "answers a status nobody knows": lambda: Json(599, b"?"),
    "redirects": lambda: Json(307, b"", [("Location", "http://127.0.0.1:1/")]),
    "has nothing to say": lambda: Json(204, b""),
    "finds it too long": lambda: Overflow(10, 9000),
    "finds it too long in a stream": lambda: Sse(event(error_body("maximum context length is 10 tokens", code="context_length_exceeded"))),
    "answers an empty body": lambda: Json(200, b"", JSON_TYPE),
    "answers half a JSON": lambda: Json(200, b'{"choices":[{"index":0,"message":{"role":"assi', JSON_TYPE),
    "answers JSON of another kind": lambda: Json(200, b'{"choices":{"0":{"message":7}},"usage":[]}', JSON_TYPE),
    "answers deep JSON": lambda: Json(200, b'{"choices":' + b"[" * 50_000 + b"]" * 50_000 + b"}", JSON_TYPE),
    "answers JSON as a stream": lambda: Json(200, completion("an answer"), SSE_TYPE),
    "answers a stream as JSON": lambda: Sse(WORD, event(chunk({}, finish="stop")), headers=JSON_TYPE),
    "answers bytes": lambda: Json(200, bytes(range(256)) * 50, [("Content-Type", "application/octet-stream")]),
    "claims gzip": lambda: Json(200, b"no gzip", [*JSON_TYPE, ("Content-Encoding", "gzip")]),
    "claims a coding nobody knows": lambda: Json(200, b"?", [*JSON_TYPE, ("Content-Encoding", "rot13")]),
    "stalls": lambda: Stall(asyncio.Event()),
    "stalls, then answers": lambda: Stall(released(), Answer("late")),
    "stalls within the stream": lambda: Sse(WORD, asyncio.Event()),
    "stalls within the stream, then goes on": lambda: Sse(WORD, released(), WORD, event(chunk({}, finish="stop"))),
    "cuts the stream": lambda: Sse(WORD, CUT),
    "cuts the stream within a character": lambda: Sse('data: {"choices":[{"delta":{"content":"字'.encode()[:-1], CUT),
    "cuts before the head": Cut,
    "resets before the head": lambda: Cut(reset=True),
    "cuts the head": lambda: Cut(HEAD + b"Content-Le"),
    "cuts the body": lambda: Cut(HEAD + b'Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"choices"'),
    "breaks its chunks": lambda: Garbage(HEAD + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\ndata: {}\r\n"),
    "speaks another language": lambda: Garbage(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "lies about its length": lambda: Garbage(HEAD + b"Content-Length: many\r\n\r\n{}"),
    "sends huge headers": lambda: Garbage(HEAD + b"X-Big: " + b"x" * 200_000 + b"\r\nContent-Length: 2\r\n\r\n{}"),
    "sends endless headers": lambda: Garbage(HEAD + b"X-Big: " + b"x" * 3_000_000),
    "sends hints first": lambda: Garbage(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\n{}"),
    "switches protocols": lambda: Garbage(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc"),
    "streams nothing": lambda: Sse(b": nothing\n\n", done=False),
    "streams only the end": lambda: Sse(event("[DONE]"), done=False),
    "goes on behind the end": lambda: Sse(WORD, event(chunk({}, finish="stop")), event("[DONE]"), WORD, event("[DONE]")),
    "streams nonsense": lambda: Sse(NONSENSE, b'data: {"choices":[null,7,{"delta":[]}]}\n\n'),
    "streams broken calls": lambda: Sse(event(chunk({"tool_calls": BROKEN_CALLS}))),
    "streams an error": lambda: Sse(WORD, event({"error": {"message": "overloaded"}})),
}  # fmt: skip
WHOLE = {"answers": "an answer", "answers and hangs up": "an answer", "stalls, then answers": "late"}
"""Behaviours that end in a whole answer however it was asked for."""
one_server = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture
async def running(proxy: StartProxy, upstream: ScriptedUpstream) -> Running:
    timeouts = {"connect_timeout_s": 1, "first_byte_timeout_s": 1, "idle_timeout_s": 1}
    return await proxy(upstream, upstream=timeouts, summarizer={"timeout_s": 1}, store={"url": "sqlite:///s.db"})


async def outcome(running: Running, text: str, session: str, *, stream: bool) -> tuple[int, bytes] | None:
    """Status and body; None where the connection broke. Fails where nothing comes in time."""
    try:
        said = await running.chat(text, session=session, stream=stream, headers=APPEND)
    except (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError):
        return None
    return said.status, said.body


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("stream", [True, False])
async def test_every_behaviour_ends_in_an_answer_or_a_broken_connection(
    running: Running, upstream: ScriptedUpstream, behaviour: str, *, stream: bool
) -> None:
    upstream.script = lambda call: BEHAVIOURS[behaviour]()
    came = await outcome(running, "hi", "s", stream=stream)
    assert came is None or came[0] != 500 or behaviour == "fails with 500"
    await healthy(running, upstream, "s")


async def healthy(running: Running, upstream: ScriptedUpstream, session: str) -> None:
    """The proxy serves on: the next request of the same session gets its answer and is kept."""
    upstream.script = Answer("fine")
    came = await outcome(running, "still there?", session, stream=True)
    assert came is not None
    assert came[0] == 200
    assert (await running.log(session))[-2:] == ["user: still there?", "assistant: fine"]


@one_server
@given(steps=st.lists(st.tuples(st.sampled_from(sorted(BEHAVIOURS)), st.booleans()), min_size=1, max_size=5))
async def test_no_row_of_behaviours_loses_a_kept_message(running: Running, upstream: ScriptedUpstream, steps: list[tuple[str, bool]]) -> None:
    session = f"s-{next(NUMBERS)}"
    kept: list[str] = []
    for at, (behaviour, stream) in enumerate(steps):
        upstream.script = one_of(BEHAVIOURS[behaviour])
        await outcome(running, f"question {at}", session, stream=stream)
        if behaviour in WHOLE:
            kept += [f"user: question {at}", f"assistant: {WHOLE[behaviour]}"]
    await healthy(running, upstream, session)
    log = await running.log(session)
    assert is_within(kept, log)
    assert not [line for line in log if line.endswith("(partial)")]


def one_of(make: Callable[[], Any]) -> Callable[[Received], Any]:
    """A script that answers each call with a new reply."""
    return lambda call: make()


def is_within(row: list[str], whole: list[str]) -> bool:
    """Whether all of a row stands in the whole, in its order."""
    rest = iter(whole)
    return all(one in rest for one in row)


async def test_many_at_once_are_each_answered_while_others_break(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, upstream={"first_byte_timeout_s": PATIENCE_S, "idle_timeout_s": PATIENCE_S})
    makes = [BEHAVIOURS[name] for name in sorted(BEHAVIOURS)]

    def script(call: Received) -> Any:
        number = json.loads(call.body)["user"]
        return makes[number]() if number < len(makes) else Answer(f"answer {number}")

    upstream.script = script
    asking = [asyncio.ensure_future(running.chat("hi", session=f"many-{n}", stream=n % 2 == 0, user=n)) for n in range(len(makes) * 2)]
    breaking, good = asking[: len(makes)], asking[len(makes) :]
    assert [said.text for said in await asyncio.gather(*good)] == [f"answer {n + len(makes)}" for n in range(len(makes))]
    for one in breaking:
        one.cancel()
    await asyncio.wait(breaking)


async def test_an_endless_answer_is_relayed_and_not_gathered(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, listen={"max_body_mb": 0.1})
    block = b"x" * 65_536
    for status in (200, 500):
        never = asyncio.Event()
        upstream.script = Sse(*[block] * 4, never, headers=JSON_TYPE, status=status, done=False)
        asked = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
        async with asyncio.timeout(PATIENCE_S), running.http.post(running.url + CHAT, data=asked) as answer:
            assert await answer.content.readexactly(len(block) * 4) == block * 4


async def test_a_stream_under_another_name_is_passed_on_event_by_event(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    gate = asyncio.Event()
    for name in ("text/plain", "application/octet-stream"):
        gate.clear()
        upstream.script = Sse(WORD, gate, event(chunk({}, finish="stop")), headers=[("Content-Type", name)])
        body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
        async with running.http.post(running.url + CHAT, data=body, headers={"X-Session-Id": "s"}) as answer:
            assert await answer.content.readexactly(len(WORD)) == WORD
            gate.set()
            await answer.read()
        assert (await running.log("s"))[-1] == "assistant: word"
