"""JSON in and out: fast where msgspec can, tolerant where only the standard library can (lone surrogates).

A lone surrogate (`"\\ud83c"`) is legal JSON text and a legal Python string, but has no UTF-8 form; msgspec refuses it.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec


def decode(raw: bytes) -> Any:
    """The value of a JSON text; raises ValueError if it is none."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
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
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
