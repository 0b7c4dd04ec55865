"""Around every handler: errors in OpenAI's shape, and one log line a request that holds no text and no credential."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from ctxproxy.core import jsontext
from ctxproxy.errors import CtxproxyError, StoreUnavailable
from ctxproxy.ports import Headers
from ctxproxy.proxy.request_lines import RequestLines

log = logging.getLogger("ctxproxy")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
RETRY_AFTER_S = 2
"""What a client is told to wait when the store is down: long enough for a restart, short enough to be tried again."""
CLIENT_GONE = 499
"""For the log only, as nginx has it: nobody is there to read it."""
NOTE = web.RequestKey("note", str)
"""Key under which a handler leaves words for its request's log line."""
BEGUN = web.RequestKey("begun", web.StreamResponse)
"""Key under which the answer stands whose head has left."""
TYPE, SERVER = "Content-Type", "Server"
"""Headers that aiohttp puts into every answer that has none; a relayed one passes as the upstream made it (Date is asked of us: RFC 9110 §6.6.1)."""


def error_response(error: CtxproxyError) -> web.Response:
    """The answer to a deliberate error."""
    headers = {"Retry-After": str(RETRY_AFTER_S)} if isinstance(error, StoreUnavailable) else None
    return web.Response(status=error.status, body=jsontext.encode(error.as_body()), content_type="application/json", headers=headers)


def _body(message: str, code: str) -> bytes:
    return jsontext.encode(
        {"error": {"message": message, "type": "server_error" if code == "internal_error" else "invalid_request_error", "param": None, "code": code}}
    )


class Relayed(web.StreamResponse):
    """An upstream's answer on its way to the client: its status, reason and headers, and `ours` in place of any it has of these names."""

    def __init__(self, status: int, reason: str, theirs: Headers, ours: Headers = ()) -> None:
        super().__init__(status=status, reason=reason or None)
        self.headers.extend(theirs)
        self.headers.update(ours)
        self.not_ours_to_add = [name for name in (TYPE, SERVER) if name not in self.headers]


class RelayedWhole(Relayed):
    """The same where the body follows at once: head and body leave together."""

    _send_headers_immediately = False


async def about_to_begin(request: web.Request, answer: web.StreamResponse) -> None:
    """Just before a head leaves: note that it does, and take out what aiohttp adds to a relayed answer."""
    request[BEGUN] = answer
    if isinstance(answer, Relayed):
        for name in answer.not_ours_to_add:
            answer.headers.popall(name, None)


def _unless_begun(request: web.Request, answer: web.Response) -> web.StreamResponse:
    """The answer; where the head of another has left there is no place for it: that one breaks off, so that nobody takes it for whole."""
    if BEGUN not in request:
        return answer
    if request.transport is not None:
        request.transport.abort()
    return request[BEGUN]


@web.middleware
async def errors_in_shape(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every error into an answer in OpenAI's shape."""
    try:
        return await handler(request)
    except CtxproxyError as error:
        log.warning("%s %s: %s", request.method, request.path, error.message)
        return _unless_begun(request, error_response(error))
    except web.HTTPException as error:
        body = _body(f"{request.method} {request.path}: {error.reason}", "not_found" if error.status == 404 else "invalid_request")
        allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return web.Response(status=error.status, body=body, content_type="application/json", headers=allow)
    except ConnectionError:  # the client is gone, perhaps with all that it wanted: some close at [DONE]; aiohttp would log it as our fault
        return _unless_begun(request, web.Response(status=CLIENT_GONE))
    except asyncio.CancelledError:
        raise
    except Exception as error:
        log.exception("%s %s failed: %s", request.method, request.path, type(error).__name__)
        body = _body("ctxproxy failed on this request; its log says where", "internal_error")
        return _unless_begun(request, web.Response(status=500, body=body, content_type="application/json"))


def request_log(lines: RequestLines) -> Middleware:
    """Log how each request ended."""

    @web.middleware
    async def logged(request: web.Request, handler: Handler) -> web.StreamResponse:
        began = time.monotonic()
        status: int | str = "gone"
        try:
            answer = await handler(request)
            status = answer.status
            return answer
        finally:
            taken_ms = (time.monotonic() - began) * 1000
            lines.tell("%s %s %s %.0f ms%s", request.method, request.path, status, taken_ms, request.get(NOTE, ""))

    return logged
