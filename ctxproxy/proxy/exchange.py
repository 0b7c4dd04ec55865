"""One chat completion, from the client's bytes to its answer: the only file that orders the I/O between the three decisions.

plan (what to send) → send → tighten (after an overflow, bounded) → relay → settle (what to keep).
"""

from __future__ import annotations

import asyncio
import logging
import time

from aiohttp import web

from ctxproxy.config.schema import Settings
from ctxproxy.core import wire
from ctxproxy.core.codings import decode_body
from ctxproxy.errors import BadRequest, BodyTooLarge, CtxproxyError, StoreUnavailable, WireError
from ctxproxy.proxy import passthrough
from ctxproxy.proxy.attempt import Refused, Stream, Whole
from ctxproxy.proxy.identify import Caller, bypassed, identify, target_for
from ctxproxy.proxy.keeping import Keeping
from ctxproxy.proxy.prepare import Prepared, prepare
from ctxproxy.proxy.rescue import Got, answer_for, send_plain
from ctxproxy.proxy.state import State
from ctxproxy.proxy.tee import relay_stream, relay_whole

log = logging.getLogger("ctxproxy")
MEGABYTE = 1_048_576


async def chat_completions(state: State, request: web.Request) -> web.StreamResponse:
    """Serve `POST /v1/chat/completions`."""
    settings = state.settings()
    began = time.monotonic()
    body = await read_body(request, settings.listen.max_body_mb)
    if bypassed(request):
        return await passthrough.forward(state, request, body)
    plain = decode_body(body, request.headers.get("Content-Encoding", ""), settings.listen.max_body_mb * MEGABYTE)
    try:
        chat = wire.parse(plain)
    except WireError:
        return await passthrough.forward(state, request, body)
    caller = identify(request, chat, settings, state.secret)
    try:
        prepared = await prepare(state, settings, chat, caller)
    except StoreUnavailable as error:
        if caller.mode == "append":
            raise
        log.warning("the store does not answer, so nothing is remembered of this request: %s", error.message)
        state.metrics.store_errors.inc()
        return await _untouched(state, request, settings, chat, caller, "store_unavailable")
    except (CtxproxyError, asyncio.CancelledError):
        raise
    except Exception as error:
        return await _failed_open(state, request, settings, chat, caller, error)
    state.metrics.planning.observe(time.monotonic() - began)
    return await _served(state, request, settings, prepared)
