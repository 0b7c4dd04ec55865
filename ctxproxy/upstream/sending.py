"""One call on one connection: what is written of it when, until the head of its answer is there.

Takes aiohttp's connections, its writer and its parser, but not its session: that looks up, for each call, cookies, redirects, credentials, traces
and encodings of which there are none here, and writes even a short body in a task of its own, which is half of what a short call costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, StreamWriter
from multidict import CIMultiDict
from yarl import URL

from ctxproxy.ports import Call
from ctxproxy.upstream.answer import HttpResponse
from ctxproxy.upstream.connector import Connector, within
from ctxproxy.upstream.faults import before_the_head
from ctxproxy.upstream.proxies import proxy_for

HEAD_LIMIT_BYTES = 1 << 20
"""Longest status line and header line of an answer; aiohttp's own 8 KB is less than some gateways send."""
HEADER_LIMIT = 2000
WRITE_BYTES = 256 * 1024
"""Slice of a body that is handed over at once: the rest waits for the socket instead of being copied into the transport."""
AT_ONCE_BYTES = 48 * 1024
"""A body that goes out with its head, in one piece: less than a transport takes before it has its writers wait (64 KB)."""
STALE_WITHIN_S = 5.0
"""A kept connection that its server has closed shows at the first write; what breaks later was at work on the request."""

_FRAMING = frozenset({"host", "content-length", "transfer-encoding", "expect"})
"""Headers that are made anew from the URL and the body."""
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that say nothing of a body where there is none; others say that its length is 0 (RFC 9110 §8.6)."""
_CLOSED = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientConnectionResetError)
FAILURES = (aiohttp.ClientError, HttpProcessingError, OSError, ValueError)
"""What aiohttp raises where a call fails."""


@dataclass(frozen=True, slots=True)
class Route:
    """What all calls of one URL have in common."""

    url: URL
    target: str
    """Of the request line: path and query; for a forward proxy that reads the request, the whole URL (RFC 9112 §3.2.2)."""
    host: str
    credential: str | None
    """`Authorization` by the URL's user and password."""
    opening: aiohttp.ClientRequest
    """What tells the connector which connection is wanted."""


def route_to(url: str, proxies: Mapping[str, str]) -> Route:
    """The route of an absolute URL; raises aiohttp.InvalidURL and ValueError where it is none."""
    parsed = URL(url, encoded=url.isascii())
    if parsed.scheme not in ("http", "https") or not parsed.raw_host:
        raise aiohttp.InvalidURL(url)
    proxy = proxy_for(parsed, proxies)
    opening = aiohttp.ClientRequest("GET", parsed, loop=asyncio.get_running_loop(), proxy=URL(proxy) if proxy else None)
    read_by_proxy = proxy is not None and not opening.is_ssl()
    target = str(parsed.with_user(None).with_fragment(None)) if read_by_proxy else parsed.raw_path_qs
    return Route(parsed, target, opening.headers["Host"], opening.headers.get("Authorization"), opening)


class Stale(Exception):
    """The kept connection had been closed by its server before the request came."""


