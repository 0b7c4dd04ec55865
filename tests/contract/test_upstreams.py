"""What every upstream keeps to, run over HTTP to a real server and over the built-in model; then what only HTTP can get wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from yarl import URL

from ctxproxy.core.urls import join_url
from ctxproxy.errors import BodyTooLarge, ConfigError, UpstreamTimeout, UpstreamUnreachable
from ctxproxy.ports import Call, Response, Upstream
from ctxproxy.upstream.client import HttpUpstream
from ctxproxy.upstream.demo import DemoUpstream
from ctxproxy.upstream.open import open_upstream
from ctxproxy.upstream.proxies import proxy_for
from tests.scripted_upstream import CUT, Answer, Cut, Garbage, Hangup, Json, Received, ScriptedUpstream, Sse, Stall, Window, event

LONG_S = 30.0
SHORT_S = 0.05


def words(text: str) -> int:
    return len(text.split())


def call(
    url: str,
    body: Any = None,
    *,
    method: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    first_byte_s: float = LONG_S,
    idle_s: float = LONG_S,
) -> Call:
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    return Call(method or ("GET" if body is None else "POST"), url, headers, data, first_byte_s, idle_s)


def chat(*texts: str, **more: Any) -> dict[str, Any]:
    return {"model": "demo", "messages": [{"role": "user", "content": text} for text in texts], **more}


async def whole(response: Response) -> bytes:
    try:
        return b"".join([part async for part in response.chunks()])
    finally:
        await response.close()


@pytest.fixture
async def http() -> AsyncIterator[HttpUpstream]:
    upstream = HttpUpstream()
    yield upstream
    await upstream.close()


# --- the contract -------------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["http", "demo"])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Upstream, str]]:
    """An upstream and the base URL under which it serves the models `demo` and `demo-small`."""
    if request.param == "demo":
        demo = open_upstream("demo", count_tokens=words)
        yield demo, "demo"
        await demo.close()
        return
    script = Window(8192, then=Answer("an answer of some words"), strict=True)
    async with ScriptedUpstream(script, models={"demo": 8192, "demo-small": None}) as server:
        upstream = open_upstream(server.url, count_tokens=words)
        yield upstream, server.url
        await upstream.close()


async def test_models_are_listed_with_their_windows(served: tuple[Upstream, str]) -> None:
    upstream, base = served
    response = await upstream.send(call(join_url(base, "/v1/models")))
    assert response.status == 200
    listed = json.loads(await whole(response))
    assert {row["id"]: row.get("context_length") for row in listed["data"]} == {"demo": 8192, "demo-small": None}


async def test_a_whole_answer_has_one_choice_and_its_usage(served: tuple[Upstream, str]) -> None:
    upstream, base = served
    response = await upstream.send(call(join_url(base, "/v1/chat/completions"), chat("hello there")))
    assert (response.status, response.reason) == (200, "OK")
    assert {k.lower(): v for k, v in response.headers}["content-type"].startswith("application/json")
    answer = json.loads(await whole(response))
    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]


async def test_a_stream_comes_in_several_chunks_and_says_the_same_as_a_whole_answer(served: tuple[Upstream, str]) -> None:
    upstream, base = served
    url = join_url(base, "/chat/completions")
    one = json.loads(await whole(await upstream.send(call(url, chat("hello there my friend, how are you")))))
    body = chat("hello there my friend, how are you", stream=True, stream_options={"include_usage": True})
    response = await upstream.send(call(url, body))
    assert {k.lower(): v for k, v in response.headers}["content-type"].startswith("text/event-stream")
    raw = await whole(response)
    assert raw.endswith(b"data: [DONE]\n\n")
    events = [json.loads(line[6:]) for line in raw.decode().split("\n\n")[:-2]]
    deltas = [e["choices"][0]["delta"].get("content") or "" for e in events if e["choices"]]
    assert len([d for d in deltas if d]) > 1
    assert "".join(deltas) == one["choices"][0]["message"]["content"]
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert events[-2]["choices"][0]["finish_reason"] == one["choices"][0]["finish_reason"]
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["completion_tokens"] == one["usage"]["completion_tokens"]


async def test_usage_comes_in_a_stream_only_when_asked_for(served: tuple[Upstream, str]) -> None:
    upstream, base = served
    raw = await whole(await upstream.send(call(join_url(base, "/v1/chat/completions"), chat("hello", stream=True))))
    assert b'"usage"' not in raw


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_over_the_window_is_refused_as_openai_does_it(served: tuple[Upstream, str], stream: bool) -> None:
    upstream, base = served
    body = chat(*["word " * 3000] * 4, stream=stream)
    response = await upstream.send(call(join_url(base, "/v1/chat/completions"), body))
    assert response.status == 400
    error = json.loads(await whole(response))["error"]
    assert error["code"] == "context_length_exceeded"
    assert error["message"].startswith("This model's maximum context length is 8192 tokens. However, your messages resulted in ")


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c1", "content": "y"}],
        [{"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}],
        [],
    ],
)
async def test_a_list_that_is_not_valid_is_refused(served: tuple[Upstream, str], messages: list[Any]) -> None:
    upstream, base = served
    response = await upstream.send(call(join_url(base, "/v1/chat/completions"), {"model": "demo", "messages": messages}))
    assert response.status == 400
    assert json.loads(await whole(response))["error"]["type"] == "invalid_request_error"


async def test_a_body_may_be_streamed_up(served: tuple[Upstream, str]) -> None:
    upstream, base = served
    raw = json.dumps(chat("hello")).encode()

    async def pieces() -> AsyncIterator[bytes]:
        yield raw[:10]
        yield raw[10:]

    response = await upstream.send(call(join_url(base, "/v1/chat/completions"), pieces()))
    assert response.status == 200
    assert json.loads(await whole(response))["choices"]


async def test_closing_an_answer_early_and_twice_is_fine_and_the_next_call_works(served: tuple[Upstream, str]) -> None:
    upstream, base = served
    url = join_url(base, "/v1/chat/completions")
    response = await upstream.send(call(url, chat("one two three four five six seven", stream=True)))
    async for _ in response.chunks():
        break
    await response.close()
    await response.close()
    assert (await whole(await upstream.send(call(url, chat("again"))))).startswith(b"{")


# --- bytes up and down --------------------------------------------------------------------------------------------------------------


async def test_the_server_sees_the_clients_headers_and_no_others(http: HttpUpstream) -> None:
    sent = (("X-One", "1"), ("x-one", "2"), ("Accept", "a/b"), ("Cookie", "k=v"), ("Content-Type", "application/json; x=1"))
    async with ScriptedUpstream([Answer("ok"), Json(200, {})]) as server:
        await whole(await http.send(call(server.url, chat("hi"), headers=sent)))
        await whole(await http.send(call(server.url + "/v1/files")))
        length = str(len(server.calls[0].body))
        assert server.calls[0].headers == (("Host", server.url[7:]), *sent, ("Content-Length", length))
        assert server.calls[1].headers == (("Host", server.url[7:]),)


async def test_a_length_that_the_client_gave_for_another_body_is_replaced(http: HttpUpstream) -> None:
    headers = (("Content-Length", "7"), ("Transfer-Encoding", "chunked"), ("Expect", "100-continue"), ("Host", "elsewhere"))
    async with ScriptedUpstream([Json(200, {})]) as server:
        await whole(await http.send(call(server.url, b"0123456789", headers=headers)))
        assert server.calls[0].body == b"0123456789"
        assert server.calls[0].headers == (("Host", server.url[7:]), ("Content-Length", "10"))


@pytest.mark.parametrize(("method", "length"), [("POST", "0"), ("PUT", "0"), ("GET", None), ("DELETE", "0"), ("HEAD", None)])
async def test_no_body_is_sent_as_no_body(http: HttpUpstream, method: str, length: str | None) -> None:
    async with ScriptedUpstream([Json(200, b"")]) as server:
        await whole(await http.send(call(server.url, None, method=method)))
        assert (server.calls[0].method, server.calls[0].body, server.calls[0].header("content-length")) == (method, b"", length)


@pytest.mark.parametrize(
    "target",
    ["/v1/files/a%2Fb/../c;d=1/%E4%BD%A0?x=%20+&&y=/v1/?z", "/v1//models/./x", "/v1/x?q=a%3Db&q=%zz", "/v1/a%20b", "/v1/x?a=b%26c#"],
)
async def test_path_and_query_bytes_are_unchanged(http: HttpUpstream, target: str) -> None:
    async with ScriptedUpstream([Json(200, {})]) as server:
        await whole(await http.send(call(join_url(server.url, target))))
        assert server.calls[0].path == target.rstrip("#")


async def test_a_body_streamed_up_is_chunked_or_has_the_length_that_was_declared(http: HttpUpstream) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"defg"

    async with ScriptedUpstream([Json(200, {}), Json(200, {})]) as server:
        await whole(await http.send(call(server.url, body())))
        await whole(await http.send(call(server.url, body(), headers=(("Content-Length", "7"),))))
        first, second = server.calls
        assert (first.body, first.header("transfer-encoding"), first.header("content-length")) == (b"abcdefg", "chunked", None)
        assert (second.body, second.header("transfer-encoding"), second.header("content-length")) == (b"abcdefg", None, "7")


async def test_64_megabytes_go_both_ways(http: HttpUpstream) -> None:
    size = 64 << 20
    piece = bytes(range(256)) * 256

    async def up() -> AsyncIterator[bytes]:
        for _ in range(size // len(piece)):
            yield piece

    def echo(received: Received) -> Json:
        return Json(200, received.body, [("Content-Type", "application/octet-stream")])

    async with ScriptedUpstream(echo) as server:
        for body in (up(), piece * (size // len(piece))):
            response = await http.send(call(server.url, body))
            largest = total = 0
            async for chunk in response.chunks():
                total += len(chunk)
                largest = max(largest, len(chunk))
            assert total == size
            assert largest < size // 16
            server.calls.clear()


async def test_redirects_and_errors_are_answers(http: HttpUpstream) -> None:
    replies = [
        Json(307, {}, [("Location", "http://other.invalid/")]),
        Json(401, {"error": {}}),
        Json(429, {}, [("Retry-After", "7")]),
        Json(529, b""),
    ]
    async with ScriptedUpstream(replies) as server:
        got = [await http.send(call(server.url, chat("x"))) for _ in replies]
        assert [r.status for r in got] == [307, 401, 429, 529]
        assert ("Location", "http://other.invalid/") in got[0].headers
        for response in got:
            await whole(response)


async def test_repeated_and_huge_response_headers_come_through(http: HttpUpstream) -> None:
    headers = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-Big", "y" * 200_000), *[(f"X-{n}", "1") for n in range(500)]]
    async with ScriptedUpstream([Json(200, {}, headers), Json(200, {})]) as server:
        response = await http.send(call(server.url, chat("x")))
        await whole(response)
        assert [v for k, v in response.headers if k == "Set-Cookie"] == ["a=1", "b=2"]
        assert len(dict(response.headers)["X-Big"]) == 200_000
        await whole(await http.send(call(server.url, chat("x"))))
        assert server.calls[1].header("cookie") is None


async def test_compressed_answers_stay_compressed(http: HttpUpstream) -> None:
    packed = gzip.compress(b'{"a":1}')
    async with ScriptedUpstream([Json(200, packed, [("Content-Encoding", "gzip")]), Sse("Hi", encoding="gzip")]) as server:
        assert await whole(await http.send(call(server.url, chat("x")))) == packed
        assert gzip.decompress(await whole(await http.send(call(server.url, chat("x"))))).endswith(b"data: [DONE]\n\n")


async def test_chunks_arrive_as_they_are_sent(http: HttpUpstream) -> None:
    pauses = [asyncio.Event(), asyncio.Event()]
    parts = [b": ping\r\n\r\n", b"data: \xe4\xbd", b"\xa0\n\n"]
    async with ScriptedUpstream([Sse(parts[0], pauses[0], parts[1], pauses[1], parts[2], done=False)]) as server:
        response = await http.send(call(server.url, chat("x", stream=True)))
        seen = []
        async for chunk in response.chunks():
            seen.append(chunk)
            for pause in pauses[len(seen) - 1 : len(seen)]:
                pause.set()
        assert seen == parts


async def test_one_connection_is_kept_for_calls_in_a_row_and_as_many_opened_as_are_needed_at_once(http: HttpUpstream) -> None:
    release = asyncio.Event()
    async with ScriptedUpstream([*[Answer("ok")] * 3, *[Stall(release)] * 150]) as server:
        for _ in range(3):
            await whole(await http.send(call(server.url, chat("x"))))
        assert len({c.connection for c in server.calls}) == 1
        waiting = [asyncio.ensure_future(http.send(call(server.url, chat("x")))) for _ in range(150)]
        await server.call(152)
        release.set()
        for response in await asyncio.gather(*waiting):
            await whole(response)


async def test_user_and_password_of_the_url_are_sent_unless_the_client_has_its_own(http: HttpUpstream) -> None:
    async with ScriptedUpstream([Json(200, {}), Json(200, {})]) as server:
        url = server.url.replace("//", "//me:secret@")
        await whole(await http.send(call(url)))
        await whole(await http.send(call(url, headers=(("authorization", "Bearer k"),))))
        assert server.calls[0].header("authorization") == "Basic bWU6c2VjcmV0"
        assert [v for k, v in server.calls[1].headers if k.lower() == "authorization"] == ["Bearer k"]


# --- faults -------------------------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def deaf_listener() -> Iterator[str]:
    """A listener whose queue is full, so that connecting to it takes for ever."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        address = listening.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for one in fillers:
            one.setblocking(False)
            one.connect_ex(address)
        yield f"http://127.0.0.1:{address[1]}"
        for one in fillers:
            one.close()


