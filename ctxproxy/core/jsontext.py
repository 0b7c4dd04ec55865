"""JSON in and out: fast where msgspec can, tolerant where only the standard library can (lone surrogates, NaN, huge exponents).

A lone surrogate (`"\\ud83c"`) is legal JSON text and a legal Python string, but has no UTF-8 form; msgspec refuses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_VALUE = json.JSONDecoder()
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_DELETE = "\x7f"
"""The one ASCII character that the standard library escapes and msgspec does not."""
_BLANKS = re.compile(r"[ \t\n\r]*")  # RFC 8259 §2
_REFUSED = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


def decode(raw: bytes) -> Any:
    """The value of a JSON text; raises ValueError if it is none."""
    try:
        return msgspec.json.decode(raw)
    except _REFUSED:
        try:
            return json.loads(raw)
        except RecursionError:
            raise ValueError("the JSON text is nested too deeply") from None


def encode(value: Any) -> bytes:
    """A compact JSON text, UTF-8; lone surrogates stay escaped."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def canonical(value: Any) -> bytes:
    """A JSON text that is equal for equal values: keys sorted, no blanks, ASCII only."""
    return _CANONICAL.encode(value).encode("ascii")


def canonical_text(text: str) -> bytes:
    """What `canonical` gives for a text, sooner where that is ASCII."""
    if text.isascii() and _DELETE not in text:
        return msgspec.json.encode(text)
    return canonical(text)


def object_of(texts: Mapping[str, bytes]) -> bytes:
    """The JSON object with these keys and the exact texts of their values, in order."""
    pieces = []
    for key, text in texts.items():
        pieces += [b",", encode(key), b":", text]
    return b"".join([b"{", *pieces[1:], b"}"])


def members(raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The exact text of each value of a JSON object by key, in order, the last of equal keys; raises ValueError if it is no object.

    The texts are views of `raw` where msgspec can read it; their own strings are not checked to be valid UTF-8.
    """
    try:
        return _MEMBERS.decode(raw)
    except _REFUSED:
        text = _text(raw)
        return {key: msgspec.Raw(text[start:end].encode()) for key, start, end in spans(text)}


def items(raw: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """The exact text of each element of a JSON array; raises ValueError if it is none; views as in `members`."""
    try:
        return _ITEMS.decode(raw)
    except _REFUSED:
        text = _text(raw)
        return [msgspec.Raw(text[start:end].encode()) for _, start, end in _spans(text, "[", "]")]


def spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Key, start and end of each value of the one object that a text holds; raises ValueError where it is none."""
    return _spans(text, "{", "}")


def item_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each element of the one array that a text holds; raises ValueError where it is none."""
    return ((start, end) for _, start, end in _spans(text, "[", "]"))


def _text(raw: bytes | msgspec.Raw) -> str:
    """Python's strict UTF-8 decoding: encoding a slice again gives its exact bytes; a byte order mark is skipped (RFC 8259 §8.1)."""
    return bytes(raw).decode("utf-8-sig")


def _spans(text: str, opening: str, closing: str) -> Iterator[tuple[str, int, int]]:
    """Key ("" in an array), start and end of each value of the one object or array that a text holds."""
    at = _expect(text, _past_blanks(text, 0), opening)
    more = text[at : at + 1] != closing
    while more:
        key = ""
        if opening == "{":
            key, at = _key(text, at)
        end = end_of_value(text, at)
        yield key, at, end
        at = _past_blanks(text, end)
        more = text[at : at + 1] != closing
        if more:
            at = _expect(text, at, ",")
    if _past_blanks(text, at + 1) != len(text):
        raise json.JSONDecodeError("Extra data", text, at + 1)


def _key(text: str, at: int) -> tuple[str, int]:
    """A key, and where its value begins."""
    end = end_of_value(text, at)
    if text[at] != '"':
        raise json.JSONDecodeError("Expecting a key in double quotes", text, at)
    return json.loads(text[at:end]), _expect(text, _past_blanks(text, end), ":")


def end_of_value(text: str, at: int) -> int:
    """Where the value ends that begins at a place in a text; raises ValueError if none does."""
    try:
        return _VALUE.raw_decode(text, at)[1]
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None


def _expect(text: str, at: int, mark: str) -> int:
    """Past a mark and the blanks behind it."""
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"Expecting {mark!r}", text, at)
    return _past_blanks(text, at + 1)


def _past_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
