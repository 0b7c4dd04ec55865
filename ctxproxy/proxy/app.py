"""The listener's routes: ours, the chat completions, and everything else, which is forwarded."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from aiohttp import web

from ctxproxy.core import jsontext
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy import passthrough
from ctxproxy.proxy.exchange import chat_completions
from ctxproxy.proxy.middleware import about_to_begin, errors_in_shape, request_log
from ctxproxy.proxy.request_lines import RequestLines
from ctxproxy.proxy.state import State

log = logging.getLogger("ctxproxy")
OWN = "/ctxproxy/"
READY_WITHIN_S = 2.0
"""How long the store may take to answer a readiness probe."""


def make_app(state: State) -> web.Application:
    """The application without the admin API, which `wiring` adds under `/ctxproxy/`."""
    lines = RequestLines(log)
    app = web.Application(middlewares=[request_log(lines), errors_in_shape], client_max_size=0)
    app.on_response_prepare.append(about_to_begin)
    app.on_cleanup.append(partial(_closed, lines))
    routes = _Routes(state)
    app.router.add_get("/healthz", routes.healthz)
    app.router.add_get("/readyz", routes.readyz)
    app.router.add_get("/metrics", routes.metrics)
    app.router.add_get("/", routes.front)
    app.router.add_post("/v1/chat/completions", routes.chat)
    app.router.add_post("/chat/completions", routes.chat)
    return app


async def _closed(lines: RequestLines, _: web.Application) -> None:
    lines.close()


def add_forwarding(app: web.Application, state: State) -> None:
    """Forward every path that no other route has taken; added last."""
    app.router.add_route("*", "/{path:.*}", _Routes(state).forward)


class _Routes:
    def __init__(self, state: State) -> None:
        self._state = state

    async def healthz(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await self._state.store.ping()
        except (StoreUnavailable, TimeoutError) as error:
            reason = error.message if isinstance(error, StoreUnavailable) else f"the store does not answer within {READY_WITHIN_S:.0f} s"
            return _unavailable(reason)
        if trouble := self._state.health.trouble:
            return _unavailable(trouble)
        return web.json_response({"status": "ready"})

    async def metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._state.metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def front(self, request: web.Request) -> web.Response:
        return web.json_response({"name": "ctxproxy", "api": "/v1/chat/completions", "admin": OWN + "api/"})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        with self._state.lull.request():
            return await chat_completions(self._state, request)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        if request.path.startswith(OWN) or request.path == "/favicon.ico":
            raise web.HTTPNotFound
        return await passthrough.forward(self._state, request)


def _unavailable(reason: str) -> web.Response:
    return web.Response(status=503, body=jsontext.encode({"status": "unavailable", "reason": reason}), content_type="application/json")
