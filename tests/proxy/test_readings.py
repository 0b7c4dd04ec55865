"""What is read out of messages is remembered, within a bound in bytes."""

from __future__ import annotations

from itertools import count

import pytest

from ctxproxy.core.memo import Reading
from ctxproxy.core.messages import Message
from ctxproxy.proxy.counting import READ_BYTES, READING_BYTES, Readings
from tests.core.histories import user

UNITS, VALUES = Reading("units", 5.0), Reading("values", 2.0)


def size(message: Message, *readings: Reading) -> int:
    return READ_BYTES + sum(READING_BYTES + int(one.factor * len(message.raw)) for one in readings)


def test_the_same_is_made_once_for_a_reading_and_a_messages_bytes() -> None:
    made = count()
    readings = Readings(100_000)
    asked = [(UNITS, "a"), (VALUES, "a"), (UNITS, "a"), (UNITS, "b"), (VALUES, "a")]
    assert [readings(what, [user(text)], lambda _: next(made)) for what, text in asked] == [[0], [1], [0], [2], [1]]


def test_of_many_messages_only_those_are_read_that_were_not() -> None:
    readings = Readings(100_000)
    read: list[Message] = []

    def make(message: Message) -> int:
        read.append(message)
        return len(message.raw)

    a, b, c = user("a"), user("bb"), user("ccc")
    assert readings(UNITS, [b], make) == [len(b.raw)]
    assert readings(UNITS, [a, b, c, a], make) == [len(one.raw) for one in (a, b, c, a)]
    assert readings(UNITS, [c, a, b], make) == [len(one.raw) for one in (c, a, b)]
    assert read == [b, a, c, a]  # one that stands twice is read twice the first time, and held once


def test_the_message_that_was_not_used_for_longest_gives_way_with_all_that_was_read_of_it() -> None:
    made = count()
    a, b, c = user("a"), user("b"), user("c")
    readings = Readings(2 * size(a, UNITS, VALUES))
    asked = [(UNITS, a), (VALUES, a), (UNITS, b), (VALUES, a), (UNITS, c), (UNITS, a), (UNITS, b), (VALUES, a)]
    assert [readings(what, [message], lambda _: next(made))[0] for what, message in asked] == [0, 1, 2, 1, 3, 0, 4, 1]


def test_what_is_larger_than_all_the_room_is_not_kept() -> None:
    made = count()
    large = user("x" * 1000)
    readings = Readings(1000)
    assert [readings(UNITS, [large], lambda _: next(made)) for _ in range(2)] == [[0], [1]]


def test_a_reading_that_fails_leaves_what_was_read_before() -> None:
    readings = Readings(100_000)
    readings(UNITS, [user("a")], lambda _: 1)
    with pytest.raises(ZeroDivisionError):
        readings(UNITS, [user("b")], lambda _: 1 // 0)
    assert readings(UNITS, [user("a")], lambda _: 2) == [1]