async def test_a_refused_connection_names_the_server_and_the_setting(http: HttpUpstream) -> None:
    port = free_port()
    with pytest.raises(
        UpstreamUnreachable, match=rf"upstream http://127\.0\.0\.1:{port}: no connection .*is it running, and is upstream\.base_url right"
    ):
        await http.send(call(f"http://127.0.0.1:{port}/v1/x?key=hunter2"))


async def test_a_name_that_does_not_resolve_is_told() -> None:
    upstream = HttpUpstream(proxies={})
    with pytest.raises(UpstreamUnreachable, match=r"upstream http://nowhere\.invalid: its name does not resolve"):
        await upstream.send(call("http://nowhere.invalid/v1/x"))
    await upstream.close()


async def test_tls_to_a_server_that_speaks_none_is_told(http: HttpUpstream) -> None:
    async with ScriptedUpstream() as server:
        with pytest.raises(UpstreamUnreachable, match=r"TLS failed|no connection"):
            await http.send(call(server.url.replace("http:", "https:")))


async def test_a_connection_that_takes_too_long_names_connect_timeout_s() -> None:
    upstream = HttpUpstream(connect_timeout_s=SHORT_S)
    with deaf_listener() as url, pytest.raises(UpstreamTimeout, match=r"no connection within 0\.05 s \(upstream\.connect_timeout_s\)"):
        await upstream.send(call(url))
    await upstream.close()


