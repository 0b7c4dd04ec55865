"""Pages of sessions: how long they are, and the cursor that tells where the one before ended."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from ctxproxy.errors import BadRequest


class Place(NamedTuple):
    """A session's place in the list, the last used first; ties by the number it was made under."""

    last_used: float
    serial: int


MAX_SESSIONS = 1000
TOP = Place(math.inf, 0)


def cursor_of(place: Place) -> str:
    """The opaque text of a place."""
    return f"{place.last_used.hex()}_{place.serial}"


def place_of(cursor: str | None) -> Place:
    """The place that a cursor names, TOP for None; raises BadRequest if it is none of ours."""
    if cursor is None:
        return TOP
    last_used, _, serial = cursor.partition("_")
    if not re.fullmatch(r"[0-9]{1,18}", serial):
        raise BadRequest("the cursor is not one that this list gave", param="cursor")
    try:
        return Place(float.fromhex(last_used), int(serial))
    except (ValueError, OverflowError):
        raise BadRequest("the cursor is not one that this list gave", param="cursor") from None


def page_size(limit: int) -> int:
    """How many sessions a page holds that was asked to hold `limit`: 1 to 1000."""
    return max(1, min(limit, MAX_SESSIONS))
