"""The admin API's calls that carry a session out of one installation and into another, or back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from ctxproxy.admin.find import session_of
from ctxproxy.proxy.exporting import export_lines
from ctxproxy.proxy.importing import import_session
from ctxproxy.proxy.state import State

Route = tuple[str, str, Callable[[web.Request], Awaitable[web.StreamResponse]]]
LINES = "application/x-ndjson"


def moving_routes(state: State) -> list[Route]:
    """Method, path and handler of each."""
    api = _MovingApi(state)
    return [("GET", "sessions/{id}/export", api.export), ("POST", "import", api.take_in)]


class _MovingApi:
    def __init__(self, state: State) -> None:
        self._state = state

    async def export(self, request: web.Request) -> web.StreamResponse:
        session = await session_of(self._state.store, request.match_info["id"])
        answer = web.StreamResponse(headers={"Content-Type": LINES})
        async for piece in export_lines(self._state, session):
            if not answer.prepared:
                await answer.prepare(request)
            await answer.write(piece)
        await answer.write_eof()
        return answer

    async def take_in(self, request: web.Request) -> web.Response:
        query = request.query
        done = await import_session(self._state, request.content.iter_any(), name=query.get("as"), tenant=query.get("tenant"))
        key = done.session.key
        told = {"id": key.id, "name": key.name, "tip": done.session.tip or None, "messages": done.messages, "known_tenant": done.known_tenant}
        return web.json_response(told, status=201)
