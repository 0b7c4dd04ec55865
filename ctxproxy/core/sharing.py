"""Pieces of one session that another may read by explicit grant (003-53), and what users say of a session; values only."""

from __future__ import annotations

from dataclasses import dataclass

from ctxproxy.core.messages import Tip
from ctxproxy.core.records import SessionKey

MAX_GRANTS = 100
"""Of one session."""
MAX_PIECES = 200
"""Of one grant."""
MAX_RATINGS = 1000
"""Kept of one session, the newest."""
MAX_RATING_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Grant:
    """That some messages and memory points of `owner` may be read from another session, or from all of a user's, of the same tenant."""

    number: int
    owner: SessionKey
    to_session: SessionKey | None
    to_user: str
    """"" where a session is named."""
    tips: tuple[Tip, ...]
    facts: tuple[int, ...]
    created: float
    expires: float | None
    """None: until it is revoked."""


@dataclass(frozen=True, slots=True)
class Rating:
    """What somebody thinks of a session: 1 to 5, and in words."""

    rating: int
    text: str
    created: float


@dataclass(frozen=True, slots=True)
class RatingTotals:
    """Ratings over all sessions."""

    ratings: int = 0
    points: int = 0

    @property
    def mean(self) -> float | None:
        """None where nobody has rated."""
        return round(self.points / self.ratings, 2) if self.ratings else None