async def test_a_connection_that_takes_longer_than_an_answer_may_names_first_byte_timeout_s() -> None:
    upstream = HttpUpstream()
    with deaf_listener() as url, pytest.raises(UpstreamTimeout, match=r"no answer began within 0\.05 s \(upstream\.first_byte_timeout_s\)"):
        await upstream.send(call(url, first_byte_s=SHORT_S))
    await upstream.close()


async def test_an_answer_that_does_not_begin_names_first_byte_timeout_s(http: HttpUpstream) -> None:
    release = asyncio.Event()
    async with ScriptedUpstream([Stall(release)]) as server:
        with pytest.raises(UpstreamTimeout, match=r"no answer began within 0\.05 s \(upstream\.first_byte_timeout_s\)"):
            await http.send(call(server.url, chat("x"), first_byte_s=SHORT_S))
        await server.calls[0].gone.wait()


async def test_an_answer_that_stops_names_idle_timeout_s(http: HttpUpstream) -> None:
    pause = asyncio.Event()
    async with ScriptedUpstream([Sse("Hi", pause)]) as server:
        response = await http.send(call(server.url, chat("x", stream=True), idle_s=SHORT_S))
        with pytest.raises(UpstreamTimeout, match=r"no byte for 0\.05 s within its answer \(upstream\.idle_timeout_s\)"):
            await whole(response)
        await server.calls[0].gone.wait()


