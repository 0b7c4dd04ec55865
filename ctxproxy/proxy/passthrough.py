"""Everything that is not a chat completion: forwarded byte for byte, streamed both ways, never buffered whole."""

from __future__ import annotations

from aiohttp import web

from ctxproxy.core import headers
from ctxproxy.ports import Response
from ctxproxy.proxy.attempt import plain_body
from ctxproxy.proxy.identify import target_for
from ctxproxy.proxy.listing import LISTING_BYTES
from ctxproxy.proxy.middleware import Relayed
from ctxproxy.proxy.outgoing import call_for
from ctxproxy.proxy.state import State


async def forward(state: State, request: web.Request, body: bytes | None = None, *, model: str = "", reencoded: bool = False) -> web.StreamResponse:
    """Forward a request as it is (or with a body that was read already) and relay the answer as it comes; `reencoded` as in `call_for`."""
    settings = state.settings()
    target = target_for(settings, model)
    sent = body if body is not None else request.content.iter_any() if request.body_exists else None
    call = call_for(request, target, settings, sent, reencoded=reencoded)
    response = await state.upstream(target.base_url).send(call)
    try:
        state.metrics.upstream_calls.labels("passthrough", str(response.status)).inc()
        listing = request.method == "GET" and request.path.rstrip("/").endswith("/models") and response.status == 200
        return await _relay(request, response, state if listing else None, target.origin)
    finally:
        await response.close()


async def _relay(request: web.Request, response: Response, learner: State | None, origin: str) -> web.StreamResponse:
    answer = Relayed(response.status, response.reason, headers.response_headers(response.headers, drop_length=False))
    await answer.prepare(request)
    seen = bytearray()
    async for chunk in response.chunks():
        if learner is not None and len(seen) < LISTING_BYTES:
            seen += chunk
        await answer.write(chunk)
    if learner is not None:
        await learner.windows.listed(origin, plain_body(response, bytes(seen)))
    await answer.write_eof()
    return answer
