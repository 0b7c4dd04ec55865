"""`context.report_usage`: what the client reads in `usage`, and that nothing else of an answer differs."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import Any

import aiohttp
import pytest

from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running, Said
from tests.scripted_upstream import CUT, Answer, Json, Overflow, Received, ScriptedUpstream, Sse, completion, rough_tokens

FILLER = "some words that say little " * 24
SMALL = {"max_tokens": 2000, "report_usage": "logical"}
ODD = {"system_fingerprint": "fp 漢字", "x": 1.50}


def talk(turns: int) -> list[dict[str, Any]]:
    said = [{"role": role, "content": f"{n}: {FILLER}"} for n in range(turns) for role in ("user", "assistant")]
    return [*said, {"role": "user", "content": "last question?"}]


def usage_for(call: Received) -> dict[str, Any]:
    prompt = rough_tokens(call.json)
    return {"prompt_tokens": prompt, "completion_tokens": 7, "total_tokens": prompt + 7, "prompt_tokens_details": {"cached_tokens": 3}}


def whole(call: Received, **changed: Any) -> dict[str, Any]:
    return {**completion("ok", usage=usage_for(call)), **ODD, **changed}


def left_out(said: Said) -> int:
    return int(said.headers["X-Context-Tokens-In"]) - int(said.headers["X-Context-Tokens-Sent"])


async def ask(running: Running, turns: int = 20, **fields: Any) -> Said:
    said = await running.chat(talk(turns), session="s", **fields)
    assert said.status == 200
    return said


# ---------------------------------------------------------------- plain answers
async def test_a_client_reads_the_size_of_its_own_conversation_and_every_other_byte_is_the_upstreams(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    upstream.script = lambda call: Json(200, json.dumps(whole(call), indent=1, ensure_ascii=False).encode(), [("ETag", '"1"')])
    said = await ask(await proxy(upstream, context=SMALL))
    came = usage_for(upstream.calls[0])
    more = left_out(said)
    assert more > 1000
    shown = {**came, "prompt_tokens": came["prompt_tokens"] + more, "total_tokens": came["total_tokens"] + more}
    assert said.body.decode() == json.dumps(whole(upstream.calls[0], usage=shown), indent=1, ensure_ascii=False)
    assert said.headers["Content-Length"] == str(len(said.body))
    assert "ETag" not in said.headers


@pytest.mark.parametrize(
    "context", [{"max_tokens": 2000}, {**SMALL, "report_usage": "upstream"}, {**SMALL, "observe": True}, {"report_usage": "logical"}]
)
@pytest.mark.parametrize("stream", [False, True])
async def test_where_it_is_not_asked_for_or_nothing_was_left_out_every_byte_is_the_upstreams(
    proxy: StartProxy, upstream: ScriptedUpstream, context: dict[str, Any], *, stream: bool
) -> None:
    bodies: list[bytes] = []

    def reply(call: Received) -> Json | Sse:
        made = Sse("ok", usage=usage_for(call)) if stream else Json(200, whole(call), [("ETag", '"1"')])
        bodies.append(b"".join(piece for piece in made.pieces() if isinstance(piece, bytes)) if isinstance(made, Sse) else made.encoded())
        return made

    upstream.script = reply
    said = await ask(await proxy(upstream, context=context), stream=stream)
    assert said.body == bodies[0]
    assert ("ETag" in said.headers) is not stream


@pytest.mark.parametrize("usage", [None, {"completion_tokens": 7}, "none"])
async def test_an_answer_without_its_figures_is_left_as_it_is(proxy: StartProxy, upstream: ScriptedUpstream, usage: Any) -> None:
    body = json.dumps({**completion("ok"), **ODD, "usage": usage}).encode()
    upstream.script = Json(200, body)
    assert (await ask(await proxy(upstream, context=SMALL))).body == body


async def test_an_error_is_left_as_it_is(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    body = b'{"error":{"message":"no"},"usage":{"prompt_tokens":1000,"total_tokens":1000}}'
    upstream.script = Json(500, body)
    running = await proxy(upstream, context=SMALL)
    assert (await running.chat(talk(20), session="s")).body == body


async def test_a_profile_may_ask_for_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda call: Json(200, whole(call))
    running = await proxy(upstream, context={"max_tokens": 2000}, profiles={"agent": {"report_usage": "logical"}})
    said = await ask(running, headers={"X-Context-Preset": "agent"})
    assert said.json["usage"]["prompt_tokens"] == usage_for(upstream.calls[0])["prompt_tokens"] + left_out(said)


async def test_the_figure_is_never_more_than_the_window_holds_beside_the_answer(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda call: Json(200, whole(call))
    said = await ask(await proxy(upstream, context=SMALL, models=[{"match": "*", "window": 4096}]), 60)
    assert left_out(said) > 4096
    assert said.json["usage"]["prompt_tokens"] + said.json["usage"]["completion_tokens"] == 4096


async def test_after_an_overflow_the_figure_is_raised_by_what_the_rescue_left_out(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda call: Overflow(3000, requested=9000) if len(upstream.calls) == 1 else Json(200, whole(call))
    said = await ask(await proxy(upstream, context={"report_usage": "logical"}), 40)
    assert said.headers["X-Context-Attempts"] == "2"
    assert said.json["usage"]["prompt_tokens"] == usage_for(upstream.calls[1])["prompt_tokens"] + left_out(said)


# ---------------------------------------------------------------- codings
CODINGS = {"gzip": lambda body: gzip.compress(body, mtime=0), "deflate": zlib.compress, "gzip, identity": lambda body: gzip.compress(body, mtime=0)}


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_compressed_answer_that_is_changed_goes_out_plain(proxy: StartProxy, upstream: ScriptedUpstream, coding: str) -> None:
    upstream.script = lambda call: Json(200, CODINGS[coding](json.dumps(whole(call)).encode()), [("Content-Encoding", coding)])
    said = await ask(await proxy(upstream, context=SMALL))
    assert "Content-Encoding" not in said.headers
    assert said.json["usage"]["prompt_tokens"] == usage_for(upstream.calls[0])["prompt_tokens"] + left_out(said)
    assert said.json["choices"] == whole(upstream.calls[0])["choices"]


@pytest.mark.parametrize(
    ("body", "coding"),
    [(b"no gzip", "gzip"), (b'{"usage":{"prompt_tokens":1}}', "aes128gcm"), (gzip.compress(b'{"choices":[]}', mtime=0), "gzip")],
)
async def test_a_compressed_answer_that_cannot_be_read_or_needs_no_change_goes_out_as_it_came(
    proxy: StartProxy, upstream: ScriptedUpstream, body: bytes, coding: str
) -> None:
    upstream.script = Json(200, body, [("Content-Encoding", coding), ("ETag", '"1"')])
    said = await ask(await proxy(upstream, context=SMALL))
    assert (said.body, said.headers["Content-Encoding"], said.headers["ETag"]) == (body, coding, '"1"')


# ---------------------------------------------------------------- streams
def events_of(body: bytes) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def joined(sse: Sse) -> bytes:
    return b"".join(piece for piece in sse.pieces() if isinstance(piece, bytes))


@pytest.mark.parametrize("encoding", [None, "gzip", "deflate"])
async def test_the_event_with_the_figures_is_changed_and_no_other_byte_of_a_stream(
    proxy: StartProxy, upstream: ScriptedUpstream, encoding: str | None
) -> None:
    upstream.script = lambda call: Sse(b": ping\r\n\r\n", "Hel", "lo", usage=usage_for(call), encoding=encoding)
    said = await ask(await proxy(upstream, context=SMALL), stream=True)
    came, more = usage_for(upstream.calls[0]), left_out(said)
    shown = {**came, "prompt_tokens": came["prompt_tokens"] + more, "total_tokens": came["total_tokens"] + more}
    assert events_of(said.body)[-1]["usage"] == shown
    figures = [json.dumps(usage).encode() for usage in (came, shown)]
    assert said.body.replace(figures[1], figures[0]) == joined(Sse(b": ping\r\n\r\n", "Hel", "lo", usage=came))
    assert "Content-Encoding" not in said.headers
    assert said.text == "Hello"


async def test_a_stream_cut_anywhere_is_changed_alike(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    def reply(call: Received) -> Sse:
        return Sse(*(joined(Sse("Hello", usage=usage_for(call)))[at : at + 7] for at in range(0, 2000, 7)), done=False)

    upstream.script = reply
    said = await ask(await proxy(upstream, context=SMALL), stream=True)
    assert events_of(said.body)[-1]["usage"]["prompt_tokens"] == usage_for(upstream.calls[0])["prompt_tokens"] + left_out(said)
    assert said.body.endswith(b"data: [DONE]\n\n")


async def test_an_event_reaches_the_client_as_soon_as_it_is_whole(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    more = asyncio.Event()
    upstream.script = Sse("Hello", more, " world")
    running = await proxy(upstream, context=SMALL)
    body = json.dumps({"model": "m", "messages": talk(20), "stream": True})
    async with asyncio.timeout(30), running.http.post(f"{running.url}/v1/chat/completions", data=body) as answer:
        seen = b""
        while b"Hello" not in seen:
            seen += await answer.content.readany()
        assert seen.endswith(b"\n\n")
        more.set()
        assert (await answer.read()).endswith(b"data: [DONE]\n\n")


async def broken(running: Running, seen: asyncio.Event) -> bytes:
    """What a client gets of a stream that goes on once "Hello" was seen, and has no end."""
    body, got = json.dumps({"model": "m", "messages": talk(20), "stream": True}), b""
    async with asyncio.timeout(30), running.http.post(f"{running.url}/v1/chat/completions", data=body) as answer:
        with pytest.raises(aiohttp.ClientPayloadError):
            while not answer.content.at_eof():
                got += await answer.content.readany()
                if b"Hello" in got:
                    seen.set()
    return got


async def test_what_has_come_of_a_stream_that_breaks_off_reaches_the_client(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    seen = asyncio.Event()
    upstream.script = Sse("Hello", seen, b'data: {"choices":[{"delta":{"content":" wor', CUT)
    assert (await broken(await proxy(upstream, context=SMALL), seen)).endswith(b'" wor')


async def test_a_compressed_stream_that_turns_out_damaged_breaks_off(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    seen, packer = asyncio.Event(), zlib.compressobj(wbits=31)
    good = packer.compress(joined(Sse("Hello", done=False, finish=None))) + packer.flush(zlib.Z_SYNC_FLUSH)
    upstream.script = Sse(good, seen, b"\xff" * 100, done=False, headers=[("Content-Encoding", "gzip")])
    assert b"Hello" in await broken(await proxy(upstream, context=SMALL), seen)


# ---------------------------------------------------------------- what we learn
async def test_what_is_learned_and_counted_stays_the_upstreams_own(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda call: Json(200, whole(call))
    running = await proxy(upstream, context=SMALL)
    await ask(running)
    came = usage_for(upstream.calls[0])
    session = await running.session("s")
    assert (session.spent.reported_prompt, session.spent.reported_cached) == (came["prompt_tokens"], 3)


async def test_the_default_upstream_answer_is_unchanged_for_a_short_talk(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    upstream.script = Answer("ok")
    said = await ask(await proxy(upstream, context=SMALL), 1)
    assert said.json["usage"]["prompt_tokens"] == rough_tokens(upstream.calls[0].json)
