"""Prints answers of the admin API for people: tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

TIMES = frozenset({"created", "last_used", "time", "when"})
"""The names under which the admin API gives points in time, as seconds since 1970."""


def as_json(value: object) -> str:
    """Indented JSON, readable in any language."""
    return _readable(value, indent=2)


def show(value: object, in_words: Callable[[Mapping[str, Any]], str], *, as_is: bool) -> None:
    """Print an answer in words, or as JSON where that is asked for or it is another answer than the words are for."""
    try:
        text = as_json(value) if as_is or not isinstance(value, Mapping) else in_words(value)
        print(text.encode("utf-8", "backslashreplace").decode())  # a lone surrogate cannot be printed
    except (KeyError, TypeError, AttributeError):  # a proxy of another version answered
        print(as_json(value))


def as_line(value: object) -> str:
    """One line of JSON."""
    return _readable(value, indent=None)


def _readable(value: object, *, indent: int | None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate has no encoding: escaped it can be printed and read back
        return json.dumps(value, indent=indent)
    return text


def table(entries: Iterable[Mapping[str, object]], whole: Sequence[str] = ()) -> str:
    """The entries' plain values as aligned columns under their names, long ones cut but for the columns `whole`; "" for no entries."""
    rows = list(entries)
    names = [name for name in dict.fromkeys(key for row in rows for key in row) if not any(isinstance(row.get(name), dict | list) for row in rows)]
    cells = [[name.upper() for name in names], *([_cell(name, row.get(name), whole=name in whole) for name in names] for row in rows)]
    return "\n".join(_aligned(cells)) if rows else ""


def time_shown(time_s: float) -> str:
    """A point in time by the clock of this machine."""
    return datetime.fromtimestamp(time_s).astimezone().isoformat(" ", "seconds")


def _cell(name: str, value: object, *, whole: bool) -> str:
    if name in TIMES and isinstance(value, int | float):
        return time_shown(value)
    text = "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
    return text if whole or len(text) <= 60 else text[:59] + "…"


def _aligned(cells: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
