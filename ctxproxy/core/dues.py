"""What is still to be made of something that is stored: kept with it in one transaction, so that a killed process leaves no gap.

It is made behind the answers and then let go of; what is there at a start, an earlier process has left undone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ctxproxy.core.messages import Tip
from ctxproxy.core.points import Point
from ctxproxy.core.records import SessionKey

DueKind: TypeAlias = Literal["note", "points"]
LeftReason: TypeAlias = Literal["trimmed", "overflow", "by hand"]


class DueNote(msgspec.Struct, frozen=True, tag="note"):
    """A section of a memory file: of these messages, oldest first, which left a prompt."""

    tips: tuple[Tip, ...]
    reason: LeftReason
    user: str
    time: float

    @property
    def tip(self) -> Tip:
        """The newest of them."""
        return self.tips[-1]


class DuePoints(msgspec.Struct, frozen=True, tag="points"):
    """Memory points that a model gave with the summary of the history up to a message."""

    tip: Tip
    points: tuple[Point, ...]


Due: TypeAlias = DueNote | DuePoints


class DueOf(NamedTuple):
    """Something due, and the session it is of."""

    session: SessionKey
    due: Due


def kind_of(due: Due) -> DueKind:
    """What it is; there is one of a kind for each tip of a session."""
    return "note" if isinstance(due, DueNote) else "points"