async def test_an_answer_that_goes_on_may_take_longer_than_idle_timeout_s(http: HttpUpstream) -> None:
    pauses = [asyncio.Event() for _ in range(6)]
    async with ScriptedUpstream([Sse(*(part for pause in pauses for part in ("a", pause)))]) as server:
        response = await http.send(call(server.url, chat("x", stream=True), idle_s=8 * SHORT_S))
        left, chunks = iter(pauses), response.chunks()
        async for _ in chunks:
            asyncio.get_running_loop().call_later(2 * SHORT_S, next(left, asyncio.Event()).set)
        assert all(pause.is_set() for pause in pauses)


async def test_a_body_that_nobody_reads_on_is_not_watched(http: HttpUpstream) -> None:
    loop, fired = asyncio.get_running_loop(), asyncio.Event()
    pause = asyncio.Event()
    async with ScriptedUpstream([Sse("a", pause, "b")]) as server:
        response = await http.send(call(server.url, chat("x", stream=True), idle_s=SHORT_S))
        chunks = response.chunks()
        await anext(chunks)
        loop.call_later(3 * SHORT_S, fired.set)
        await fired.wait()
        pause.set()
        assert b"b" in b"".join([chunk async for chunk in chunks])


async def test_a_chunk_that_comes_in_the_instant_of_the_time_limit_is_in_time(http: HttpUpstream) -> None:
    pause = asyncio.Event()
    async with ScriptedUpstream([Sse("a", pause, "b")]) as server:
        response = await http.send(call(server.url, chat("x", stream=True), idle_s=LONG_S))
        chunks = response.chunks()
        await anext(chunks)
        reading = asyncio.ensure_future(anext(chunks))
        await asyncio.sleep(0)
        response._watched_since_s = response._waiting_since_s  # whether or not the first chunk was waited for
        response._content.feed_data(b"just in time")
        response._look()  # the time limit of this one is reached before its reader has been woken
        assert await reading == b"just in time"
        pause.set()
        assert b"b" in b"".join([chunk async for chunk in chunks])


