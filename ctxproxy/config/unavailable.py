"""The settings whose feature this version does not have yet: one table, from which a row goes when the feature comes.

A key's default is accepted though nothing comes of it (the interface fixes the names and the defaults), and so is what turns
the feature off; a value that asks for it is refused, so that nobody believes to have what is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Asks: TypeAlias = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A key, the feature it needs, the values of it that are refused; `idle`: its very default has no effect in this version."""

    path: str
    feature: str
    asks: Asks
    idle: bool = False


def _none(_: object) -> bool:
    return False


def _beyond(*values: object) -> Asks:
    return lambda value: value not in values


def _among(*values: object) -> Asks:
    return lambda value: isinstance(value, str) and value in values


def _like(pattern: str) -> Asks:
    return lambda value: isinstance(value, str) and re.match(pattern, value) is not None


TABLE: tuple[Unavailable, ...] = (
    Unavailable("listen.workers", "more than one worker process", _beyond(1)),
    Unavailable("memory.preload.chunks", "preloading pieces of earlier sessions", _beyond(5, 0), idle=True),
    Unavailable("retrieval.kind", "retrieval", _among("keyword", "dense"), idle=True),
    Unavailable("retrieval.top_k", "retrieval", _beyond(3), idle=True),
    Unavailable("retrieval.min_score", "retrieval", _beyond(0), idle=True),
    Unavailable("retrieval.max_tokens", "retrieval", _beyond(2000), idle=True),
    Unavailable("store.url", "PostgreSQL as a store", _like(r"(?i)postgres")),
)


def missing_feature(path: str, value: object) -> str | None:
    """What a value asks for and this version has not, None if there is nothing of the kind."""
    canonical = re.sub(r"^profiles\..*\.", "context.", path)
    return next((row.feature for row in TABLE if row.path == canonical and row.asks(value)), None)
