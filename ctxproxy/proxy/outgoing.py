"""How a client's request becomes an upstream call: URL, headers, credential, timeouts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import lru_cache

from aiohttp import web

from ctxproxy.config.schema import Settings
from ctxproxy.core import headers
from ctxproxy.core.urls import join_url
from ctxproxy.errors import BadRequest
from ctxproxy.ports import Call
from ctxproxy.proxy.identify import CREDENTIAL_HEADERS, Target, credentials_of, own_headers

ORIGIN = re.compile(r"^https?://[^/?]*", re.IGNORECASE)
"""What comes before the path in a target of absolute form, which clients send to a forward proxy and every server must take (RFC 9112 §3.2.2)."""

CLIMBS = re.compile(r"(?:^|/|%2f|%5c|\\)(?:\.|%2e){2}(?:$|/|%2f|%5c|\\|;)", re.IGNORECASE)
"""A segment `..`, spelled in any way that some server undoes (RFC 3986 §5.2.4)."""


def call_for(
    request: web.Request,
    target: Target,
    settings: Settings,
    body: bytes | AsyncIterator[bytes] | None,
    *,
    reencoded: bool = False,
    plain: bool = False,
) -> Call:
    """The upstream call for a request; with `reencoded`, the body no longer has the coding that the client gave it.

    With `plain`, the answer is asked for without any coding: it has to be read.
    """
    passed = headers.request_headers(list(request.headers.items()), own_headers(settings))
    if plain:
        passed = [*((name, value) for name, value in passed if name.lower() != "accept-encoding"), ("Accept-Encoding", "identity")]
    if reencoded:
        passed = [(name, value) for name, value in passed if name.lower() != "content-encoding"]
    if not any(request.headers.get(name) for name in CREDENTIAL_HEADERS):
        passed += credentials_of(request, target)
    return Call(
        method=request.method,
        url=_url(target.base_url, request.raw_path),
        headers=passed,
        body=body,
        first_byte_timeout_s=settings.upstream.first_byte_timeout_s,
        idle_timeout_s=settings.upstream.idle_timeout_s,
    )


@lru_cache(maxsize=256)
def _url(base_url: str, raw_path: str) -> str:
    """There are few of them, and each request needs one."""
    path = ORIGIN.sub("", raw_path)
    if CLIMBS.search(path.partition("?")[0]):
        raise BadRequest("the path must not climb with '..': it could leave the upstream's own", param="path")
    return join_url(base_url, path)
