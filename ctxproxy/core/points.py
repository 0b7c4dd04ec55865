"""Memory points as values: what is worth knowing of a conversation by its key, and how a store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ctxproxy.core.messages import Tip
from ctxproxy.core.records import SessionKey, Span

PointKind: TypeAlias = Literal["entity", "place", "number", "date", "decision", "preference", "rule", "note", "action", "feedback", "anchor"]
PointSource: TypeAlias = Literal["rules", "summary"]

MAX_POINTS = 500
"""Kept of one session, what is history included; beyond that history goes first, then the least weighty, of equal ones the oldest."""
MAX_USER_SESSIONS = 50
"""Of a user, those used last, whose points are looked through."""
MAX_KEY_CHARS, MAX_VALUE_CHARS = 120, 600
"""A rule is at most as long as a sentence that is taken for one."""


@dataclass(frozen=True, slots=True)
class Point:
    """Something worth knowing, as one message or summary tells it: "budget" is "4,500 €"."""

    kind: PointKind
    key: str
    """What it is about; a newer value of the same kind and key takes its place. An anchor (id, path, URL) is its own key."""
    value: str
    tip: Tip
    """The message that tells it; of a summary, the message up to which that tells."""
    time: float
    weight: float
    source: PointSource = "rules"


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """A point as it is kept: `number` names it within its session."""

    number: int
    point: Point
    session: SessionKey
    user: str = ""
    """Whose session it was then; "" if that was not said."""
    superseded_by: int | None = None
    """The number of the one that took its place."""
    taken_back: bool = False
    """The user's own words ended it."""

    @property
    def in_force(self) -> bool:
        return self.superseded_by is None and not self.taken_back


@dataclass(frozen=True, slots=True)
class PointChanges:
    """What new messages change: points that are new, in order; which old one each of them replaces; which ones ended."""

    new: tuple[Point, ...] = ()
    replaced: tuple[tuple[int, int], ...] = ()
    """Number of an old point of the session, place in `new`."""
    taken_back: tuple[tuple[SessionKey, int], ...] = ()
    """Also of the user's other sessions."""

    def __bool__(self) -> bool:
        return bool(self.new or self.replaced or self.taken_back)


@dataclass(frozen=True, slots=True)
class Unread:
    """A conversation with messages that were not read for memory points yet: those, and whose session it is."""

    session: SessionKey
    user: str
    span: Span


def heir(number: int | None, gone: Mapping[int, int | None]) -> int | None:
    """What stands in a point's place when points are gone, of which is known what took theirs; None if nothing does."""
    ways = dict(gone) if number in gone else {}
    while number is not None and number in ways:
        number = ways.pop(number)  # each once: a file that was imported may hold a ring
    return number