async def test_a_reader_that_takes_its_time_is_not_the_upstreams_idleness(http: HttpUpstream) -> None:
    async with ScriptedUpstream([Json(200, b"x" * 3_000_000)]) as server:
        response = await http.send(call(server.url, chat("x"), idle_s=SHORT_S))
        total = 0
        async for chunk in response.chunks():
            if total == 0:
                await asyncio.sleep(3 * SHORT_S)
            total += len(chunk)
        assert total == 3_000_000


async def test_a_sender_that_takes_its_time_is_not_the_upstreams_slowness(http: HttpUpstream) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(3 * SHORT_S)
        yield b"b"

    async with ScriptedUpstream([Json(200, {})]) as server:
        await whole(await http.send(call(server.url, slow(), first_byte_s=2 * SHORT_S)))
        assert server.calls[0].body == b"ab"


async def test_an_error_of_the_bodys_sender_is_raised_as_it_is(http: HttpUpstream) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"abc"
        raise BodyTooLarge("too much")

    async with ScriptedUpstream() as server:
        with pytest.raises(BodyTooLarge, match="too much"):
            await http.send(call(server.url, broken()))


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x02\x00",
        b"HTTP/1.1 banana\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_an_answer_that_is_not_http_is_told(http: HttpUpstream, data: bytes) -> None:
    async with ScriptedUpstream([Garbage(data)]) as server:
        with pytest.raises(UpstreamUnreachable, match=r"its answer is not HTTP/1\.1"):
            await http.send(call(server.url, chat("x")))


