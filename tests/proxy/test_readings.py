"""What is read out of messages is remembered, within a bound in bytes."""

from __future__ import annotations

from itertools import count

from ctxproxy.core.messages import Message
from ctxproxy.proxy.counting import ENTRY_BYTES, READING_FACTOR, Readings
from tests.core.histories import user


def size(message: Message) -> int:
    return ENTRY_BYTES + READING_FACTOR * len(message.raw)


def test_the_same_is_made_once_for_a_name_and_a_messages_bytes() -> None:
    made = count()
    readings = Readings(100_000)
    asked = [("units", "a"), ("values", "a"), ("units", "a"), ("units", "b"), ("values", "a")]
    assert [readings(name, user(text), lambda: next(made)) for name, text in asked] == [0, 1, 0, 2, 1]


def test_the_one_that_was_not_used_for_longest_gives_way() -> None:
    made = count()
    a, b, c = user("a"), user("b"), user("c")
    readings = Readings(2 * size(a))
    assert [readings("n", message, lambda: next(made)) for message in (a, b, a, c, a, b)] == [0, 1, 0, 2, 0, 3]


def test_what_is_larger_than_all_the_room_is_not_kept() -> None:
    made = count()
    large = user("x" * 1000)
    readings = Readings(100)
    assert [readings("n", large, lambda: next(made)) for _ in range(2)] == [0, 1]
