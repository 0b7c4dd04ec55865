"""A real upstream on 127.0.0.1 whose behaviour is a script; what reaches it is kept, byte for byte.

    async with ScriptedUpstream([Overflow(4000, requested=5000), Answer("hello")]) as upstream:
        ...                                     # point the proxy at upstream.url (or upstream.url + "/v1")
    assert len(upstream.calls) == 2
    assert upstream.calls[1].json["messages"][-1] == {"role": "user", "content": "hi"}

The script is a list of replies (one per call, in order of arrival), one reply (for every call), or a function from the
`Received` call to a reply, plain or async. A call that the list has no reply for is answered with 500 and fails the test at
the end of the `async with`. `GET …/models` does not use the script up: it lists `models` (name → window or None) and is kept in
`probes`, not in `calls`; with `models=None` the script answers it, too.

Replies:
    Answer("text", tool_calls=[tool_call("c1", "ls", {})])   as asked for: SSE with "stream": true, else JSON; usage right
    Json(200, {...}, headers=[("X-A", "1")])                 any status and body (bytes: as they are)
    Sse("Hel", "lo", pause, {"choices": []}, b": raw\\n\\n", CUT)   parts written one by one:
        str: a content delta; dict: a JSON event; bytes: as they are; asyncio.Event: waits until it is set; CUT: breaks off
    Overflow(limit, requested=n)                             OpenAI's 400 context_length_exceeded
    Window(4000)                                             counts, refuses what is longer or not valid, else answers
    Stall(release, then=Answer("late"))                      nothing, not even a head, until the asyncio.Event is set
    Garbage(b"SSH-2.0-x\\r\\n")                               these bytes instead of HTTP, then the connection is closed
    Cut(b"HTTP/1.1 200 OK\\r\\nContent-Le", reset=True)       these bytes (none: b""), then closed or reset
    Hangup(Json(...))                                        the reply, and the connection is closed behind it, without a word

No sleeping: `call = await upstream.call(0)` waits for the first call, `await call.gone.wait()` until its client has left
before the end of the answer, `await call.done.wait()` until the answer is out.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import struct
import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from aiohttp import web

from tests.scripted_replies import (
    CUT,
    Answer,
    Cut,
    Garbage,
    Hangup,
    Json,
    Overflow,
    Received,
    Reply,
    Script,
    Sse,
    Stall,
    Window,
    chunk,
    completion,
    error_body,
    event,
    gzipped,
    rough_tokens,
    tool_call,
)

__all__ = [
    "CUT",
    "Answer",
    "Cut",
    "Garbage",
    "Hangup",
    "Json",
    "Overflow",
    "Received",
    "Reply",
    "Script",
    "ScriptedUpstream",
    "Sse",
    "Stall",
    "Window",
    "chunk",
    "completion",
    "error_body",
    "event",
    "gzipped",
    "rough_tokens",
    "tool_call",
]


class ScriptedUpstream:
    """See the module's first lines."""

    def __init__(
        self, script: Script = (), *, models: Mapping[str, int | None] | None = MappingProxyType({}), host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.calls: list[Received] = []
        self.probes: list[Received] = []
        self.faults: list[str] = []
        """Calls without a reply and errors of the script: they fail the test at its end."""
        self.url = ""
        self.script = script
        """May be replaced at any time; a list is used up from its front."""
        self._models = models
        self._host, self._port = host, port
        self._arrived = asyncio.Condition()
        self._used = 0
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> ScriptedUpstream:
        server = web.Server(
            self._handle,
            auto_decompress=False,
            handler_cancellation=True,
            access_log=None,
            lingering_time=0,
            max_line_size=1 << 20,
            max_field_size=1 << 20,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, backlog=1024)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://{self._host}:{self._port}"
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await self.stop()
        if kind is None and self.faults:
            raise AssertionError("; ".join(self.faults))

    async def stop(self) -> None:
        """Close the listener and all connections; further calls are refused."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def call(self, number: int) -> Received:
        """The call with this number (from 0), as soon as it is there."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.calls) > number)
        return self.calls[number]

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = tuple((k.decode("latin-1"), v.decode("utf-8", "surrogateescape")) for k, v in request.raw_headers)
        call = Received(request.method, request.raw_path, headers, await _body(request), connection=id(request.transport))
        probe = self._models is not None and request.method == "GET" and request.path.endswith("/models")
        (self.probes if probe else self.calls).append(call)
        async with self._arrived:
            self._arrived.notify_all()
        try:
            reply = Json(200, self._listing()) if probe else await self._next(call)
            response = await _Writer(request).write(reply, call)
        except (asyncio.CancelledError, ConnectionError):
            call.gone.set()
            raise
        except Exception as error:
            self.faults.append(f"{call.method} {call.path}: {error!r}")
            raise
        call.done.set()
        return response

    async def _next(self, call: Received) -> Reply:
        if callable(self.script):
            reply = self.script(call)
            return await reply if inspect.isawaitable(reply) else reply
        if not isinstance(self.script, Sequence):
            return self.script
        if self._used >= len(self.script):
            self.faults.append(f"the script had no reply for {call.method} {call.path}")
            return Json(500, error_body(f"the script has no reply for call {len(self.calls)}", type="server_error"))
        self._used += 1
        return self.script[self._used - 1]

    def _listing(self) -> dict[str, Any]:
        return {"object": "list", "data": [_model(name, window) for name, window in (self._models or {}).items()]}


def _model(name: str, window: int | None) -> dict[str, Any]:
    row = {"id": name, "object": "model", "created": 1, "owned_by": "test"}
    return row if window is None else {**row, "context_length": window}


async def _body(request: web.BaseRequest) -> bytes:
    return b"".join([part async for part in request.content.iter_any()])


class _Writer:
    """Writes one reply."""

    def __init__(self, request: web.BaseRequest) -> None:
        self.request = request

    async def write(self, reply: Reply, call: Received) -> web.StreamResponse:
        match reply:
            case Answer():
                return await self.write(reply.as_asked(call), call)
            case Overflow():
                return await self.write(reply.refusal(), call)
            case Stall():
                await reply.release.wait()
                return await self.write(reply.then, call)
            case Json():
                return self._json(reply)
            case Hangup():
                return await self._hang_up(reply)
            case Sse():
                return await self._sse(reply)
            case Garbage():
                return await self._break(reply.data, reset=False)
            case Cut():
                return await self._break(reply.data, reset=reply.reset)
        raise TypeError(f"{reply!r} is no reply")

    def _json(self, reply: Json) -> web.Response:
        response = web.Response(status=reply.status, body=reply.encoded())
        if not any(k.lower() == "content-type" for k, _ in reply.headers):
            response.content_type = "application/json"
        for name, value in reply.headers:
            response.headers.add(name, value)
        return response

    async def _hang_up(self, hangup: Hangup) -> web.StreamResponse:
        body = hangup.reply.encoded()
        head = f"HTTP/1.1 {hangup.reply.status} Scripted\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return await self._break(head.encode() + body, reset=False)

    async def _sse(self, reply: Sse) -> web.StreamResponse:
        response = web.StreamResponse(status=reply.status, headers={"Content-Type": "text/event-stream"})
        if reply.encoding:
            response.headers["Content-Encoding"] = reply.encoding
        for name, value in reply.headers:
            response.headers[name] = value
        await response.prepare(self.request)
        packer = zlib.compressobj(wbits=31 if reply.encoding == "gzip" else 15)
        for part in reply.pieces():
            if isinstance(part, asyncio.Event):
                await part.wait()
            elif isinstance(part, bytes):
                await response.write(packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) if reply.encoding else part)
            else:
                return await self._break(b"", reset=False)
        if reply.encoding:
            await response.write(packer.flush())
        await response.write_eof()
        return response

    async def _break(self, data: bytes, *, reset: bool) -> web.StreamResponse:
        """Write raw bytes and end the connection: cleanly (FIN), or with a reset (RST)."""
        transport = self.request.transport
        if transport is not None:
            transport.write(data)
            if reset:
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                transport.abort()
            else:
                transport.close()
        await asyncio.Event().wait()  # cancelled by the server as the connection is lost
        raise AssertionError("not reached")
