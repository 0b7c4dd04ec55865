"""Which day it is where the memory files are kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ctxproxy.proxy.days import age_of, local_time, until, zone_of

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC).timestamp()
MIDNIGHT_THERE = datetime(2026, 11, 30, 17, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("zone", "time_s", "day"),
    [
        ("UTC", MIDNIGHT_THERE, "2026-11-30 17:00"),
        ("Asia/Shanghai", MIDNIGHT_THERE, "2026-12-01 01:00"),
        ("America/New_York", MIDNIGHT_THERE, "2026-11-30 12:00"),
        ("local", NOON, f"{datetime.fromtimestamp(NOON):%Y-%m-%d %H:%M}"),
    ],
)
def test_the_day_is_that_of_the_zone(zone: str, time_s: float, day: str) -> None:
    assert f"{local_time(time_s, zone_of(zone)):%Y-%m-%d %H:%M}" == day


@pytest.mark.parametrize(
    ("zone", "time_s", "hours"), [("UTC", NOON, 11 + 55 / 60), ("Asia/Shanghai", NOON, 3 + 55 / 60), ("UTC", NOON + 3600 * (11 + 55 / 60), 24.0)]
)
def test_the_time_until_an_hour_of_the_zone(zone: str, time_s: float, hours: float) -> None:
    assert until(23, 55, time_s, zone_of(zone)) == pytest.approx(hours * 3600)
    assert 0 < until(23, 55, time_s, None) <= 24 * 3600


@pytest.mark.parametrize(
    ("zone", "day", "days"),
    [
        ("UTC", "2026-10-31", 30),
        ("UTC", "2026-11-30", 0),
        ("Asia/Shanghai", "2026-11-30", 1),
        ("UTC", "2026-12-24", 0),
        ("UTC", "", 0),
        ("UTC", "2026-13-99", 0),
    ],
    ids=["30 days ago", "today", "yesterday over there", "ahead", "of the distilled memory", "no day at all"],
)
def test_how_long_ago_a_day_was(zone: str, day: str, days: int) -> None:
    assert age_of(day, MIDNIGHT_THERE, zone_of(zone)) == days
