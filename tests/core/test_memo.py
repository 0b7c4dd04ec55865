"""`no_memo`: the memory that has none; `text_key`: what tells texts apart."""

from __future__ import annotations

from itertools import count

import pytest

from ctxproxy.core.memo import Reading, no_memo, text_key
from tests.core.histories import user


def test_without_a_memory_it_is_made_each_time() -> None:
    numbers, same = count(), user("q")
    assert no_memo(Reading("n", 1.0), [same, same], lambda _: next(numbers)) == [0, 1]


# texts of different widths with the same bytes in memory: Python's hash is made of these alone
TWINS = [(text, text.encode("latin-1").decode(wide)) for wide, text in (("utf-16-le", "if"), ("utf-16-le", "else"), ("utf-32-le", "a\xf4\x01\x00"))]


@pytest.mark.parametrize(("narrow", "wide"), TWINS)
def test_texts_with_the_same_bytes_in_memory_are_told_apart(narrow: str, wide: str) -> None:
    assert hash(narrow) == hash(wide)
    assert text_key(narrow) != text_key(wide)


def test_a_text_is_known_again() -> None:
    assert text_key("one " + "two") == text_key("one two") != text_key("two one")
