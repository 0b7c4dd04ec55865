"""The admin API's calls about memory files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

from aiohttp import web

from ctxproxy.admin.find import session_of, user_of
from ctxproxy.proxy.memory_files import Entry
from ctxproxy.proxy.state import State

Route = tuple[str, str, Callable[[web.Request], Awaitable[web.Response]]]


def memory_routes(state: State) -> list[Route]:
    """Method, path and handler of each."""
    api = _MemoryApi(state)
    return [("GET", "sessions/{id}/memory", api.of_session), ("GET", "users/{id}/memory", api.of_user)]


class _MemoryApi:
    def __init__(self, state: State) -> None:
        self._state = state

    async def of_session(self, request: web.Request) -> web.Response:
        session = await session_of(self._state.store, request.match_info["id"])
        entries = await self._state.notes.files.entries(session.key, session.user)
        return web.json_response(_days_shown([entry for entry in entries if entry.note.session == session.key.name]))

    async def of_user(self, request: web.Request) -> web.Response:
        tenant, user = await self._user(request.match_info["id"])
        return web.json_response(_days_shown(await self._state.notes.files.of_user(tenant, user)))

    async def _user(self, given: str) -> tuple[str, str]:
        return await user_of(self._state.notes.files.tenants_with, given, "are no memory files")


def _days_shown(entries: Sequence[Entry]) -> dict[str, object]:
    days = groupby(entries, key=lambda entry: entry.day)
    return {"data": [{"day": day, "sections": [_section_shown(entry) for entry in of_day]} for day, of_day in days], "next_cursor": None}


def _section_shown(entry: Entry) -> dict[str, object]:
    return {"session": entry.note.session, "tip": entry.note.tip, "heading": entry.note.heading, "text": entry.note.text}
