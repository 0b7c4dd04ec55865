"""The admin API's answer to "why did it forget?" in general: three questions about a session (003-30)."""

from __future__ import annotations

from aiohttp import web

from ctxproxy.admin.find import session_of
from ctxproxy.core.doctor import examined
from ctxproxy.core.plan import plan
from ctxproxy.proxy.prepare import stored_situation
from ctxproxy.proxy.state import State


async def doctor(state: State, request: web.Request) -> web.Response:
    """`GET sessions/{id}/doctor`."""
    session = await session_of(state.store, request.match_info["id"])
    situation = await stored_situation(state, state.settings(), session, session.tip)
    rows = await state.store.history(session.key, session.tip)
    indexed = await state.store.chunks.indexed(session.key)
    found = examined(situation, plan(situation), session, rows, indexed, state.health.trouble)
    data = [{"question": one.question, "ok": one.ok, "why": one.why} for one in found]
    return web.json_response({"ok": all(one.ok for one in found), "findings": data})
