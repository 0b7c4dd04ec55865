"""The admin API's calls by which one session may read pieces of another, and by which people say what they think of a session."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from ctxproxy.admin.facts import fact_shown
from ctxproxy.admin.find import body_of, session_of, text_in
from ctxproxy.admin.memory import Route
from ctxproxy.admin.shown import session_shown
from ctxproxy.core.effects import Choose
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import Session, SessionKey, StoredMessage
from ctxproxy.core.sharing import MAX_GRANTS, MAX_PIECES, MAX_RATING_CHARS, Grant, Rating
from ctxproxy.errors import BadRequest, Conflict, Forbidden, NotFound
from ctxproxy.proxy.prepare import stored_message
from ctxproxy.proxy.state import State

MAX_TAG_CHARS = 100
MOST_EXPIRES_S = 10 * 365 * 86_400


def sharing_routes(state: State) -> list[Route]:
    """Method, path and handler of each."""
    grants, choices = _Grants(state), _Choices(state)
    return [
        ("POST", "sessions/{id}/grants", grants.grant),
        ("GET", "sessions/{id}/grants", grants.of_owner),
        ("DELETE", "sessions/{id}/grants/{n}", grants.revoke),
        ("GET", "sessions/{id}/shared", grants.shared),
        ("PATCH", "sessions/{id}", choices.choose),
        ("POST", "sessions/{id}/feedback", choices.rate),
    ]


class _Grants:
    def __init__(self, state: State) -> None:
        self._state = state

    async def grant(self, request: web.Request) -> web.Response:
        owner, body = await session_of(self._state.store, request.match_info["id"]), await body_of(request)
        to_session, to_user = await self._receiver(owner, body.get("to"))
        tips, facts = await self._tips_in(owner, body), await self._facts_in(owner, body)
        if not 1 <= len(tips) + len(facts) <= MAX_PIECES:
            raise BadRequest(f"name 1 to {MAX_PIECES} pieces: tips of messages, numbers of facts", param="tips")
        if len(await self._state.store.grants.of(owner.key)) >= MAX_GRANTS:
            raise BadRequest(f"a session makes at most {MAX_GRANTS} grants; revoke some first", param="id")
        now = self._state.clock()
        grant = Grant(0, owner.key, to_session, to_user, tips, facts, now, _expiry_in(body, now))
        number = await self._state.store.grants.put(grant)
        if number is None:
            raise NotFound("one of the two sessions has just been erased", param="to")
        return web.json_response({**_grant_shown(grant), "n": number}, status=201)

    async def of_owner(self, request: web.Request) -> web.Response:
        owner = await session_of(self._state.store, request.match_info["id"])
        found = await self._state.store.grants.of(owner.key)
        return web.json_response({"data": [_grant_shown(grant) for grant in found], "next_cursor": None})

    async def revoke(self, request: web.Request) -> web.Response:
        owner, given = await session_of(self._state.store, request.match_info["id"]), request.match_info["n"]
        numbers = {str(grant.number): grant.number for grant in await self._state.store.grants.of(owner.key)}
        if given not in numbers or not await self._state.store.grants.drop(owner.key, numbers[given]):
            raise NotFound(f"session {owner.key.id} has no grant {given}", param="n")
        return web.json_response({"n": numbers[given], "deleted": True})

    async def shared(self, request: web.Request) -> web.Response:
        """What others let this session read; of one of them if the query names it: then without a grant it is refused."""
        reader, given = await session_of(self._state.store, request.match_info["id"]), request.query.get("from")
        grants = await self._state.store.grants.to(reader.key, reader.user, self._state.clock())
        if given is not None:
            owner = await session_of(self._state.store, given)
            grants = [grant for grant in grants if grant.owner == owner.key]
            if not grants:
                raise Forbidden(f"session {reader.key.id} has no grant of {owner.key.id}; POST sessions/{{id}}/grants there makes one", param="from")
        data = [await self._pieces(grant) for grant in grants]
        return web.json_response({"data": [one for one in data if one], "next_cursor": None})

    async def _receiver(self, owner: Session, to: object) -> tuple[SessionKey | None, str]:
        """The session or user of the same tenant that `to` names; raises NotFound, Conflict where it could be either, Forbidden across tenants."""
        given, kinds = _named_in(to)
        tenant, store = owner.key.tenant, self._state.store
        prefix, colon, rest = given.partition(":")
        is_id = bool(colon) and len(prefix) == 8
        name = rest if is_id and tenant.startswith(prefix) else given
        session = await store.session(SessionKey(tenant, name)) if "session" in kinds else None
        is_user = "user" in kinds and tenant in await store.facts.tenants(name)
        if session and is_user:
            raise Conflict(f'{given!r} is a session and a user; say {{"session": …}} or {{"user": …}}', param="to")
        if session or is_user:
            return (session.key, "") if session else (None, name)
        for elsewhere in {given, rest} if is_id else {given}:
            if await store.find(elsewhere) or await store.facts.tenants(elsewhere):
                raise Forbidden("nothing is shared with another tenant", param="to")
        raise NotFound(f"there is no session and no user {given!r}", param="to")

    async def _tips_in(self, owner: Session, body: dict[str, object]) -> tuple[Tip, ...]:
        given = body.get("tips", [])
        if not isinstance(given, list) or not all(isinstance(tip, str) for tip in given) or len(given) > MAX_PIECES:
            raise BadRequest("tips must be a list of message tips", param="tips")
        known = await self._rows(owner.key, given)
        if missing := [tip for tip in given if tip not in known]:
            raise NotFound(f"session {owner.key.id} has no message {missing[0]!r}", param="tips")
        return tuple(dict.fromkeys(given))

    async def _facts_in(self, owner: Session, body: dict[str, object]) -> tuple[int, ...]:
        given = body.get("facts", [])
        if not isinstance(given, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in given):
            raise BadRequest("facts must be a list of numbers of facts", param="facts")
        numbers = {one.number for one in await self._state.store.facts.of(owner.key)} if given else set()
        if missing := [n for n in given if n not in numbers]:
            raise NotFound(f"session {owner.key.id} has no fact {missing[0]}", param="facts")
        return tuple(dict.fromkeys(given))

    async def _rows(self, key: SessionKey, tips: Sequence[Tip]) -> dict[Tip, StoredMessage]:
        """The messages of these tips, one branch after the other."""
        known: dict[Tip, StoredMessage] = {}
        for tip in reversed(tips):
            if tip not in known:
                known |= {row.tip: row for row in await self._state.store.history(key, tip)}
        return known

    async def _pieces(self, grant: Grant) -> dict[str, object] | None:
        """What a grant lets read now: nothing that was forgotten, erased or taken back since; None if its owner is gone."""
        owner = await self._state.store.session(grant.owner)
        if owner is None:
            return None
        rows = await self._rows(owner.key, grant.tips)
        messages = [rows[tip] for tip in grant.tips if tip in rows and rows[tip].raw and tip not in owner.forgotten]
        facts = [one for one in await self._state.store.facts.of(owner.key) if one.number in grant.facts and one.in_force]
        return {
            "from": owner.key.id,
            "n": grant.number,
            "expires": grant.expires,
            "messages": [_message_shown(row) for row in messages],
            "facts": [fact_shown(one) for one in facts],
        }


def _named_in(to: object) -> tuple[str, frozenset[str]]:
    """What `to` names, and as what: a session, a user, or either."""
    if isinstance(to, str) and to:
        return to, frozenset(("session", "user"))
    if isinstance(to, dict) and len(to) == 1:
        ((kind, name),) = to.items()
        if kind in ("session", "user") and isinstance(name, str) and name:
            return name, frozenset((kind,))
    raise BadRequest('to must be a session\'s id, a user, {"session": …} or {"user": …}', param="to")


def _expiry_in(body: dict[str, object], now: float) -> float | None:
    given = body.get("expires_s")
    if given is None:
        return None
    if not isinstance(given, int | float) or isinstance(given, bool) or not 0 < given <= MOST_EXPIRES_S:
        raise BadRequest(f"expires_s must be a number of seconds above 0, at most {MOST_EXPIRES_S}", param="expires_s")
    return now + given


def _grant_shown(grant: Grant) -> dict[str, object]:
    to: dict[str, object] = {"session": grant.to_session.id} if grant.to_session else {"user": grant.to_user}
    pieces = {"tips": list(grant.tips), "facts": list(grant.facts)}
    return {"n": grant.number, "to": to, **pieces, "created": grant.created, "expires": grant.expires}


def _message_shown(row: StoredMessage) -> dict[str, object]:
    return {"tip": row.tip, "role": row.role, "message": dict(stored_message(row).fields), "time": row.created}


class _Choices:
    def __init__(self, state: State) -> None:
        self._state = state

    async def choose(self, request: web.Request) -> web.Response:
        session, body = await session_of(self._state.store, request.match_info["id"]), await body_of(request)
        if not body or body.keys() - {"tag", "kept"}:
            raise BadRequest('give {"tag": …}, {"kept": true | false} or both')
        tag = text_in(body, "tag").strip() if "tag" in body else None
        kept = body.get("kept")
        if tag is not None and len(tag) > MAX_TAG_CHARS:
            raise BadRequest(f"a tag has at most {MAX_TAG_CHARS} characters", param="tag")
        if "kept" in body and not isinstance(kept, bool):
            raise BadRequest("kept must be true or false", param="kept")
        await self._state.store.apply([Choose(session.key, kept=kept if isinstance(kept, bool) else None, tag=tag)])
        return web.json_response(session_shown(await session_of(self._state.store, session.key.id)))

    async def rate(self, request: web.Request) -> web.Response:
        session, body = await session_of(self._state.store, request.match_info["id"]), await body_of(request)
        rating, text = body.get("rating"), text_in(body, "text", "").strip()
        if not isinstance(rating, int) or isinstance(rating, bool) or not 1 <= rating <= 5:
            raise BadRequest("rating must be a whole number from 1 to 5", param="rating")
        if len(text) > MAX_RATING_CHARS:
            raise BadRequest(f"text has at most {MAX_RATING_CHARS} characters", param="text")
        put = Rating(rating, text, self._state.clock())
        await self._state.store.ratings.put(session.key, put)
        return web.json_response({"id": session.key.id, **rating_shown(put)}, status=201)


def rating_shown(rating: Rating) -> dict[str, object]:
    """What somebody thinks of a session."""
    return {"rating": rating.rating, "text": rating.text, "time": rating.created}


def feedback_shown(ratings: Sequence[Rating]) -> dict[str, object]:
    """All ratings of a session in figures, and the last one."""
    mean = round(sum(one.rating for one in ratings) / len(ratings), 2) if ratings else None
    return {"ratings": len(ratings), "mean": mean, "last": rating_shown(ratings[-1]) if ratings else None}