@pytest.mark.parametrize("cut", [Cut(), Cut(reset=True), Cut(b"HTTP/1.1 200 OK\r\nContent-Le"), Cut(b"HT", reset=True)])
async def test_a_new_connection_that_breaks_before_the_head_is_told_and_not_tried_again(http: HttpUpstream, cut: Cut) -> None:
    async with ScriptedUpstream([cut]) as server:
        with pytest.raises(UpstreamUnreachable, match=r"closed the connection before it answered|the connection broke before it answered|not HTTP"):
            await http.send(call(server.url, chat("x")))
        assert len(server.calls) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Sse("Hi", CUT),
        Cut(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"),
        Cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
    ],
)
async def test_a_connection_that_breaks_within_the_body_is_told_after_what_came(http: HttpUpstream, reply: Sse | Cut) -> None:
    async with ScriptedUpstream([reply]) as server:
        response = await http.send(call(server.url, chat("x", stream=True)))
        seen = b""
        with pytest.raises(UpstreamUnreachable, match="the connection broke within its answer"):
            async for chunk in response.chunks():
                seen += chunk
        assert seen.startswith((b"data: ", b"a"))
        await response.close()


async def test_an_answer_to_a_body_that_is_not_taken_in_comes_through_and_its_connection_is_not_used_again(http: HttpUpstream) -> None:
    heads, over = [], asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nless")
        await over.wait()
        writer.transport.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for body in (bytes(64 << 20), b"short"):
            response = await http.send(call(url, body))
            assert (response.status, await whole(response)) == (413, b"less")
        assert len(heads) == 2
        await http.close()
        over.set()
        await asyncio.sleep(0)


