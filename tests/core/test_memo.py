"""`no_memo`: the memory that has none."""

from __future__ import annotations

from itertools import count

from ctxproxy.core.memo import no_memo
from tests.core.histories import user


def test_without_a_memory_it_is_made_each_time() -> None:
    numbers = count()
    assert [no_memo("n", user("q"), lambda: next(numbers)) for _ in range(2)] == [0, 1]
