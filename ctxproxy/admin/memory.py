"""The admin API's calls about memory files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

from aiohttp import web

from ctxproxy.admin.find import body_of, session_of, user_of
from ctxproxy.core.distilling import Item, items_in
from ctxproxy.core.memory_notes import folder_of
from ctxproxy.errors import BadRequest
from ctxproxy.proxy.distilling import DAYS, MOST_DAYS, Distiller
from ctxproxy.proxy.memory_files import Entry
from ctxproxy.proxy.state import State

Route = tuple[str, str, Callable[[web.Request], Awaitable[web.Response]]]


def memory_routes(state: State) -> list[Route]:
    """Method, path and handler of each."""
    api = _MemoryApi(state)
    return [
        ("GET", "sessions/{id}/memory", api.of_session),
        ("GET", "users/{id}/memory", api.of_user),
        ("POST", "sessions/{id}/memory/distill", api.distill_session),
        ("POST", "users/{id}/memory/distill", api.distill_user),
    ]


class _MemoryApi:
    def __init__(self, state: State) -> None:
        self._state = state
        self._distiller = Distiller(state)

    async def of_session(self, request: web.Request) -> web.Response:
        session = await session_of(self._state.store, request.match_info["id"])
        entries = await self._state.notes.files.entries(session.key, session.user)
        own = [entry for entry in entries if entry.note.session == session.key.name]
        text = await self._state.notes.files.distilled(session.key.tenant, session.key.name, session.user)
        items = [item for item in items_in(text) if any(source.session == session.key.name for source in item.sources)]
        return web.json_response(_shown(own, items))

    async def of_user(self, request: web.Request) -> web.Response:
        tenant, user = await self._user(request.match_info["id"])
        files = self._state.notes.files
        return web.json_response(_shown(await files.of_user(tenant, user), items_in(await files.distilled(tenant, "", user))))

    async def distill_session(self, request: web.Request) -> web.Response:
        session = await session_of(self._state.store, request.match_info["id"])
        return await self._distilled(request, session.key.tenant, folder_of(session.key.name, session.user))

    async def distill_user(self, request: web.Request) -> web.Response:
        tenant, user = await self._user(request.match_info["id"])
        return await self._distilled(request, tenant, folder_of("", user))

    async def _distilled(self, request: web.Request, tenant: str, folder: str) -> web.Response:
        settings, days = self._state.settings(), (await body_of(request)).get("days", DAYS)
        if settings.memory.distill == "off":
            raise BadRequest("memory.distill is off; set it to manual or daily", param="memory.distill")
        if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= MOST_DAYS:
            raise BadRequest(f"days must be a whole number from 1 to {MOST_DAYS}", param="days")
        done = await self._distiller.folder(settings, tenant, folder, days)
        return web.json_response({"result": done.result, "notes": done.notes, "items": done.items})

    async def _user(self, given: str) -> tuple[str, str]:
        return await user_of(self._state.notes.files.tenants_with, given, "are no memory files")


def _shown(entries: Sequence[Entry], items: Sequence[Item]) -> dict[str, object]:
    days = groupby(entries, key=lambda entry: entry.day)
    data = [{"day": day, "sections": [_section_shown(entry) for entry in of_day]} for day, of_day in days]
    return {"data": data, "distilled": [item.text for item in items], "next_cursor": None}


def _section_shown(entry: Entry) -> dict[str, object]:
    return {"session": entry.note.session, "tip": entry.note.tip, "heading": entry.note.heading, "text": entry.note.text}
