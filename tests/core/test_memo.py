"""`no_memo`: the memory that has none."""

from __future__ import annotations

from itertools import count

from ctxproxy.core.memo import Reading, no_memo
from tests.core.histories import user


def test_without_a_memory_it_is_made_each_time() -> None:
    numbers, same = count(), user("q")
    assert no_memo(Reading("n", 1.0), [same, same], lambda _: next(numbers)) == [0, 1]
