"""Calls with results, and what is recent."""

from __future__ import annotations

import pytest

from ctxproxy.core.exchanges import first_messages, may_edit, newest_messages, recent_start
from ctxproxy.core.messages import Directives, make
from tests.core.histories import assistant, call, long_turn, result, talk, tool_call, transcript, user


def test_ids_used_again_are_looked_up_within_their_group() -> None:
    it = transcript([user("q"), call("c", "first"), result("c", "1"), user("r"), call("c", "second"), result("c", "2")])
    assert [(e.at, e.call.name) for e in it.exchanges if e.call] == [(2, "first"), (5, "second")]


def test_parallel_results_find_their_own_calls() -> None:
    it = transcript([assistant(None, tool_calls=[tool_call("a", "x"), tool_call("b", "y")]), result("b", "1"), result("a", "2")])
    assert [(e.at, e.call.name) for e in it.exchanges if e.call] == [(1, "y"), (2, "x")]


def test_orphans_and_old_function_results_have_no_call() -> None:
    it = transcript([result("lost", "1"), user("q"), assistant(None, function_call={}), make({"role": "function", "name": "f", "content": "1"})])
    assert [(e.at, e.call) for e in it.exchanges] == [(0, None), (3, None)]


@pytest.mark.parametrize(
    ("keep_turns", "max_tokens", "start"),
    [(0, 10_000, 20), (1, 10_000, 20), (2, 10_000, 18), (4, 10_000, 14), (99, 10_000, 0), (4, 0, 20), (4, 140, 18)],
)
def test_recent_is_bounded_by_turns_and_by_tokens(keep_turns: int, max_tokens: int, start: int) -> None:
    assert recent_start(transcript(talk(10)), keep_turns, max_tokens) == start


def test_one_long_turn_is_recent_only_in_its_newest_groups() -> None:
    it = transcript(long_turn(300, 400))
    start = recent_start(it, 4, it.tokens // 3)
    assert 300 < start < 550
    assert start in {group.start for group in it.groups}
    assert recent_start(it, 4, 0) == it.newest.start


PARALLEL = [assistant(None, tool_calls=[tool_call("a"), tool_call("b")]), result("a", "1"), result("b", "2")]
EIGHT = [user("q"), *PARALLEL, assistant("x"), user("r"), call("c"), result("c", "3")]


@pytest.mark.parametrize(("count", "end"), [(0, 0), (1, 1), (2, 4), (3, 4), (4, 4), (5, 5), (99, 8)])
def test_the_first_messages_end_with_a_whole_group(count: int, end: int) -> None:
    assert first_messages(transcript(EIGHT), count) == end


@pytest.mark.parametrize(("count", "start"), [(1, 6), (2, 6), (3, 5), (4, 4), (5, 1), (7, 1), (8, 0), (99, 0)])
def test_the_newest_messages_begin_with_a_whole_group(count: int, start: int) -> None:
    it = transcript(EIGHT)
    assert newest_messages(it, count) == start
    assert recent_start(it, 99, 0, count) == start, "told in messages, neither turns nor tokens count"


def test_of_no_messages_none_are_the_newest() -> None:
    assert newest_messages(transcript([]), 5) == 0


def test_pinned_and_never_summarized_entries_are_not_edited() -> None:
    it = transcript([user("a"), user("b", Directives(never_summarize=True)), user("c")], pinned=[0])
    assert [may_edit(e) for e in it.entries] == [False, False, True]
