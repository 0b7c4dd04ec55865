"""Who may call the admin API: the bearer of `admin.token`; with no token set, callers on this machine of a listener on this machine."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable

from aiohttp import web

from ctxproxy.config.schema import Settings
from ctxproxy.errors import Unauthorized

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def guarded(settings: Callable[[], Settings], handler: Handler) -> Handler:
    """The handler behind the check; raises Unauthorized."""

    async def checked(request: web.Request) -> web.StreamResponse:
        check(request, settings())
        return await handler(request)

    return checked


def check(request: web.Request, settings: Settings) -> None:
    """Raises Unauthorized unless the request may call the admin API."""
    token = settings.admin.token
    if token:
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {token}".encode()):
            raise Unauthorized("the admin API needs the header Authorization: Bearer <admin.token>", param="Authorization")
        return
    if not (_is_loopback(settings.listen.host) and _is_loopback(request.remote or "") and _same_site(request)):
        raise Unauthorized(
            "without admin.token the admin API answers only callers on this machine; set admin.token (CTXPROXY_ADMIN_TOKEN)", param="Authorization"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _same_site(request: web.Request) -> bool:
    """A page of another site must not reach the API through the user's browser, nor a name that resolves to this machine."""
    host = request.host.rsplit(":", 1)[0].strip("[]")
    return _is_loopback(host) and request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