class Sending:
    """One sending of a call, and what became of it."""

    def __init__(self, call: Call, route: Route, connector: Connector) -> None:
        self._call = call
        self._route = route
        self._connector = connector
        self._loop = asyncio.get_running_loop()
        self._started_s = self._loop.time()
        self._protocol: ResponseHandler | None = None
        """While the answer has not begun."""
        self._writing: asyncio.Task[None] | None = None
        self._is_new = True
        self._body_begun = False
        self._body_error: Exception | None = None

    async def answer(self, connect_timeout_s: float) -> HttpResponse:
        """The answer once its head is there; raises Stale, or our error for one of the library's, or that of the body's own iterator."""
        try:
            connection = await self._connected(connect_timeout_s)
            try:
                return await self._answered(connection)
            except BaseException:
                if self._writing is not None:
                    self._writing.cancel()
                connection.close()
                raise
        except FAILURES as error:
            if self._body_error is not None:
                raise self._body_error from error
            if self._was_stale(error):
                raise Stale from error
            first_byte_s = self._call.first_byte_timeout_s
            raise before_the_head(error, self._route.url, connect_s=connect_timeout_s, first_byte_s=first_byte_s) from error
        finally:
            self._set_limit(None)
            self._protocol = None

    async def _connected(self, connect_timeout_s: float) -> Connection:
        """A connection; waiting for it ends with the shorter one of the two time limits."""
        first_byte_s = self._call.first_byte_timeout_s
        try:
            connection = await self._connector.connect(self._route.opening, [], within(min(connect_timeout_s, first_byte_s)))
        except TimeoutError as error:
            if connect_timeout_s > first_byte_s:
                raise
            raise aiohttp.ConnectionTimeoutError from error
        self._protocol = connection.protocol
        self._is_new = self._connector.has_made(self._protocol)
        return connection

    async def _answered(self, connection: Connection) -> HttpResponse:
        protocol = self._protocol
        assert protocol is not None
        if len(protocol):  # an answer that nobody has asked for, as some servers send a 408 before they hang up on a kept connection
            raise aiohttp.ServerDisconnectedError
        protocol.set_response_params(
            skip_payload=self._call.method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            max_line_size=HEAD_LIMIT_BYTES,
            max_field_size=HEAD_LIMIT_BYTES,
            max_headers=HEADER_LIMIT,
        )
        self._set_limit(self._started_s + self._call.first_byte_timeout_s)
        await self._write(StreamWriter(protocol, self._loop), self._headers(closing=self._connector.force_close))
        head, content = await protocol.read()
        while 100 <= head.code < 200 and head.code != 101:
            head, content = await protocol.read()
        return HttpResponse(head, content, connection, self._writing, self._route.url, self._call.idle_timeout_s)

    def _headers(self, *, closing: bool) -> CIMultiDict[str]:
        """The call's headers as they are, and those of the connection; a streamed body keeps the length that its sender has declared."""
        call, route = self._call, self._route
        streamed = not (call.body is None or isinstance(call.body, bytes))
        headers = CIMultiDict(Host=route.host)
        for name, value in call.headers:
            low = name.lower()
            if low not in _FRAMING or (low == "content-length" and streamed):
                headers.add(name, value)
        if route.credential and "Authorization" not in headers:
            headers["Authorization"] = route.credential  # the client's own wins, as over `upstream.api_key`
        if route.opening.proxy and (credential := route.opening.headers.get("Proxy-Authorization")):
            headers["Proxy-Authorization"] = credential
        if call.body is None or isinstance(call.body, bytes):
            if call.body or call.method not in _WITHOUT_BODY:
                headers["Content-Length"] = str(len(call.body or b""))
        elif "Content-Length" not in headers:
            headers["Transfer-Encoding"] = "chunked"
        if closing and "Connection" not in headers:
            headers["Connection"] = "close"
        return headers

    async def _write(self, writer: StreamWriter, headers: CIMultiDict[str]) -> None:
        """Write head and body; a body that may have to wait for the socket in a task, since an answer may come before its end."""
        body = self._call.body
        if "Transfer-Encoding" in headers:
            writer.enable_chunking()
        await writer.write_headers(f"{self._call.method} {self._route.target} HTTP/1.1", headers)
        if body is None or (isinstance(body, bytes) and len(body) <= AT_ONCE_BYTES):
            if body:
                await writer.write(body, drain=False)
            writer.set_eof()
        else:
            writer.length = int(headers["Content-Length"]) if "Content-Length" in headers else None
            pieces = _slices(body) if isinstance(body, bytes) else self._watched(body)
            self._writing = self._loop.create_task(self._write_pieces(writer, pieces))

    async def _write_pieces(self, writer: StreamWriter, pieces: AsyncIterator[bytes | memoryview]) -> None:
        """Write a body; whoever waits for the answer is told of what goes wrong."""
        try:
            async for piece in pieces:
                await writer.write(piece)
            await writer.write_eof()
        except Exception as error:  # noqa: BLE001 - raised where the answer is waited for
            if self._protocol is not None and self._protocol.exception() is None:
                self._protocol.set_exception(error if isinstance(error, FAILURES) else aiohttp.ClientConnectionError(str(error)))

    async def _watched(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """A body's chunks; the time in which the sender of the body is waited for does not count as the upstream's."""
        while True:
            self._set_limit(None)
            self._body_begun = True
            try:
                chunk = await anext(body)
            except StopAsyncIteration:
                return
            except Exception as error:
                self._body_error = error
                raise
            finally:
                self._set_limit(self._loop.time() + self._call.first_byte_timeout_s)
            yield chunk

    def _set_limit(self, at_s: float | None) -> None:
        """Have the answer begin until then on the loop's clock; None for no limit."""
        if at_s is None or self._protocol is None:
            self._connector.limits.lift(self)
        else:
            self._connector.limits.set(self, at_s, self._time_is_up)

    def _time_is_up(self) -> None:
        if self._protocol is not None:
            self._protocol.set_exception(TimeoutError())

    def _was_stale(self, error: Exception) -> bool:
        """Whether it failed because its kept connection was closed before it; then it may be sent once more (RFC 9112 §9.3.1)."""
        late = self._loop.time() - self._started_s > STALE_WITHIN_S
        return isinstance(error, _CLOSED) and not self._is_new and not self._body_begun and not late


async def _slices(body: bytes) -> AsyncIterator[memoryview]:
    view = memoryview(body)
    for at in range(0, len(view), WRITE_BYTES):
        yield view[at : at + WRITE_BYTES]
