"""Memory points as values."""

from __future__ import annotations

import pytest

from ctxproxy.core.points import MemoryPoint, Point, PointChanges, heir
from ctxproxy.core.records import SessionKey

KEY = SessionKey("ab" * 16, "s")
POINT = Point("number", "budget", "5", "aa", 1.0, 1.0)


@pytest.mark.parametrize(("superseded_by", "taken_back", "in_force"), [(None, False, True), (2, False, False), (None, True, False), (2, True, False)])
def test_a_point_is_in_force_until_another_takes_its_place_or_it_is_taken_back(superseded_by: int | None, taken_back: bool, in_force: bool) -> None:
    assert MemoryPoint(1, POINT, KEY, "ann", superseded_by, taken_back).in_force is in_force


@pytest.mark.parametrize(
    ("changes", "any_at_all"),
    [
        (PointChanges(), False),
        (PointChanges((POINT,)), True),
        (PointChanges(replaced=((1, 0),)), True),
        (PointChanges(taken_back=((KEY, 1),)), True),
    ],
)
def test_changes_are_true_where_something_changes(changes: PointChanges, any_at_all: bool) -> None:
    assert bool(changes) is any_at_all


@pytest.mark.parametrize(
    ("number", "gone", "expected"),
    [
        (None, {1: 2}, None),
        (2, {}, 2),
        (2, {2: 3}, 3),
        (2, {3: 4, 2: 3}, 4),
        (2, {2: None}, None),
        (2, {2: 3, 3: 2}, 2),  # a ring: it ends
    ],
)
def test_what_stands_in_a_points_place_when_what_took_it_is_gone(number: int | None, gone: dict[int, int | None], expected: int | None) -> None:
    assert heir(number, gone) == expected
