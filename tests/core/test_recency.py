"""Where the newest part of a prompt begins."""

from __future__ import annotations

import pytest

from ctxproxy.core.recency import fitting_start, newest_tokens, newest_turns, own_turns
from ctxproxy.core.transcript import Entry, Transcript
from tests.core.histories import assistant, call, result, transcript, user

TALK = transcript([user("q0"), assistant("a0"), user("q1"), call("c"), result("c", "r" * 40), assistant("a1"), user("q2")])
"""5 tokens each, but 6 the call and 14 its result."""


@pytest.mark.parametrize(("tokens", "start"), [(4, 7), (5, 6), (10, 5), (29, 5), (32, 3), (1000, 0)])
def test_the_newest_groups_within_some_tokens_are_whole(tokens: int, start: int) -> None:
    assert newest_tokens(TALK, tokens) == start


@pytest.mark.parametrize(("turns", "start"), [(0, 6), (1, 2), (2, 0), (9, 0)])
def test_the_turn_that_is_being_answered_comes_on_top_of_the_finished_ones(turns: int, start: int) -> None:
    assert newest_turns(TALK, turns) == start


def test_a_text_of_ours_is_no_turn_of_its_own() -> None:
    frame = Entry(user("background"), 9, origin="inserted", covers=("a" * 32,))
    framed = Transcript((frame, Entry(assistant("noted"), 5, origin="inserted"), *TALK.entries))
    assert len(own_turns(framed)) == 3
    assert newest_turns(framed, 9) == 2
    assert newest_turns(Transcript(()), 1) == 0


@pytest.mark.parametrize(("start", "room", "found"), [(0, 1000, 0), (2, 1000, 2), (2, 20, 5), (0, 9, 6), (0, 0, 6), (4, 1000, 5), (7, 0, 6)])
def test_what_does_not_fit_begins_at_a_later_group_but_never_behind_the_newest(start: int, room: int, found: int) -> None:
    assert fitting_start(TALK, start, room) == found
