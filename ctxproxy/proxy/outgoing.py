"""How a client's request becomes an upstream call: URL, headers, credential, timeouts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from aiohttp import web

from ctxproxy.config.schema import Settings
from ctxproxy.core import headers
from ctxproxy.core.urls import join_url
from ctxproxy.ports import Call
from ctxproxy.proxy.identify import CREDENTIAL_HEADERS, Target, credentials_of, own_headers

ORIGIN = re.compile(r"^https?://[^/?]*", re.IGNORECASE)
"""What comes before the path in a target of absolute form, which clients send to a forward proxy and every server must take (RFC 9112 §3.2.2)."""


def call_for(request: web.Request, target: Target, settings: Settings, body: bytes | AsyncIterator[bytes] | None, *, reencoded: bool = False) -> Call:
    """The upstream call for a request; with `reencoded`, the body no longer has the coding that the client gave it."""
    passed = headers.request_headers(list(request.headers.items()), own_headers(settings))
    if reencoded:
        passed = [(name, value) for name, value in passed if name.lower() != "content-encoding"]
    if not any(request.headers.get(name) for name in CREDENTIAL_HEADERS):
        passed += credentials_of(request, target)
    return Call(
        method=request.method,
        url=join_url(target.base_url, ORIGIN.sub("", request.raw_path)),
        headers=passed,
        body=body,
        first_byte_timeout_s=settings.upstream.first_byte_timeout_s,
        idle_timeout_s=settings.upstream.idle_timeout_s,
    )
