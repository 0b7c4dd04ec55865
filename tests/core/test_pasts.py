"""What is known of a history stays right whatever history is looked at next."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.messages import ROOT, Message, chain, identity
from ctxproxy.core.pasts import LOOKED_BACK, Past, past_of
from tests.core.histories import assistant, user


def told(past: Past) -> tuple[tuple[Message, ...], list[str], int]:
    return past.messages, list(past.tips), past.users


def expected(history: tuple[Message, ...]) -> tuple[tuple[Message, ...], list[str], int]:
    return history, chain(ROOT, map(identity, history)), sum(one.role == "user" for one in history)


def counting(asked: list[str]) -> Callable[[Message], int]:
    """Counts characters, and notes of what."""

    def count(message: Message) -> int:
        asked.append(message.content)
        return len(message.content)

    return count


def test_of_a_history_that_goes_on_only_what_is_new_is_looked_at() -> None:
    front, identified, counted = (user("one"), assistant("two")), list[Message](), list[str]()

    def noted(message: Message) -> bytes:
        identified.append(message)
        return identity(message)

    first = past_of(front, noted)
    assert first.counts("chars", counting(counted)) == (3, 3)
    longer = (*front, user("three"))
    past = past_of(longer, noted)
    assert told(past) == expected(longer)
    assert past.counts("chars", counting(counted)) == (3, 3, 5)
    assert (identified, counted) == (list(longer), ["one", "two", "three"])
    for again in (longer, list(longer)):
        assert told(past_of(again, noted)) == expected(longer)
    assert identified == list(longer)
    assert front[-1].past is None, "what is known of the shorter one is kept no more"


def test_an_empty_history_has_nothing_and_keeps_nothing() -> None:
    assert told(past_of(())) == ((), [], 0)
    assert past_of(()).tip == ROOT


def test_the_same_messages_elsewhere_are_another_history() -> None:
    one, two, three = user("one"), assistant("two"), user("three")
    past_of((one, two))
    assert told(past_of((three, two))) == expected((three, two))
    assert told(past_of((one, two, three))) == expected((one, two, three))


def test_how_far_back_is_looked_changes_nothing_but_the_work() -> None:
    front = (user("one"),)
    past_of(front)
    for more in (LOOKED_BACK - 1, LOOKED_BACK, LOOKED_BACK + 1):
        longer = (*front, *(assistant(str(n)) for n in range(more)))
        assert told(past_of(longer)) == expected(longer)


@pytest.mark.parametrize("factor", [1.0, 1.25])
def test_tokens_are_asked_for_once_in_a_way_of_counting_and_multiplied_rounded_up(factor: float) -> None:
    counted: list[str] = []
    past = past_of((user("one"), user("three")))
    assert past.uncounted("chars") == past.messages
    for _ in range(2):
        assert past.counts("chars", counting(counted), factor) == tuple(math.ceil(n * factor) for n in (3, 5))
    assert past.counts("chars", counting(counted), 2.0) == (6, 10)
    assert counted == ["one", "three"]
    assert (past.uncounted("chars"), past.uncounted("words")) == ((), past.messages)
    assert past.counts("words", lambda _: 1, factor) == (math.ceil(factor),) * 2
    longer = past_of((*past.messages, user("seven")))
    assert longer.uncounted("words") == longer.messages[2:]
    assert longer.counts("words", lambda _: 1, factor) == (math.ceil(factor),) * 3


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.lists(st.integers(0, 5), max_size=4), st.sampled_from(["a", "b"]), st.sampled_from([1.0, 1.5])), max_size=12
    )
)
def test_any_histories_of_the_same_messages_in_any_order_are_told_right(steps: list[tuple[int, list[int], str, float]]) -> None:
    pool = [user(str(n) * (n + 1)) if n % 2 else assistant(str(n)) for n in range(6)]
    history: tuple[Message, ...] = ()
    for kept, added, way, factor in steps:
        history = (*history[:kept], *(pool[n] for n in added))
        past = past_of(history)
        assert told(past) == expected(history)
        size = 1 if way == "a" else 3
        assert past.counts(way, lambda one, size=size: size * len(one.content), factor) == tuple(  # type: ignore[misc]
            math.ceil(size * len(one.content) * factor) for one in history
        )


def test_what_is_known_of_a_history_goes_with_it_and_needs_no_garbage_collector() -> None:
    class Held(dict[str, Any]):
        """What a message says, to be watched."""

    fields = Held(user("two").fields)
    watched = weakref.ref(fields)
    history = (assistant("one"), Message(user("two").raw, fields))
    past = past_of(history)
    past.counts("chars", lambda _: 1)
    gc.disable()
    try:
        del past, history, fields
        assert watched() is None
    finally:
        gc.enable()
