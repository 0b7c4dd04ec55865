"""The admin API's calls: JSON in, JSON out; errors in OpenAI's shape. INTERFACE.md §1 names each."""

from __future__ import annotations

from aiohttp import web

from ctxproxy.admin.auth import guarded
from ctxproxy.admin.dryrun import dry_run
from ctxproxy.admin.facts import fact_routes
from ctxproxy.admin.find import body_of, name_in, number_in, session_of, text_in
from ctxproxy.admin.health import doctor
from ctxproxy.admin.memory import memory_routes
from ctxproxy.admin.moving import moving_routes
from ctxproxy.admin.sharing import feedback_shown, sharing_routes
from ctxproxy.admin.shown import checkpoint_shown, message_shown, session_shown, summary_shown, why_shown
from ctxproxy.core import inspect, spending
from ctxproxy.core.effects import AppendMessages, Choose, DropPin, Forget, MoveTip, OpenSession
from ctxproxy.core.fates import fates
from ctxproxy.core.messages import Tip, text_of
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import Session, SessionKey, span_of
from ctxproxy.core.situation import Situation
from ctxproxy.core.stages.base import MARKER_DIGITS
from ctxproxy.errors import BadRequest, Conflict, NotFound
from ctxproxy.proxy import changes
from ctxproxy.proxy.arm_figures import figures
from ctxproxy.proxy.prepare import stored_message, stored_situation
from ctxproxy.proxy.state import State
from ctxproxy.proxy.tracing import MOST_TOLD, current_branch, trace

API = "/ctxproxy/api/"
HEX = frozenset("0123456789abcdef")
PAGE, LONGEST_PAGE = 50, 1000


def add_admin(app: web.Application, state: State) -> None:
    """Add the admin API's routes."""
    api = _Api(state)
    routes = [
        ("GET", "sessions", api.sessions),
        ("GET", "sessions/{id}", api.session),
        ("DELETE", "sessions/{id}", api.erase),
        ("GET", "sessions/{id}/messages", api.messages),
        ("DELETE", "sessions/{id}/messages/{tip}", api.forget),
        ("GET", "sessions/{id}/view", api.view),
        ("GET", "sessions/{id}/why", api.why),
        ("GET", "sessions/{id}/doctor", lambda request: doctor(state, request)),
        ("POST", "sessions/{id}/manage", api.manage),
        ("POST", "sessions/{id}/clear", api.clear),
        ("POST", "sessions/{id}/fork", api.fork),
        ("POST", "sessions/{id}/pins", api.pin),
        ("DELETE", "sessions/{id}/pins/{n}", api.unpin),
        ("GET", "expand/{marker}", api.expand),
        *moving_routes(state),
        ("POST", "plan", api.plan),
        ("GET", "models", api.models),
        ("GET", "stats", api.stats),
        *memory_routes(state),
        *fact_routes(state),
        *sharing_routes(state),
    ]
    for method, path, handler in routes:
        app.router.add_route(method, API + path, guarded(state.settings, handler))


