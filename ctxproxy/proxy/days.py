"""Which day and time it is where the memory files are kept."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

LOCAL, UNIVERSAL = "local", "UTC"


def zone_of(name: str) -> tzinfo | None:
    """The time zone of a name of `memory.timezone`; None for the machine's own."""
    return None if name == LOCAL else UTC if name == UNIVERSAL else ZoneInfo(name)


def local_time(time_s: float, zone: tzinfo | None) -> datetime:
    """The date and the time of day of a time, in a zone."""
    return datetime.fromtimestamp(time_s, UTC).astimezone(zone)


def age_of(day: str, time_s: float, zone: tzinfo | None) -> int:
    """How many days ago a `YYYY-MM-DD` was at a time, in a zone; 0 for one ahead, and for what is no day."""
    try:
        return max((local_time(time_s, zone).date() - date.fromisoformat(day)).days, 0)
    except ValueError:
        return 0


def until(hour: int, minute: int, time_s: float, zone: tzinfo | None) -> float:
    """Seconds from a time until a clock of the zone shows this hour and minute next; more than 0."""
    then = local_time(time_s, zone).replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=None)
    left = 0.0
    while left <= 0:
        left = then.replace(tzinfo=zone).timestamp() - time_s  # without a zone it is read as the machine's own
        then += timedelta(days=1)
    return left
