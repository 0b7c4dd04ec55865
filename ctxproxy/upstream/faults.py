"""What aiohttp's exceptions mean for whoever called: one table at the edge, so that no foreign exception passes it."""

from __future__ import annotations

import re

import aiohttp
from aiohttp.http import HttpProcessingError
from yarl import URL

from ctxproxy.errors import CtxproxyError, UpstreamTimeout, UpstreamUnreachable

QUOTED = re.compile(r":?\s*\bb['\"].*", re.DOTALL)
"""The bytes that aiohttp's parser quotes at the end of its messages: an answer may repeat a credential."""

_FAULTS: tuple[tuple[type[Exception], type[CtxproxyError], str], ...] = (
    (aiohttp.ConnectionTimeoutError, UpstreamTimeout, "no connection within {connect_s:g} s (upstream.connect_timeout_s)"),
    (TimeoutError, UpstreamTimeout, "no answer began within {first_byte_s:g} s (upstream.first_byte_timeout_s)"),
    (aiohttp.InvalidURL, UpstreamUnreachable, "not a URL that can be called; see upstream.base_url"),
    (aiohttp.ClientProxyConnectionError, UpstreamUnreachable, "the proxy named in the environment cannot be reached ({reason})"),
    (aiohttp.ClientHttpProxyError, UpstreamUnreachable, "the proxy named in the environment refuses ({reason})"),
    (aiohttp.ClientConnectorDNSError, UpstreamUnreachable, "its name does not resolve ({reason}); see upstream.base_url"),
    (aiohttp.ClientSSLError, UpstreamUnreachable, "TLS failed ({reason})"),
    (aiohttp.ClientConnectorError, UpstreamUnreachable, "no connection ({reason}); is it running, and is upstream.base_url right?"),
    (aiohttp.ServerDisconnectedError, UpstreamUnreachable, "it closed the connection before it answered"),
    (HttpProcessingError, UpstreamUnreachable, "its answer is not HTTP/1.1 ({reason})"),
    (aiohttp.ClientResponseError, UpstreamUnreachable, "its answer is not HTTP/1.1 ({reason})"),
    (aiohttp.ClientError, UpstreamUnreachable, "the connection broke before it answered ({reason})"),
    (OSError, UpstreamUnreachable, "the connection broke before it answered ({reason})"),
    (ValueError, UpstreamUnreachable, "the request cannot be sent ({reason})"),
)
"""Special ones first: the first row that fits counts."""


def before_the_head(error: Exception, url: URL, *, connect_s: float, first_byte_s: float) -> CtxproxyError:
    """Our error for one that came before the head of an answer."""
    for kind, ours, text in _FAULTS:
        if isinstance(error, kind):
            return ours(f"{_origin(url)}: {text.format(connect_s=connect_s, first_byte_s=first_byte_s, reason=_reason(error))}")
    raise error


def within_the_body(error: Exception, url: URL, *, idle_s: float) -> CtxproxyError:
    """Our error for one that came within an answer."""
    if isinstance(error, TimeoutError):
        return UpstreamTimeout(f"{_origin(url)}: no byte for {idle_s:g} s within its answer (upstream.idle_timeout_s)")
    return UpstreamUnreachable(f"{_origin(url)}: the connection broke within its answer ({_reason(error)})")


def _origin(url: URL) -> str:
    """Scheme, host and port: never the user, the path or the query, which may hold a key."""
    return f"upstream {url.origin()}" if url.absolute and url.host else "upstream"


def _reason(error: Exception) -> str:
    """What the operating system or the parser said, on one line; the exception's name where the text holds a URL."""
    if isinstance(error, HttpProcessingError):
        return _line(f"{error.code} {error.message}")
    if isinstance(error, aiohttp.ClientResponseError):
        return _line(f"{error.status} {error.message}")
    cause = getattr(error, "certificate_error", None) or getattr(error, "_os_error", None) or error.__cause__ or error
    said = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return _line(said) if said and "://" not in said else type(cause).__name__


def _line(text: str) -> str:
    return " ".join(QUOTED.sub("", text).split())[:200]
