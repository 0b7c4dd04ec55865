"""Sharing a room among pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.selection import is_noteworthy, level, select

sizes = st.lists(st.integers(0, 200), max_size=60)


@pytest.mark.parametrize(
    ("pieces", "room", "share"),
    [([], 10, 0), ([5, 5], 10, 5), ([5, 5], 100, 5), ([1, 100, 100], 51, 25), ([10, 10], 0, 0), ([10], -5, 0)],
)
def test_small_pieces_stay_whole_and_large_ones_share_alike(pieces: list[int], room: int, share: int) -> None:
    assert level(pieces, room) == share


@given(sizes, st.integers(0, 5000))
def test_pieces_cut_to_the_level_fit_the_room(pieces: list[int], room: int) -> None:
    assert sum(min(size, level(pieces, room)) for size in pieces) <= room or not pieces


@given(sizes, st.sets(st.integers(0, 60)), st.integers(0, 3000))
def test_kept_pieces_are_in_order_fit_the_room_and_hold_what_is_noteworthy_if_it_fits(pieces: list[int], noted: set[int], room: int) -> None:
    kept = select(pieces, noted.__contains__, room, 10)
    assert kept == sorted(set(kept))
    assert all(0 <= at < len(pieces) for at in kept)
    assert sum(pieces[at] for at in kept) <= max(room, 0)


def test_beginning_and_end_and_the_noteworthy_middle_are_kept() -> None:
    assert select([10] * 100, lambda at: at == 50, 120, 20) == [0, 1, 2, 3, 4, 50, 98, 99]


def test_without_noteworthy_pieces_the_beginning_gets_the_rest() -> None:
    assert select([10] * 100, None, 120, 20) == [0, 1, 2, 3, 4, 5, 6, 7, 98, 99]


def test_everything_is_kept_where_it_fits() -> None:
    assert select([1, 1, 1], None, 100, 10) == [0, 1, 2]


@pytest.mark.parametrize("text", ["ValueError: x", "Traceback (most recent call last):", "1 FAILED", "连接失败", "出现异常"])
def test_failures_are_noteworthy_in_both_languages(text: str) -> None:
    assert is_noteworthy(text)
    assert not is_noteworthy("all is well 一切正常")
