"""The upstream call of a request that surely fits, begun while its tokens are still being counted: nobody waits for the count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ctxproxy.errors import CtxproxyError
from ctxproxy.ports import Response
from ctxproxy.proxy.tasks import Tasks


class EarlyCall:
    """A call that may be begun once and whose response may be taken once."""

    def __init__(self, tasks: Tasks, send: Callable[[], Awaitable[Response]]) -> None:
        self._tasks = tasks
        self._send = send
        self._sending: asyncio.Task[Response | CtxproxyError] | None = None

    def begin(self) -> None:
        """Send now; an error waits for whoever takes the response."""
        self._sending = self._tasks.start(self._sent(), "early call")

    async def _sent(self) -> Response | CtxproxyError:
        try:
            return await self._send()
        except CtxproxyError as error:
            return error

    async def response(self) -> Response:
        """The response of the call that was begun, or else of one that is sent now; raises UpstreamUnreachable or UpstreamTimeout."""
        if self._sending is None:
            return await self._send()
        got = await self._sending
        self._sending = None
        if isinstance(got, CtxproxyError):
            raise got
        return got

    def drop(self) -> None:
        """Give up a call that was begun and that nobody has taken."""
        if self._sending is not None:
            self._sending.cancel()
            self._tasks.start(_closed(self._sending), "drop an early call")
            self._sending = None


async def _closed(sending: asyncio.Task[Response | CtxproxyError]) -> None:
    await asyncio.wait([sending])
    if not sending.cancelled() and not isinstance(got := sending.result(), CtxproxyError):
        await got.close()
