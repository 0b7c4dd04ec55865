"""The settings whose feature this version does not have yet: one table, from which a row goes when the feature comes.

A value that asks for one is refused, so that nobody believes to have what is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Asks: TypeAlias = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A key, the feature it needs, the values of it that are refused."""

    path: str
    feature: str
    asks: Asks


def _like(pattern: str) -> Asks:
    return lambda value: isinstance(value, str) and re.match(pattern, value) is not None


TABLE: tuple[Unavailable, ...] = (Unavailable("store.url", "PostgreSQL as a store", _like(r"(?i)postgres")),)


def missing_feature(path: str, value: object) -> str | None:
    """What a value asks for and this version has not, None if there is nothing of the kind."""
    canonical = re.sub(r"^profiles\..*\.", "context.", path)
    return next((row.feature for row in TABLE if row.path == canonical and row.asks(value)), None)
