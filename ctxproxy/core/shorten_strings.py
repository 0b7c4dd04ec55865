"""Shortening the long strings inside a JSON object; every other character of its text stays, so numbers, keys and blanks are as they were."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from ctxproxy.core import cuts, jsontext

STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?', re.DOTALL)
"""A string of a valid JSON text; with the group, a key."""


def with_short_strings(text: str, max_chars: int, keep_chars: int, note: Callable[[int], str]) -> str | None:
    """The object's text with its longest strings cut to their beginning and a note of their length, as many as it takes to have at most
    `max_chars` characters; None if it is no object or cannot get that short so.
    """
    if not _is_object(text):
        return None
    excess = len(text) - max_chars
    values = [found for found in STRING.finditer(text) if found[1] is None]
    short: dict[int, tuple[int, str]] = {}
    for found in sorted(values, key=lambda found: found.start() - found.end()):
        if excess <= 0:
            break
        literal = _cut(found[0], keep_chars, note, ascii_only=text.isascii())
        if len(literal) < len(found[0]):
            short[found.start()] = (found.end(), literal)
            excess -= len(found[0]) - len(literal)
    return _replaced(text, short) if excess <= 0 else None


def _is_object(text: str) -> bool:
    try:
        return isinstance(jsontext.decode(text.encode("utf-8", "surrogatepass")), dict)
    except ValueError:
        return False


def _cut(literal: str, keep_chars: int, note: Callable[[int], str], *, ascii_only: bool) -> str:
    value = json.loads(literal, strict=False)
    head = value[: cuts.before(value, keep_chars)].rstrip()
    return json.dumps(f"{head} {note(len(value))}".lstrip(), ensure_ascii=ascii_only)


def _replaced(text: str, short: dict[int, tuple[int, str]]) -> str:
    pieces, at = [], 0
    for start, (end, literal) in sorted(short.items()):
        pieces += [text[at:start], literal]
        at = end
    return "".join((*pieces, text[at:]))
