"""Which groups stay where there is no room for all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctxproxy.core.applying import apply
from ctxproxy.core.filling import SLACK, Window
from ctxproxy.core.messages import Message
from ctxproxy.core.transcript import Transcript
from tests.core.histories import assistant, call, count, long_turn, result, talk, transcript, user


def window(messages: Sequence[Message], pinned: Sequence[int] = ()) -> Window:
    return Window(transcript(messages, pinned), "en", count)


def left(it: Window, order: Sequence[int], most: int) -> Transcript:
    """What stays: as the driver takes the folds, those that gain something."""
    folds = [fold for run, fold in it.filled(order, most) if sum(it.sizes[run.start : run.stop]) > sum(map(count, fold.by))]
    return apply(it.transcript, folds, "test", count)


def test_only_what_may_go_is_free() -> None:
    assert window([user("a"), call("c"), result("c", "1"), assistant("b"), user("now")]).free == [0, 1, 2]
    assert window(talk(2), pinned=[1]).free == [0, 2, 3]


def test_what_comes_first_in_the_order_stays_and_the_order_of_the_prompt_with_it() -> None:
    it = window(talk(10))
    newest_first = it.free[::-1]
    assert [e.tip for e in left(it, newest_first, 400).entries] == [e.tip for e in it.transcript.entries[-len(left(it, newest_first, 400).entries) :]]
    oldest_first = left(it, it.free, 400)
    assert oldest_first.entries[0] == it.transcript.entries[0]
    assert oldest_first.entries[-1] == it.transcript.entries[-1]


def test_a_large_group_that_does_not_fit_is_passed_over_for_a_smaller_one() -> None:
    messages = [user("go"), assistant("x" * 4000), user("small one"), assistant("small two"), user("now")]
    it = window(messages)
    assert [e.message for e in left(it, [1, 2, 3, 0], 80).entries if e.tip] == [messages[0], *messages[2:]]


@pytest.mark.parametrize("messages", [talk(60, 1), talk(60), long_turn(60)], ids=["tiny messages", "messages", "calls"])
@pytest.mark.parametrize("share", [0.9, 0.6, 0.3])
def test_what_stays_fits_and_is_not_much_less_than_could_be(messages: list[Message], share: float) -> None:
    it = window(messages)
    most = int(it.transcript.tokens * share)
    after = left(it, sorted(it.free, key=lambda n: (n % 2, n)), most)
    largest = max(it.sizes) + 40
    assert most * (1 - SLACK) - largest <= after.tokens <= most


def test_what_must_stay_stays_also_where_it_is_too_much() -> None:
    it = window([user("a " * 200), assistant("b " * 200), user("now " * 500)])
    assert [e.tip for e in left(it, it.free, 10).entries] == [it.transcript.entries[-1].tip]


def test_what_fits_stays_whole() -> None:
    it = window(talk(3))
    assert it.filled(it.free, it.transcript.tokens) == []
