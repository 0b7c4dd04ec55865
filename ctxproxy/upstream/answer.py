"""An answer over HTTP from its head on: its body as it comes, with a time limit for each silence, and what becomes of its connection.

One timer watches a whole body: when it fires it looks how long the upstream has been waited for, and waits for the rest.
A time limit of its own for each chunk would cost as much as relaying that chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import StreamReader
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage
from yarl import URL

from ctxproxy.ports import Headers
from ctxproxy.upstream.faults import within_the_body


class HttpResponse:
    """An answer whose body still comes; must be read to its end or closed.

    Iterating over it gives the body's raw chunks; only time spent waiting for the upstream counts as idle, not time that the reader takes.
    """

    def __init__(
        self,
        head: RawResponseMessage,
        content: StreamReader,
        connection: Connection,
        writing: asyncio.Task[None] | None,
        url: URL,
        idle_timeout_s: float,
    ) -> None:
        self.status: int = head.code
        self.reason: str = head.reason or ""
        self.headers: Headers = list(head.headers.items())
        """All headers as they came, hop-by-hop ones included."""
        self._content = content
        self._connection: Connection | None = connection
        self._writing = writing
        self._url = url
        self._idle_timeout_s = idle_timeout_s
        self._loop = asyncio.get_running_loop()
        self._waiting_since_s: float | None = None
        self._watched_since_s = 0.0
        self._watch: asyncio.Handle | None = None
        content.on_eof(self._ended)

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        return self

    def __aiter__(self) -> HttpResponse:
        return self

    async def __anext__(self) -> bytes:
        content = self._content
        while not content.at_eof():
            try:
                chunk = content.read_nowait() or await self._waited_for()
            except (aiohttp.ClientError, HttpProcessingError, OSError, RuntimeError) as error:  # RuntimeError: read on after `close`
                self._give_up()
                raise within_the_body(error, self._url, idle_s=self._idle_timeout_s) from error
            if chunk:
                return chunk
        self._stop_watching()
        raise StopAsyncIteration

    async def close(self) -> None:
        """Give up the connection if the body is not at its end; else nothing."""
        self._give_up()

    def _give_up(self) -> None:
        self._stop_watching()
        if self._connection is not None:
            if self._content.exception() is None:
                self._content.set_exception(aiohttp.ClientConnectionError("Connection closed"))
            self._let_go(keep=False)

    def _ended(self) -> None:
        """All of the body is there; a connection that still takes in the request's body cannot be used for the next."""
        self._let_go(keep=self._writing is None or self._writing.done())

    def _let_go(self, *, keep: bool) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if keep:
            connection.release()
            return
        if self._writing is not None:
            self._writing.cancel()
        connection.close()

    async def _waited_for(self) -> bytes:
        now = self._waiting_since_s = self._loop.time()
        if self._watch is None:
            self._watch_from(now)
        try:
            return await self._content.readany()
        finally:
            self._waiting_since_s = None

    def _watch_from(self, since_s: float) -> None:
        self._watched_since_s = since_s
        self._watch = self._loop.call_at(since_s + self._idle_timeout_s, self._look)

    def _look(self) -> None:
        since_s, self._watch = self._waiting_since_s, None
        if since_s is None:
            return  # the next wait is watched anew
        if since_s > self._watched_since_s:
            self._watch_from(since_s)
        else:
            self._watch = self._loop.call_soon(self._time_is_up, since_s)  # whom a chunk has woken in the same instant comes first

    def _time_is_up(self, since_s: float) -> None:
        if since_s == self._waiting_since_s:
            self._content.set_exception(TimeoutError())
        else:
            self._look()

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
