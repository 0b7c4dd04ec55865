"""Sends calls over HTTP/1.1 with aiohttp, adding nothing to them and taking nothing from the answers.

Knows nothing of chat completions; what the library raises is turned into our errors in `faults`.
"""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from ctxproxy.ports import Call, Headers
from ctxproxy.upstream.body import Body
from ctxproxy.upstream.faults import before_the_head
from ctxproxy.upstream.proxies import proxy_for

KEEPALIVE_S = 60.0
HEAD_LIMIT_BYTES = 1 << 20
"""Longest status line and header line of an answer; aiohttp's own 8 KB is less than some gateways send."""
HEADER_LIMIT = 2000
WRITE_BYTES = 256 * 1024
"""Slice of a body that is handed over at once: the rest waits for the socket instead of being copied into the transport."""
STALE_WITHIN_S = 5.0
"""A kept connection that its server has closed shows at the first write; what breaks later was at work on the request."""
PROBE_IDLE_S = 60
"""First TCP keep-alive probe: routers forget silent connections after about 350 s, a thinking model is silent for longer."""

_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_FRAMING = frozenset({"host", "content-length", "transfer-encoding", "expect"})
"""Headers that are made anew from the URL and the body."""
_CLOSED = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientConnectionResetError)


class HttpUpstream:
    """An upstream over HTTP: one pool of kept connections for all hosts, no limit of their number.

    Sends through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name, as curl does, but never to a loopback address through one;
    `proxies` (`{"https": "http://host:port", "no": "a.example"}`) replaces them. Reads no .netrc and keeps no cookies. Redirects are answers.
    """

    def __init__(self, *, connect_timeout_s: float = 10.0, proxies: Mapping[str, str] | None = None) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._proxies = dict(urllib.request.getproxies_environment() if proxies is None else proxies)
        self._kept: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    async def send(self, call: Call) -> HttpResponse:
        """The answer once its head is there. An error of the body's own iterator is raised as it is.

        A kept connection that turns out to be closed is replaced by a new one, once, if nothing of the body has been used up.
        """
        if self._kept is None:
            self._kept = self._session(keep=True)
        try:
            return await self._send(self._kept, _Attempt(call))
        except _Stale:
            self._fresh = self._fresh or self._session(keep=False)
            return await self._send(self._fresh, _Attempt(call))

    async def close(self) -> None:
        """Close every connection."""
        for session in (self._kept, self._fresh):
            if session is not None:
                await session.close()

    async def _send(self, session: aiohttp.ClientSession, attempt: _Attempt) -> HttpResponse:
        call = attempt.call
        try:
            _SENDING.set(attempt.connection)
            async with asyncio.timeout(call.first_byte_timeout_s) as attempt.deadline:
                raw = await session.request(
                    call.method,
                    attempt.url,
                    headers=attempt.headers(),
                    data=attempt.body(),
                    allow_redirects=False,
                    proxy=proxy_for(attempt.url, self._proxies),
                )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if attempt.was_stale(error):
                raise _Stale from error
            raise attempt.fault(error, self._connect_timeout_s) from error
        finally:
            attempt.deadline = None
        return HttpResponse(raw, call.idle_timeout_s)

    def _session(self, *, keep: bool) -> aiohttp.ClientSession:
        connector = _Connector(
            limit=0,
            limit_per_host=0,
            socket_factory=_socket,
            **({"keepalive_timeout": KEEPALIVE_S} if keep else {"force_close": True}),
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=_AUTOMATIC,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_timeout_s, sock_read=None),
            max_line_size=HEAD_LIMIT_BYTES,
            max_field_size=HEAD_LIMIT_BYTES,
            max_headers=HEADER_LIMIT,
        )


