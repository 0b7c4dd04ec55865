"""Promise 1: what fits reaches the upstream byte for byte, and what comes back reaches the client byte for byte."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.proxy.conftest import StartProxy
from tests.proxy.json_texts import BODIES
from tests.proxy.raw_http import ask
from tests.proxy.running import CHAT, Running
from tests.scripted_upstream import Answer, Cut, Json, ScriptedUpstream, Sse, completion

one_server = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
OWN = {
    "X-Session-Id": "s-1",
    "X-User-Id": "u-1",
    "X-Context-Mode": "full",
    "X-Context-Preset": "off",
    "X-Context-Bypass": "false",
}


@pytest.fixture
async def running(proxy: StartProxy, upstream: ScriptedUpstream) -> Running:
    upstream.script = Json(200, completion("ok"))
    return await proxy(upstream)


@one_server
@given(body=BODIES.map(lambda text: text.encode()))
@example(body=b'{"model":"m","messages":[{"role":"user","content":' + b"[" * 3000 + b"]" * 3000 + b"}]}")
@example(body=b'{"model":"m","messages":[{"role":"user","content":"hi","n":' + b"7" * 5000 + b"}]}")
@example(body=b'\xef\xbb\xbf {"model":"m","messages":[{"role":"user","content":"hi"}]}\n')
@example(body=b'{"model":"m","messages":[]}')
@example(body=b'{"model":["m"],"messages":[{"role":{"a":1},"content":"hi","tool_calls":7}],"tools":{},"max_tokens":-1}')
@example(body=b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}')
async def test_a_request_that_fits_reaches_the_upstream_byte_for_byte(running: Running, upstream: ScriptedUpstream, body: bytes) -> None:
    upstream.calls.clear()
    answer = await running.send(body)
    assert (answer.status, [call.body for call in upstream.calls]) == (200, [body])
    assert "failed_open" not in answer.headers.get("X-Context-Actions", "")


@one_server
@given(body=st.binary(max_size=80) | BODIES.map(lambda text: text.encode()[:-3]))
@example(body=b"")
async def test_what_is_no_chat_request_is_passed_on_untouched(running: Running, upstream: ScriptedUpstream, body: bytes) -> None:
    upstream.calls.clear()
    assert (await running.send(body)).status == 200
    assert [call.body for call in upstream.calls] == [body]


@one_server
@given(body=st.binary(max_size=200) | BODIES.map(lambda text: text.encode()), kind=st.sampled_from(["application/json", "text/html", "audio/mpeg"]))
async def test_an_answer_reaches_the_client_byte_for_byte(running: Running, upstream: ScriptedUpstream, body: bytes, kind: str) -> None:
    upstream.script = Json(200, body, [("Content-Type", kind), ("X-Request-Id", "r-1")])
    answer = await running.chat("hi")
    assert (answer.body, answer.headers["Content-Type"], answer.headers["X-Request-Id"]) == (body, kind, "r-1")


@one_server
@given(
    parts=st.lists(st.binary(min_size=1, max_size=30) | st.sampled_from([b"data: {}\n", b"\n\n", b": c\r\n", b"data: [DONE]\r\n\r\n"]), max_size=8)
)
async def test_a_stream_reaches_the_client_byte_for_byte(running: Running, upstream: ScriptedUpstream, parts: list[bytes]) -> None:
    upstream.script = Sse(b"", *parts, done=False)
    assert (await running.chat("hi", stream=True)).body == b"".join(parts)


async def test_x_context_alone_is_taken_out(running: Running, upstream: ScriptedUpstream) -> None:
    kept = rb'{"role":"user", "content" : "\u00e9", "n":12345678901234567890123}'
    await running.send(b'{ "model":"m" ,"top_p":1.10, "messages":[' + kept + rb',{"role":"user","x_context":{"pin":true},"content":"\ud83c"}]}')
    sent = upstream.calls[0].body
    assert kept in sent
    assert b"1.10" in sent
    assert rb'{"role":"user","content":"\ud83c"}' in sent
    assert b"x_context" not in sent


async def test_headers_pass_both_ways_but_hop_by_hop_ones_and_our_own(running: Running, upstream: ScriptedUpstream) -> None:
    theirs = [("OpenAI-Organization", "o"), ("X-Twice", "1"), ("X-Twice", "2"), ("Cookie", "c=1; d=2"), ("aCCept", "*/*"), ("X-Umlaut", "ü")]
    hop = [("Keep-Alive", "5"), ("TE", "trailers"), ("Proxy-Authorization", "Basic x"), ("Upgrade-Insecure-Requests", "1")]
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    back = [("X-Back", "1"), ("X-Back", "2"), ("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2"), ("x-ratelimit-remaining-tokens", "7")]
    upstream.script = Json(200, completion("ok"), back)
    answer = await ask(running.url, "POST", CHAT, [*theirs, *hop, *OWN.items()], body)
    (call,) = upstream.calls
    passed = [(k, v) for k, v in call.headers if k.lower() not in ("host", "content-length")]
    assert [(k.lower(), v) for k, v in passed] == [(k.lower(), v) for k, v in [*theirs, hop[-1]]]
    assert call.header("Host") == upstream.url.removeprefix("http://")
    assert [pair for pair in answer.headers if pair in back] == back
    assert answer.values("X-Session-Id") == ["s-1"]


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
async def test_nothing_is_added_to_the_answers_own_headers(running: Running, upstream: ScriptedUpstream, path: str) -> None:
    upstream.script = Cut(b"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\nhi")
    answer = await ask(running.url, "POST", path, [], b'{"model":"m","messages":[{"role":"user","content":"hi"}]}')
    names = {name for name, _ in answer.headers if not name.startswith("X-")}
    assert (answer.status_line, answer.body, names) == ("HTTP/1.1 200 Fine", b"hi", {"Content-Length", "Date", "Connection"})
    assert answer.values("Date") == ["Thu, 01 Jan 1970 00:00:00 GMT"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"])
@pytest.mark.parametrize("path", ["/v1/responses/r-1", "/v1/files/a%2Fb%20c/content?a=1&a=2&b=%20x+y&c", "/v1/chat/completions/id/messages", "/v1"])
async def test_every_method_and_path_under_v1_is_passed_on(running: Running, upstream: ScriptedUpstream, method: str, path: str) -> None:
    upstream.script = Json(203, b"\0\xff", [("Content-Type", "application/octet-stream")])
    body = b"" if method in ("GET", "HEAD") else b"\0\1\xff"
    answer = await ask(running.url, method, path, [("Accept", "x/y")], body)
    (call,) = upstream.calls
    assert (call.method, call.path, call.body) == (method, path, body)
    assert answer.status_line.startswith("HTTP/1.1 203 ")
    assert answer.body == (b"" if method == "HEAD" else b"\0\xff")


async def test_get_on_the_chat_path_is_passed_on_too(running: Running, upstream: ScriptedUpstream) -> None:
    await ask(running.url, "GET", f"{CHAT}?limit=2", [])
    assert (upstream.calls[0].method, upstream.calls[0].path) == ("GET", f"{CHAT}?limit=2")


@pytest.mark.parametrize(("base", "asked", "called"), [
    ("", "/v1/chat/completions", "/v1/chat/completions"),
    ("/v1/", "/chat/completions", "/v1/chat/completions"),
    ("/gate/openai/v1", "/v1/chat/completions?api-version=1&x=%2F", "/gate/openai/v1/chat/completions?api-version=1&x=%2F"),
    ("/api/paas/v4", "/v1/chat/completions", "/api/paas/v4/chat/completions"),
])  # fmt: skip
async def test_the_upstreams_prefix_and_the_query_are_kept(proxy: StartProxy, upstream: ScriptedUpstream, base: str, asked: str, called: str) -> None:
    running = await proxy(upstream.url + base)
    answer = await ask(running.url, "POST", asked, [], b'{"model":"m","messages":[{"role":"user","content":"hi"}]}')
    assert answer.status_line == "HTTP/1.1 200 OK"
    assert upstream.calls[0].path == called


async def test_a_target_of_absolute_form_is_the_same_target(running: Running, upstream: ScriptedUpstream) -> None:
    for target in ("http://api.example/v1/files?a=1", "HTTP://api.example:80/v1/files?a=1"):
        await ask(running.url, "GET", target, [])
    assert [call.path for call in upstream.calls] == ["/v1/files?a=1"] * 2


@pytest.mark.parametrize(("context", "headers", "actions"), [
    ({"max_tokens": 500, "observe": True}, {}, "observed=1"),
    ({"max_tokens": 500, "preset": "off"}, {}, "none"),
    ({"max_tokens": 500}, {"X-Context-Preset": "off"}, "none"),
])  # fmt: skip
async def test_where_nothing_is_to_be_changed_the_clients_bytes_go_out_however_long(
    proxy: StartProxy, upstream: ScriptedUpstream, context: dict[str, object], headers: dict[str, str], actions: str
) -> None:
    upstream.script = Json(200, completion("ok"))
    running = await proxy(upstream, context=context)
    long = [{"role": role, "content": "some words " * 200} for _ in range(10) for role in ("user", "assistant")]
    said = await running.chat([*long, {"role": "user", "content": "and now?"}], headers=headers)
    assert upstream.calls[0].body == said.sent
    assert actions in said.headers["X-Context-Actions"]


async def test_an_unknown_preset_is_told_with_the_known_ones(running: Running, upstream: ScriptedUpstream) -> None:
    said = await running.chat("hi", headers={"X-Context-Preset": "adaptiv"})
    assert (said.status, said.json["error"]["param"], upstream.calls) == (400, "X-Context-Preset", [])
    assert "adaptive" in said.json["error"]["message"]


async def test_an_upload_is_not_gathered_before_it_goes_on(proxy: StartProxy) -> None:
    arrived = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"first")
        arrived.set()
        await reader.readuntil(b"second")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        writer.close()

    async def parts():  # type: ignore[no-untyped-def]
        yield b"first"
        await arrived.wait()
        yield b"second"

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(20):
        running = await proxy(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with running.http.post(f"{running.url}/v1/files", data=parts()) as answer:
            assert await answer.read() == b"ok"


async def test_an_answer_that_breaks_off_is_not_taken_for_whole(running: Running, upstream: ScriptedUpstream) -> None:
    for head in (b"Content-Length: 100000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\n"):
        upstream.script = Cut(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + head + b"hello", reset=False)
        answer = await ask(running.url, "GET", "/v1/files/f/content", [])
        assert b"HTTP/1.1" not in answer.body
        assert not answer.body.endswith(b"0\r\n\r\n")


async def test_a_thousand_requests_are_answered_each_with_its_own(running: Running, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda call: Answer(call.messages[-1]["content"])
    texts = [f"question {n}" for n in range(200)]
    said = await asyncio.gather(*(running.chat(text, stream=n % 2 == 0) for n, text in enumerate(texts)))
    assert [one.text for one in said] == texts


@pytest.mark.parametrize("target", ["/v1/../admin", "/v1/%2e%2e/admin", "/v1/files/..", "/v1/..%2fadmin", "/v1/x/.%2E/y"])
async def test_a_path_that_climbs_out_of_the_upstreams_own_is_refused(running: Running, upstream: ScriptedUpstream, target: str) -> None:
    answer = await ask(running.url, "GET", target, [])
    assert " 400 " in answer.status_line
    assert b"'..'" in answer.body
    assert not upstream.calls


@pytest.mark.parametrize("target", ["/v1/files/a..b", "/v1/...", "/v1/files?x=/../y"])
async def test_two_dots_elsewhere_in_a_path_are_passed_on(running: Running, upstream: ScriptedUpstream, target: str) -> None:
    await ask(running.url, "GET", target, [])
    assert [call.path for call in upstream.calls] == [target]
