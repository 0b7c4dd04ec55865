"""From a `base_url` and a client's path to the upstream's URL, byte for byte."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

from ctxproxy.errors import ConfigError

DEMO = "demo"
DEMO_ORIGIN = "http://demo.invalid"
"""What the built-in model's URLs begin with; `.invalid` never resolves (RFC 2606), so a mistake cannot leave the machine."""

_VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d*)?")
"""A path segment that names an API version: v1, v4, v1beta."""
_ENDPOINT = re.compile(r"/(?:(?:chat/)?completions|embeddings|models|responses)$")


def check_base_url(base_url: str) -> str:
    """The base URL as `join_url` reads it, `DEMO_ORIGIN` for "demo"; raises ConfigError that says what would be right."""
    base = base_url.strip()
    if base == DEMO:
        return DEMO_ORIGIN
    try:
        parts = urlsplit(base)
        host = parts.hostname if parts.port is None or parts.port else None
    except ValueError as error:
        raise _wrong(base, str(error)) from None
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise _wrong(base, "it must be http://… or https://… with a host, or demo")
    if parts.fragment or any(ch.isspace() for ch in base):
        raise _wrong(base, "it must hold no blank and no #")
    if endpoint := _ENDPOINT.search(parts.path.rstrip("/")):
        raise _wrong(base, f"leave {endpoint[0]} away: it is the part before the endpoint")
    return base


def join_url(base_url: str, path_and_query: str) -> str:
    """The upstream's URL of a client's path, with the bytes of path and query as they are; raises ConfigError for a wrong base.

    `/v1` may stand at the end of the base, at the front of the path, at both or at neither: it comes out once. A prefix of the base
    is kept, and so is its query, which comes first. A base that names a version anywhere (`/api/paas/v4`, `/v1beta/openai`) is
    complete, as OpenAI's own clients have it, which append the bare endpoint to the base.
    """
    base, base_query = _parted(base_url)
    path, mark, query = path_and_query.partition("?")
    return base + _unversioned(path) + _query(base_query, mark + query)


@lru_cache(maxsize=256)
def _parted(base_url: str) -> tuple[str, str]:
    """A base with its version, and its query; there are few of them, and each request needs one."""
    base, _, base_query = check_base_url(base_url).partition("?")
    base = base.rstrip("/")
    prefix = base.split("://", 1)[1].split("/")[1:]
    if not any(_VERSION.fullmatch(segment) for segment in prefix):
        base += "/v1"
    return base, base_query


def _unversioned(path: str) -> str:
    if path and not path.startswith("/"):
        path = "/" + path
    return path[3:] if path == "/v1" or path.startswith("/v1/") else path


def _query(base_query: str, marked: str) -> str:
    if not base_query:
        return marked
    return f"?{base_query}&{marked[1:]}" if len(marked) > 1 else f"?{base_query}"


def _wrong(base_url: str, why: str) -> ConfigError:
    shown = re.sub(r"//[^/@\s]*@", "//…@", base_url)  # a password may stand there
    return ConfigError(f"{shown!r} cannot be an upstream: {why}; right would be https://api.openai.com/v1", param="upstream.base_url")
