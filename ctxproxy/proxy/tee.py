"""Relays an answer to the client as it comes, and lets `settle` run before the byte that ends it leaves.

Never re-encodes, never buffers more than one chunk; back-pressure both ways. Only where the client is to read its own size in `usage`
are those figures others, and the content coding is undone. Whoever sees the end of an answer may ask again at
once, perhaps another replica: so what is to be kept is kept before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from ctxproxy.core import headers, jsontext
from ctxproxy.core.usage_report import Logical
from ctxproxy.errors import CtxproxyError, UpstreamTimeout
from ctxproxy.ports import Response
from ctxproxy.proxy.attempt import Refused, Whole
from ctxproxy.proxy.middleware import Relayed, RelayedWhole
from ctxproxy.proxy.streams import Stream, header
from ctxproxy.proxy.usage_shown import OF_OTHER_BYTES, raised_body, raised_stream

Settle = Callable[[bool], Awaitable[None]]
"""Called once with whether the answer is whole."""


def start(response: Response, ours: Sequence[tuple[str, str]], *, stream: bool, changed: bool = False) -> web.StreamResponse:
    """The client's response with the upstream's status and headers and, of ours, those that it has not set itself."""
    theirs = headers.response_headers(response.headers, OF_OTHER_BYTES if changed else (), drop_length=changed or not stream)
    answer = (Relayed if stream else RelayedWhole)(response.status, response.reason, theirs, ours)
    if stream:
        answer.headers.setdefault("X-Accel-Buffering", "no")  # nginx would hold the events back
    return answer


async def relay_whole(
    request: web.Request, got: Whole | Refused, ours: Sequence[tuple[str, str]], settle: Settle, size: Logical | None = None
) -> web.StreamResponse:
    """Send a body that is there as a whole, byte for byte but for its `usage` where that is raised to `size`, once it is settled."""
    await settle(True)
    shown = raised_body(got, size)
    answer = start(got.response, ours, stream=False, changed=shown is not None)
    body = got.body if shown is None else shown
    answer.content_length = len(body)
    await answer.prepare(request)
    await answer.write(body)
    await answer.write_eof()
    return answer


async def relay_stream(
    request: web.Request, stream: Stream, ours: Sequence[tuple[str, str]], settle: Settle, size: Logical | None = None
) -> web.StreamResponse:
    """Send a stream chunk by chunk, its `usage` raised to `size` if there is one; the chunk that ends it waits until it is settled.

    A stream that breaks off upstream breaks off downstream: no end is made up. Raises ConnectionResetError if the client is gone.
    """
    shown = raised_stream(stream, size)
    answer = start(stream.response, ours, stream=True, changed=shown is not None)
    await answer.prepare(request)
    settled = stream.assembler.done
    if settled:
        await settle(True)
    try:
        for chunk in stream.held:
            await answer.write(shown.feed(chunk) if shown else chunk)
        stream.held.clear()
        async for chunk in stream.pump.rest():
            if stream.watch(chunk) and not settled:
                settled = True
                await settle(True)
            await answer.write(shown.feed(chunk) if shown else chunk)
    except CtxproxyError as error:
        await answer.write(shown.finish() if shown else b"")
        await _broken_off(request, answer, stream, error)
        return answer
    if not settled:
        stream.end()
        await settle(True)
    await answer.write(shown.finish() if shown else b"")
    await answer.write_eof()
    return answer


async def _broken_off(request: web.Request, answer: web.StreamResponse, stream: Stream, error: CtxproxyError) -> None:
    """Let the client see that the answer is not whole: an error event where it was our time limit, then a broken connection."""
    if isinstance(error, UpstreamTimeout) and not header(stream.response, "Content-Encoding"):
        await answer.write(b"\n\ndata: " + jsontext.encode(error.as_body()) + b"\n\n")
    if request.transport is not None:
        request.transport.abort()
