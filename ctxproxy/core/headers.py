"""Which headers go on to the next hop, and what our own request headers say (INTERFACE.md §2).

Names are compared without regard to case; order, spelling and repetition of what passes are kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias, cast

from ctxproxy.errors import BadRequest

Mode: TypeAlias = Literal["auto", "full", "append"]

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""RFC 9110 §7.6.1; proxy credentials are meant for this hop (§11.7), and trailers are not carried on (§6.5.1)."""
_OF_THIS_REQUEST = frozenset({"host", "content-length", "expect"})
"""Made anew for the next hop; `Expect: 100-continue` is answered by whoever reads the body, which is us (RFC 9110 §10.1.1)."""
_NAME = re.compile(r"[A-Za-z0-9._:@/=-]{1,128}")
_NAME_RULE = "1 to 128 of A-Z a-z 0-9 . _ : @ / = -"
_MODES: tuple[Mode, ...] = ("auto", "full", "append")


def request_headers(headers: Iterable[tuple[str, str]], own: Collection[str] = ()) -> list[tuple[str, str]]:
    """The headers to send to the upstream: without hop-by-hop ones, Host, Content-Length, Expect, and those named in `own`."""
    return _without(headers, _not_sent(tuple(own)))


def response_headers(headers: Iterable[tuple[str, str]], own: Collection[str] = (), *, drop_length: bool) -> list[tuple[str, str]]:
    """The headers to answer the client with: without hop-by-hop ones, those named in `own` (which we set ourselves), and,
    with `drop_length`, Content-Length."""
    return _without(headers, _not_answered(tuple(own), drop_length=drop_length))


def session_name(values: Sequence[str], header: str = "X-Session-Id") -> str | None:
    """The one name that all values of a header give, None if they are empty; raises BadRequest where they differ or break the rule."""
    name = _single(values, header)
    if name is not None and not _NAME.fullmatch(name):
        raise BadRequest(f"{header} must be {_NAME_RULE}; this one has {_fault(name)}", param=header)
    return name


def mode(values: Sequence[str], header: str = "X-Context-Mode") -> Mode | None:
    """`auto`, `full` or `append`, in any case; None if the header is absent or empty; raises BadRequest otherwise."""
    return cast("Mode | None", _choice(values, header, _MODES))


def flag(values: Sequence[str], header: str = "X-Context-Bypass") -> bool:
    """True for `true` in any case; False if the header is absent, empty or `false`; raises BadRequest otherwise."""
    return _choice(values, header, ("true", "false")) == "true"


def _without(headers: Iterable[tuple[str, str]], gone: frozenset[str]) -> list[tuple[str, str]]:
    kept: list[tuple[str, str]] = []
    options: set[str] = set()
    for name, value in headers:
        low = name.lower()
        if low == "connection":
            options.update(option.strip().lower() for option in value.split(","))
        if low not in gone:
            kept.append((name, value if value.isascii() else _as_utf8(value)))
    return [header for header in kept if header[0].lower() not in options] if options - HOP_BY_HOP else kept


@lru_cache(maxsize=64)
def _not_sent(own: tuple[str, ...]) -> frozenset[str]:
    return HOP_BY_HOP | _OF_THIS_REQUEST | _lowered(own)


@lru_cache(maxsize=64)
def _not_answered(own: tuple[str, ...], *, drop_length: bool) -> frozenset[str]:
    return HOP_BY_HOP | _lowered(own) | (frozenset({"content-length"}) if drop_length else frozenset())


def _as_utf8(value: str) -> str:
    """A value whose bytes are no UTF-8 (they stand as lone surrogates), read as the Latin-1 of old (RFC 9110 §5.5): else they would be lost."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape").decode("latin-1")
    return value


def _lowered(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in names)


def _single(values: Sequence[str], header: str) -> str | None:
    """A header's one value; a list that some hop has joined with commas is taken apart again (RFC 9110 §5.3)."""
    if not values:
        return None
    if len(values) == 1 and "," not in values[0]:
        return values[0].strip(" \t") or None
    found = dict.fromkeys(part.strip(" \t") for value in values for part in value.split(","))
    found.pop("", None)
    if len(found) > 1:
        raise BadRequest(f"{header} is given {len(found)} times with different values; give it once", param=header)
    return next(iter(found), None)


def _choice(values: Sequence[str], header: str, allowed: Sequence[str]) -> str | None:
    value = _single([value.lower() for value in values], header)
    if value is not None and value not in allowed:
        raise BadRequest(f"{header} must be one of {', '.join(allowed)}", param=header)
    return value


def _fault(name: str) -> str:
    if len(name) > 128:
        return f"{len(name)} characters"
    return f"the character {next(c for c in name if not _NAME.fullmatch(c))!a}"
