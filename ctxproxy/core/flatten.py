"""JSON as plain lines: an object's plain values on one line, without quotes and brackets; what says the same in fewer tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxproxy.core import jsontext

MOST_DEPTH = 12
"""What lies deeper stays JSON."""
MOST_CHARS = 400_000
"""A longer text is not read: parsing it takes longer than it is worth."""


def flattened(text: str) -> str:
    """The lines of a JSON object or array; any other text as it is. Empty values are left out."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > MOST_CHARS:
        return text
    try:
        value = jsontext.decode(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return text
    return "\n".join(_lines(value, "", MOST_DEPTH)) if isinstance(value, dict | list) and value else text


def _lines(value: dict[str, Any] | list[Any], name: str, depth: int) -> Iterator[str]:
    if isinstance(value, dict):
        items: list[tuple[str, Any]] = [(str(key), item) for key, item in value.items()]
    else:
        items = [("" if _is_plain(item) else name, item) for item in value]
    plain = [_named(key, _text(item)) for key, item in items if (_is_plain(item) or not depth) and item not in (None, "")]
    if plain:
        yield _named(name, ", ".join(plain))
    for key, item in items if depth else ():
        if not _is_plain(item):
            yield from _lines(item, key, depth - 1)


def _is_plain(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _named(name: str, text: str) -> str:
    return f"{name}: {text}" if name else text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else jsontext.encode(value).decode("utf-8", "surrogatepass")
