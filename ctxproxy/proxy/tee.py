"""Relays an answer to the client as it comes, and lets `settle` run before the byte that ends it leaves.

Never re-encodes, never buffers more than one chunk; back-pressure both ways. Whoever sees the end of an answer may ask again at
once, perhaps another replica: so what is to be kept is kept before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from ctxproxy.core import headers, jsontext
from ctxproxy.errors import CtxproxyError, UpstreamTimeout
from ctxproxy.ports import Response
from ctxproxy.proxy.attempt import Refused, Stream, Whole, header
from ctxproxy.proxy.middleware import Relayed

Settle = Callable[[bool], Awaitable[None]]
"""Called once with whether the answer is whole."""


def start(response: Response, ours: Sequence[tuple[str, str]], *, stream: bool) -> web.StreamResponse:
    """The client's response with the upstream's status and headers and, of ours, those that it has not set itself."""
    answer = Relayed(response.status, response.reason, headers.response_headers(response.headers, drop_length=not stream), ours)
    if stream:
        answer.headers.setdefault("X-Accel-Buffering", "no")  # nginx would hold the events back
    return answer


async def relay_whole(request: web.Request, got: Whole | Refused, ours: Sequence[tuple[str, str]], settle: Settle) -> web.StreamResponse:
    """Send a body that is there as a whole, byte for byte, once it is settled."""
    await settle(True)
    answer = start(got.response, ours, stream=False)
    answer.content_length = len(got.body)
    await answer.prepare(request)
    await answer.write(got.body)
    await answer.write_eof()
    return answer


async def relay_stream(request: web.Request, stream: Stream, ours: Sequence[tuple[str, str]], settle: Settle) -> web.StreamResponse:
    """Send a stream chunk by chunk; the chunk that ends it waits until it is settled.

    A stream that breaks off upstream breaks off downstream: no end is made up. Raises ConnectionResetError if the client is gone.
    """
    answer = start(stream.response, ours, stream=True)
    await answer.prepare(request)
    settled = stream.assembler.done
    if settled:
        await settle(True)
    for chunk in stream.held:
        await answer.write(chunk)
    stream.held.clear()
    try:
        async for chunk in stream.pump.rest():
            stream.feed(chunk)
            if stream.assembler.done and not settled:
                settled = True
                await settle(True)
            await answer.write(chunk)
    except CtxproxyError as error:
        await _broken_off(request, answer, stream, error)
        return answer
    if not settled:
        await settle(True)
    await answer.write_eof()
    return answer


async def _broken_off(request: web.Request, answer: web.StreamResponse, stream: Stream, error: CtxproxyError) -> None:
    """Let the client see that the answer is not whole: an error event where it was our time limit, then a broken connection."""
    if isinstance(error, UpstreamTimeout) and not header(stream.response, "Content-Encoding"):
        await answer.write(b"\n\ndata: " + jsontext.encode(error.as_body()) + b"\n\n")
    if request.transport is not None:
        request.transport.abort()
