"""The turn before the newest: which one is short enough to stay whole, and what it may take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ctxproxy.core.last_turns import aim, last_turn, stretch_beside
from ctxproxy.core.stages.base import Context
from ctxproxy.core.stretches import stretch_to
from ctxproxy.core.transcript import Entry, Span, Transcript
from tests.core.histories import assistant, call, context, result, talk, transcript, user

TALK = transcript([user("q0"), assistant("a0"), user("q1"), call("c"), result("c", "r" * 40), assistant("a1"), user("q2")])
"""5 tokens each, but 6 the call and 14 its result."""


def within(limit: int, **changes: Any) -> Context:
    return replace(context(int(limit * 0.55), limit, keep_recent_turns=4), **changes)


@pytest.mark.parametrize(("limit", "found"), [(1000, Span(2, 6)), (100, Span(2, 6)), (74, None)], ids=["a large window", "a third", "more than that"])
def test_the_turn_before_the_newest_is_the_last_one_if_it_is_short(limit: int, found: Span | None) -> None:
    assert last_turn(TALK, within(limit)) == found


def test_in_a_large_window_a_last_turn_is_short_by_its_share() -> None:
    t = transcript([user("q0"), assistant("a0"), user("q1"), assistant("a " * 1200), user("q2")])
    assert last_turn(t, within(10_000)) == Span(2, 4)
    assert last_turn(t, within(3_000)) is None


def test_there_is_no_last_turn_in_front_of_the_first_or_behind_a_text_of_ours_or_where_only_the_newest_is_kept() -> None:
    frame = Entry(user("background"), 9, origin="inserted", covers=("a" * 32,))
    assert last_turn(Transcript((frame, *TALK.entries[-1:])), within(1000)) is None
    assert last_turn(Transcript(()), within(1000)) is None
    assert last_turn(TALK, within(1000, keep_recent_turns=1)) is None


LONG = transcript([*talk(8), user("Show the table."), assistant("row " * 60), user("Add a column.")])
LAST = Span(17, 19)


@pytest.mark.parametrize(("frame", "spared"), [(60, True), (120, False)], ids=["there is room for both", "a frame of half the window"])
def test_a_stretch_ends_before_it_if_that_can_be(frame: int, spared: bool) -> None:
    told = within(240)
    assert last_turn(LONG, told) == LAST
    stretch = stretch_beside(LONG, told, frame, "summarize")
    assert stretch is not None
    assert (stretch.spans[-1].end <= LAST.start) == spared


def test_where_little_but_a_frame_stands_before_it_it_gives_way() -> None:
    frame = Entry(user("background " * 12), 36, origin="inserted", stage="summarize", covers=("a" * 32,))
    t = Transcript((frame, *LONG.entries[LAST.start - 1 :]))
    stretch = stretch_beside(t, within(240), 60, "summarize")
    assert stretch is not None
    assert stretch.spans[-1].end > 2


@pytest.mark.parametrize(("needed", "target", "stop"), [(100, 132, 132), (150, 132, 150), (230, 132, 192), (230, 200, 200)])
def test_the_prompt_stops_above_the_target_by_what_it_takes_and_within_four_fifths_of_the_limit(needed: int, target: int, stop: int) -> None:
    told = within(240, target=target)
    before = stretch_to(LONG, LAST.start, frozenset())
    beyond = stretch_to(LONG, LAST.end, frozenset())
    assert before is not None
    assert beyond is not None
    assert aim(LONG, told, before, needed) == stop
    assert aim(LONG, told, beyond, needed) == target
