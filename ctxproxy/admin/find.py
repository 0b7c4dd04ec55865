"""From what stands in an admin path to a session, a tip, a number."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from ctxproxy.core import headers, jsontext
from ctxproxy.core.records import Session
from ctxproxy.errors import BadRequest, Conflict, NotFound
from ctxproxy.ports import Store

BODY_BYTES = 64 * 1_048_576


async def session_of(store: Store, given: str) -> Session:
    """The session of an id `<tenant, 8 hex>:<name>` or of a bare name; raises NotFound, or Conflict with the candidates."""
    tenant, colon, name = given.partition(":")
    found = [s for s in await store.find(name) if s.key.tenant.startswith(tenant)] if colon and len(tenant) == 8 else []
    found = found or await store.find(given)
    if not found:
        raise NotFound(f"there is no session {given!r}; GET sessions lists them", param="id")
    if len(found) > 1:
        raise Conflict(f"{given!r} is the name of {len(found)} sessions: {', '.join(s.key.id for s in found)}", param="id")
    return found[0]


async def user_of(tenants: Callable[[str], Awaitable[Sequence[str]]], given: str, what: str) -> tuple[str, str]:
    """Tenant and name of a user, by `<tenant, 8 hex>:<name>` or a bare name; `tenants` gives those that know a name.

    Raises NotFound, saying `what` there is none of, or Conflict with the candidates.
    """
    tenant, colon, name = given.partition(":")
    found = [(one, name) for one in await tenants(name) if one.startswith(tenant)] if colon and len(tenant) == 8 else []
    found = found or [(one, given) for one in await tenants(given)]
    if not found:
        raise NotFound(f"there {what} of a user {given!r}", param="id")
    if len(found) > 1:
        raise Conflict(f"{given!r} is the name of {len(found)} users: {', '.join(f'{one[:8]}:{user}' for one, user in found)}", param="id")
    return found[0]


async def body_of(request: web.Request) -> dict[str, object]:
    """The JSON object in a request's body, {} if it has none; raises BadRequest."""
    raw = await request.content.read(BODY_BYTES) if request.body_exists else b""
    while request.body_exists and not request.content.at_eof() and len(raw) < BODY_BYTES:
        raw += await request.content.read(BODY_BYTES - len(raw))
    if not raw.strip():
        return {}
    try:
        value = jsontext.decode(raw)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest("the body must be a JSON object")
    return value


def text_in(body: dict[str, object], key: str, default: str | None = None) -> str:
    """A text under a key of the body; raises BadRequest if it is none, or missing without a default."""
    value = body.get(key, default)
    if not isinstance(value, str):
        raise BadRequest(f"{key} must be a text", param=key)
    return value


def name_in(body: dict[str, object], key: str, default: str) -> str:
    """A session's name under a key of the body, by the rule of the header that names sessions; raises BadRequest."""
    return headers.session_name([text_in(body, key, default)], key) or default


def number_in(request: web.Request, key: str, default: int, most: int) -> int:
    """A whole number from 1 to `most` in the query; raises BadRequest."""
    value = request.query.get(key)
    if value is None or value == "":
        return default
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= most:
        raise BadRequest(f"{key} must be a whole number from 1 to {most}", param=key)
    return int(value)