class HttpResponse:
    """An answer whose body still comes; must be read to its end or closed."""

    def __init__(self, raw: aiohttp.ClientResponse, idle_timeout_s: float) -> None:
        self._raw = raw
        self._body = Body(raw, idle_timeout_s)
        self.headers: Headers = list(raw.headers.items())
        """All headers as they came, hop-by-hop ones included."""

    @property
    def status(self) -> int:
        return self._raw.status

    @property
    def reason(self) -> str:
        return self._raw.reason or ""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes; only time spent waiting for the upstream counts as idle, not time that the reader takes."""
        return self._body

    async def close(self) -> None:
        """Give up the connection if the body is not at its end; else nothing."""
        self._body.close()


class _Stale(Exception):
    """The kept connection had been closed by its server before the request came."""


class _Attempt:
    """One sending of a call, and what became of it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.url = _url(call)
        self.deadline: asyncio.Timeout | None = None
        self.connection = _Connection()
        self.body_begun = False
        self.body_error: Exception | None = None
        self._started_s = asyncio.get_running_loop().time()

    def headers(self) -> CIMultiDict[str]:
        """The call's headers, repeated ones repeated; a streamed body keeps the length that its sender has declared."""
        streamed = not isinstance(self.call.body, bytes | None)
        spelled: dict[str, str] = {}  # one spelling for a repeated name: aiohttp takes the last of "X-A" and "x-a", but all of "X-A"
        headers: CIMultiDict[str] = CIMultiDict()
        for name, value in self.call.headers:
            low = name.lower()
            if low not in _FRAMING or (streamed and low == "content-length"):
                headers.add(spelled.setdefault(low, name), value)
        return headers

    def body(self) -> aiohttp.Payload | AsyncIterator[bytes] | None:
        if isinstance(self.call.body, bytes | None):
            return _Bytes(self.call.body) if self.call.body else None
        return self._streamed(self.call.body)

    def was_stale(self, error: Exception) -> bool:
        """Whether it failed because its kept connection was closed before it; then it may be sent once more (RFC 9112 §9.3.1)."""
        late = asyncio.get_running_loop().time() - self._started_s > STALE_WITHIN_S
        return isinstance(error, _CLOSED) and not self.connection.is_new and not self.body_begun and not late

    def fault(self, error: Exception, connect_timeout_s: float) -> Exception:
        """Our error for one of the library's; an error of the body's own iterator is handed on."""
        if self.body_error is not None:
            return self.body_error
        return before_the_head(error, self.url, connect_s=connect_timeout_s, first_byte_s=self.call.first_byte_timeout_s)

    async def _streamed(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The body's chunks; the time in which the sender of the body is waited for does not count as the upstream's."""
        while True:
            self._reschedule(None)
            self.body_begun = True
            try:
                chunk = await anext(body)
            except StopAsyncIteration:
                return
            except Exception as error:
                self.body_error = error
                raise
            finally:
                self._reschedule(self.call.first_byte_timeout_s)
            yield chunk

    def _reschedule(self, delay_s: float | None) -> None:
        if self.deadline is not None and not self.deadline.expired():
            self.deadline.reschedule(None if delay_s is None else asyncio.get_running_loop().time() + delay_s)


class _Connection:
    """What became of an attempt's wish for a connection."""

    is_new = False
    """It was made for this attempt; else it is a kept one."""


_SENDING: ContextVar[_Connection] = ContextVar("sending")
"""Of the task that asks for a connection; it stays in the task's context, and so must not hold what is sent."""


class _Bytes(aiohttp.Payload):
    """A body in memory that can be sent again, written in slices."""

    _autoclose = True

    def __init__(self, value: bytes) -> None:
        super().__init__(value)
        self._size = len(value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return str(self._value, encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        if len(self._value) <= WRITE_BYTES:
            await writer.write(self._value)
            return
        view = memoryview(self._value)
        for at in range(0, len(view), WRITE_BYTES):
            await writer.write(view[at : at + WRITE_BYTES])


@lru_cache(maxsize=256)
def _parsed(url: str) -> URL:
    return URL(url, encoded=url.isascii())


def _url(call: Call) -> URL:
    url = _parsed(call.url)
    if url.user is not None and any(name.lower() == "authorization" for name, _ in call.headers):
        return url.with_user(None)  # the client's own credential wins, as over `upstream.api_key`
    return url


def _socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_IDLE_S)
    return made


class _Connector(aiohttp.TCPConnector):
    """Notes in the attempt that a connection is made for it: aiohttp's tracing tells the same at ten times the cost."""

    async def _create_connection(self, *values: Any, **named: Any) -> Any:
        _SENDING.get().is_new = True
        return await super()._create_connection(*values, **named)
