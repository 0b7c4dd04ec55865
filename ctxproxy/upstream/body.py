"""The body of an answer as it comes, with a time limit for each silence.

One timer watches a whole body: when it fires it looks how long the upstream has been waited for, and waits for the rest.
A time limit of its own for each chunk would cost as much as relaying that chunk.
"""

from __future__ import annotations

import asyncio

import aiohttp

from ctxproxy.upstream.faults import within_the_body


class Body:
    """The raw chunks of one response; only time spent waiting for the upstream counts as idle, not time that the reader takes."""

    def __init__(self, raw: aiohttp.ClientResponse, idle_timeout_s: float) -> None:
        self._raw = raw
        self._content = raw.content
        self._idle_timeout_s = idle_timeout_s
        self._loop = asyncio.get_running_loop()
        self._waiting_since_s: float | None = None
        self._watched_since_s = 0.0
        self._watch: asyncio.Handle | None = None

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        content = self._content
        while not content.at_eof():
            try:
                chunk = content.read_nowait() or await self._waited_for()
            except (aiohttp.ClientError, OSError, RuntimeError) as error:  # RuntimeError: read on after `close`
                self.close()
                raise within_the_body(error, self._raw.url, idle_s=self._idle_timeout_s) from error
            if chunk:
                return chunk
        self._stop_watching()
        raise StopAsyncIteration

    async def _waited_for(self) -> bytes:
        now = self._waiting_since_s = self._loop.time()
        if self._watch is None:
            self._watch_from(now)
        try:
            return await self._content.readany()
        finally:
            self._waiting_since_s = None

    def close(self) -> None:
        """Give up the connection if the body is not at its end; else nothing."""
        self._stop_watching()
        self._raw.close()

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
            self._watch = self._loop.call_soon(self._give_up, since_s)  # whom a chunk has woken in the same instant comes first

    def _give_up(self, since_s: float) -> None:
        if since_s == self._waiting_since_s:
            self._content.set_exception(TimeoutError())
        else:
            self._look()

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