async def test_heads_that_come_before_the_answers_own_are_no_answers(http: HttpUpstream) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    async with ScriptedUpstream([Garbage(early + early + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")]) as server:
        response = await http.send(call(server.url, chat("x")))
        assert (response.status, await whole(response)) == (200, b"ok")
        assert "Link" not in dict(response.headers)


@pytest.mark.parametrize("url", ["http://", "ftp://api.example/v1", "/v1/models", "http://api.example:port/v1"])
async def test_what_is_no_url_is_told(http: HttpUpstream, url: str) -> None:
    with pytest.raises(UpstreamUnreachable, match=r"not a URL that can be called|cannot be sent"):
        await http.send(call(url))


async def test_no_more_urls_are_remembered_than_are_of_use(http: HttpUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxproxy.upstream.client.MOST_ROUTES", 2)
    async with ScriptedUpstream(Json(200, {})) as server:
        for n in (1, 2, 3, 1):
            await whole(await http.send(call(f"{server.url}/v1/x?{n}")))
        assert [received.path for received in server.calls] == ["/v1/x?1", "/v1/x?2", "/v1/x?3", "/v1/x?1"]
        assert len(http._routes) <= 2


async def test_a_body_that_ends_with_its_connection_is_whole(http: HttpUpstream) -> None:
    async with ScriptedUpstream([Cut(b"HTTP/1.1 200 OK\r\n\r\nall of it")]) as server:
        assert await whole(await http.send(call(server.url, chat("x")))) == b"all of it"


@pytest.mark.parametrize("cut", [Cut(), Cut(reset=True)])
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_kept_connection_that_was_closed_is_replaced_once(http: HttpUpstream, cut: Cut, method: str) -> None:
    async with ScriptedUpstream([Answer("one"), cut, Json(200, {"n": 2})]) as server:
        await whole(await http.send(call(server.url, chat("x"))))
        response = await http.send(call(server.url, chat("y"), method=method))
        assert await whole(response) == b'{"n": 2}'
        assert [c.connection == server.calls[0].connection for c in server.calls] == [True, True, False]
        assert server.calls[1].body == server.calls[2].body


async def test_a_kept_connection_that_was_closed_is_not_replaced_twice(http: HttpUpstream) -> None:
    async with ScriptedUpstream([Answer("one"), Cut(), Cut()]) as server:
        await whole(await http.send(call(server.url, chat("x"))))
        with pytest.raises(UpstreamUnreachable):
            await http.send(call(server.url, chat("y")))
        assert len(server.calls) == 3


async def test_what_a_server_says_unasked_on_a_kept_connection_is_no_answer(http: HttpUpstream) -> None:
    said = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        if not said.is_set():
            await said.wait()
            writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nslow")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for _ in range(2):
            response = await http.send(call(url))
            assert (response.status, await whole(response)) == (200, b"ok")
            said.set()
            await asyncio.sleep(SHORT_S)
        await http.close()


async def test_a_body_that_was_begun_is_not_sent_again(http: HttpUpstream) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"abc"

    async with ScriptedUpstream([Answer("one"), Cut()]) as server:
        await whole(await http.send(call(server.url, chat("x"))))
        with pytest.raises(UpstreamUnreachable):
            await http.send(call(server.url, body()))


async def test_a_server_that_hung_up_after_its_answer_costs_nothing(http: HttpUpstream) -> None:
    async with ScriptedUpstream([Hangup(Json(200, {"n": 1})), Json(200, {"n": 2})]) as server:
        assert await whole(await http.send(call(server.url, chat("x")))) == b'{"n": 1}'
        assert await whole(await http.send(call(server.url, chat("x")))) == b'{"n": 2}'


async def test_closing_an_answer_cancels_the_upstreams_work(http: HttpUpstream) -> None:
    pause = asyncio.Event()
    async with ScriptedUpstream([Sse("Hi", pause)]) as server:
        response = await http.send(call(server.url, chat("x", stream=True)))
        async for _ in response.chunks():
            break
        await response.close()
        await server.calls[0].gone.wait()


async def test_cancelling_a_call_cancels_the_upstreams_work(http: HttpUpstream) -> None:
    release = asyncio.Event()
    async with ScriptedUpstream([Stall(release)]) as server:
        task = asyncio.ensure_future(http.send(call(server.url, chat("x"))))
        received = await server.call(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await received.gone.wait()


async def test_nothing_secret_is_in_an_error(http: HttpUpstream) -> None:
    url = f"http://me:hunter2@127.0.0.1:{free_port()}/v1/x?key=hunter2"
    with pytest.raises(UpstreamUnreachable) as caught:
        await http.send(call(url, headers=(("X-Key", "hunter2"),)))
    assert "hunter2" not in caught.value.message


async def test_a_closed_upstream_has_no_connection_left() -> None:
    upstream = HttpUpstream()
    async with ScriptedUpstream([Sse(event("x"), asyncio.Event())]) as server:
        response = await upstream.send(call(server.url, chat("x", stream=True)))
        await upstream.close()
        await server.calls[0].gone.wait()
        with pytest.raises(UpstreamUnreachable):
            await whole(response)


# --- proxies ------------------------------------------------------------------------------------------------------------------------

PROXIES = {"http": "http://proxy:3128", "https": "proxy:3129", "no": "internal.example, .corp.example,10.0.0.7"}


@pytest.mark.parametrize(
    ("url", "proxies", "expected"),
    [
        ("http://api.example/v1", PROXIES, "http://proxy:3128"),
        ("https://api.example/v1", PROXIES, "http://proxy:3129"),
        ("https://api.example/v1", {}, None),
        ("https://api.example/v1", {"all": "http://p:1"}, "http://p:1"),
        ("https://internal.example/v1", PROXIES, None),
        ("https://a.internal.example/v1", PROXIES, None),
        ("https://notinternal.example/v1", PROXIES, "http://proxy:3129"),
        ("https://x.corp.example/v1", PROXIES, None),
        ("http://10.0.0.7:8000/v1", PROXIES, None),
        ("http://10.0.0.8:8000/v1", PROXIES, "http://proxy:3128"),
        ("http://api.example/v1", {"http": "p:1", "no": "*"}, None),
        ("http://127.0.0.1:8000/v1", PROXIES, None),
        ("http://127.8.9.1/v1", PROXIES, None),
        ("http://[::1]:8000/v1", PROXIES, None),
        ("http://localhost/v1", PROXIES, None),
        ("http://my.localhost/v1", PROXIES, None),
    ],
)
def test_a_proxy_is_used_as_curl_would_but_never_for_loopback(url: str, proxies: dict[str, str], expected: str | None) -> None:
    assert proxy_for(URL(url), proxies) == expected


async def test_calls_go_through_the_proxy_that_is_named() -> None:
    async with ScriptedUpstream([Json(200, {})]) as server:
        upstream = HttpUpstream(proxies={"http": server.url})
        await whole(await upstream.send(call("http://api.invalid/v1/x?a=1")))
        assert server.calls[0].path == "http://api.invalid/v1/x?a=1"
        assert server.calls[0].header("host") == "api.invalid"
        await upstream.close()


async def test_the_proxys_own_credential_is_sent_with_each_call_and_its_connection_is_kept() -> None:
    async with ScriptedUpstream([Json(200, {}), Json(200, {})]) as server:
        upstream = HttpUpstream(proxies={"http": server.url.replace("//", "//me:secret@")})
        for user in ("", "you:hidden@"):
            await whole(await upstream.send(call(f"http://{user}api.invalid/v1/x")))
        assert [received.path for received in server.calls] == ["http://api.invalid/v1/x"] * 2
        assert [received.header("proxy-authorization") for received in server.calls] == ["Basic bWU6c2VjcmV0"] * 2
        assert [received.header("authorization") for received in server.calls] == [None, "Basic eW91OmhpZGRlbg=="]
        assert len({received.connection for received in server.calls}) == 1
        await upstream.close()


async def test_a_proxy_that_refuses_or_is_not_there_is_told() -> None:
    async with ScriptedUpstream([Json(407, {})]) as server:
        upstream = HttpUpstream(proxies={"https": server.url, "http": f"http://127.0.0.1:{free_port()}"})
        with pytest.raises(UpstreamUnreachable, match="the proxy named in the environment cannot be reached"):
            await upstream.send(call("http://api.invalid/v1"))
        server.calls.clear()
        with pytest.raises(UpstreamUnreachable, match="the proxy named in the environment refuses"):
            await upstream.send(call("https://api.invalid/v1"))
        await upstream.close()


# --- opening ------------------------------------------------------------------------------------------------------------------------


def test_a_base_url_opens_the_upstream_that_it_names() -> None:
    assert isinstance(open_upstream("demo", count_tokens=words), DemoUpstream)
    assert isinstance(open_upstream("https://api.example/v1", count_tokens=words), HttpUpstream)
    with pytest.raises(ConfigError):
        open_upstream("api.example", count_tokens=words)