class _Api:
    def __init__(self, state: State) -> None:
        self._state = state

    async def _session(self, request: web.Request) -> Session:
        return await session_of(self._state.store, request.match_info["id"])

    async def sessions(self, request: web.Request) -> web.Response:
        limit = number_in(request, "limit", PAGE, LONGEST_PAGE)
        query = request.query
        page = await self._state.store.sessions(limit, query.get("cursor") or None, query.get("q", ""), query.get("tag", ""))
        data = [session_shown(s) for s in page.sessions]
        return web.json_response({"data": data, "next_cursor": page.next_cursor})

    async def session(self, request: web.Request) -> web.Response:
        session, store = await self._session(request), self._state.store
        shown = session_shown(session)
        shown |= spending.figures(session.tokens_sent, session.spent, self._state.settings().context.cached_price)
        shown["branches"] = await store.leaves(session.key)
        shown["checkpoints"] = [checkpoint_shown(c) for c in await store.all_checkpoints(session.key)]
        shown["summaries"] = [summary_shown(s) for s in await store.summaries(session.key, None)]
        shown["pins"] = [{"n": p.number, "text": p.text, "time": p.created} for p in await store.pins(session.key)]
        shown["feedback"] = feedback_shown(await store.ratings.of(session.key))
        return web.json_response(shown)

    async def messages(self, request: web.Request) -> web.Response:
        session = await self._session(request)
        tip = request.query.get("branch") or await current_branch(self._state.store, session)
        rows = await self._state.store.history(session.key, tip)
        if not rows and request.query.get("branch"):
            raise NotFound(f"session {session.key.id} has no branch {tip!r}; GET sessions/{{id}} lists them", param="branch")
        found = {fate.tip: fate for fate in fates(*await self._planned(session, tip))}
        return web.json_response({"data": [message_shown(row, found[row.tip]) for row in rows if row.tip in found], "next_cursor": None})

    async def _planned(self, session: Session, tip: Tip) -> tuple[Situation, Plan]:
        situation = await stored_situation(self._state, self._state.settings(), session, tip)
        return situation, plan(situation)

    async def view(self, request: web.Request) -> web.Response:
        session = await self._session(request)
        situation, planned = await self._planned(session, request.query.get("branch") or session.tip)
        return web.json_response({**inspect.plan_report(situation, planned), "model": session.model})

    async def why(self, request: web.Request) -> web.Response:
        session, most = await self._session(request), number_in(request, "limit", MOST_TOLD, LONGEST_PAGE)
        return web.json_response(why_shown(await trace(self._state, session, request.query.get("text", ""), most)))

    async def manage(self, request: web.Request) -> web.Response:
        session = await self._session(request)
        situation = await stored_situation(self._state, self._state.settings(), session, session.tip)
        planned = await changes.compacted(self._state, session.key, session.user, situation)
        return web.json_response(inspect.plan_report(situation, planned))

    async def clear(self, request: web.Request) -> web.Response:
        session = await self._session(request)
        tips = [row.tip for row in await self._state.store.history(session.key, session.tip)]
        await self._state.store.apply(changes.clearing(session.key, session, tips))
        return web.json_response({"id": session.key.id, "cleared": len(tips)})

    async def fork(self, request: web.Request) -> web.Response:
        session, body = await self._session(request), await body_of(request)
        tip = text_in(body, "tip", session.tip)
        rows = await self._state.store.history(session.key, tip)
        if tip and not rows:
            raise NotFound(f"session {session.key.id} has no message {tip!r}", param="tip")
        key = SessionKey(session.key.tenant, name_in(body, "id", f"{session.key.name[:100]}-fork-{(tip or 'root')[:8]}"))
        if await self._state.store.session(key) is not None:
            raise Conflict(f"there is a session {key.id} already; give another name as id", param="id")
        now = self._state.clock()
        as_there = (session.manner, session.frame, session.system, session.model, session.profile, session.fixed_tokens, session.recall)
        opened = OpenSession(key, now, *as_there, user=session.user)
        chosen = Choose(key, cleared=session.cleared, overrides=session.overrides)
        forgotten = [Forget(key, row.tip) for row in rows if row.tip in session.forgotten]
        await self._state.store.apply([opened, AppendMessages(key, tuple(rows)), MoveTip(key, None, tip), chosen, *forgotten])
        await self._state.store.carryover.copy_preload(session.key, key)
        if self._state.settings().memory.facts and rows:
            self._state.facts.note(key, "", span_of(rows))
        return web.json_response({"id": key.id, "name": key.name, "tip": tip}, status=201)

    async def erase(self, request: web.Request) -> web.Response:
        session = await self._session(request)
        await self._state.eraser.session(session.key)
        return web.json_response({"id": session.key.id, "deleted": True})

    async def forget(self, request: web.Request) -> web.Response:
        session, tip = await self._session(request), request.match_info["tip"]
        rows = await self._state.store.history(session.key, tip)
        if not rows:
            raise NotFound(f"session {session.key.id} has no message {tip!r}", param="tip")
        erase = request.query.get("erase", "").lower() == "true"
        pins = await self._state.eraser.message(session.key, rows[-1], erase=erase)
        return web.json_response({"tip": tip, "deleted": True, "erased": erase, "pins_dropped": list(pins)})

    async def pin(self, request: web.Request) -> web.Response:
        session, body = await self._session(request), await body_of(request)
        text = text_in(body, "text").strip()
        if not text:
            raise BadRequest("text must not be empty", param="text")
        pin = await changes.pinned(self._state, session.key, text)
        return web.json_response({"n": pin.number, "text": pin.text}, status=201)

    async def unpin(self, request: web.Request) -> web.Response:
        session, given = await self._session(request), request.match_info["n"]
        numbers = {str(p.number): p.number for p in await self._state.store.pins(session.key)}
        if given not in numbers:
            raise NotFound(f"session {session.key.id} has no pin {given}", param="n")
        await self._state.store.apply([DropPin(session.key, numbers[given])])
        return web.json_response({"n": numbers[given], "deleted": True})

    async def expand(self, request: web.Request) -> web.Response:
        marker = request.match_info["marker"].strip().lower()
        if len(marker) < MARKER_DIGITS or not set(marker) <= HEX:
            raise BadRequest(f"a marker is {MARKER_DIGITS} or more hex digits", param="marker")
        found = await self._state.store.locate(marker)
        if not found or not found[0].message.raw:
            raise NotFound(f"there is no original behind {marker!r}", param="marker")
        message = stored_message(found[0].message)
        if isinstance(message.content, str):
            return web.Response(body=text_of(message).encode("utf-8", "surrogatepass"), headers={"Content-Type": "text/plain; charset=utf-8"})
        return web.Response(body=found[0].message.raw, content_type="application/json")

    async def plan(self, request: web.Request) -> web.Response:
        return web.json_response(await dry_run(self._state, await body_of(request)))

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": self._state.windows.table(self._state.settings().models), "next_cursor": None})

    async def stats(self, request: web.Request) -> web.Response:
        totals, ratings = await self._state.store.totals(), await self._state.store.ratings.totals()
        saved = totals.tokens_in - totals.tokens_sent
        return web.json_response(
            {
                "sessions": totals.sessions,
                "messages": totals.messages,
                "requests": totals.requests,
                "tokens_in": totals.tokens_in,
                "tokens_sent": totals.tokens_sent,
                "tokens_saved": saved,
                "saved_of_tokens_in": round(saved / totals.tokens_in, 4) if totals.tokens_in else 0.0,
                "compactions": totals.compactions,
                **spending.figures(totals.tokens_sent, totals.spent, self._state.settings().context.cached_price),
                "feedback": {"ratings": ratings.ratings, "mean": ratings.mean},
                "experiment": figures(self._state.metrics, self._state.settings().experiment),
            }
        )
