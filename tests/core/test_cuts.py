"""Where texts may be cut."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core import cuts
from tests.core.histories import SPICE

FAMILY = "👩‍👩‍👧‍👦"
RED = "\x1b[31m"
TABLE = [
    ("hello", 9, 5, 5, "behind the end"),
    ("hello", -1, 0, 0, "before the beginning"),
    ("two words", 6, 4, 9, "inside a word with a blank near"),
    ("两个字数据", 3, 3, 3, "between Chinese characters"),
    ("价格1250元整", 4, 2, 6, "inside a number without a blank near"),
    ("x" * 200, 100, 100, 100, "in a run of letters too long to spare"),
    ("a b", 1, 1, 1, "right at a blank"),
    (f"ab {FAMILY}", 5, 3, 3 + len(FAMILY), "inside a joined emoji"),
    (f"ab {FAMILY}", 4, 3, 3 + len(FAMILY), "right before a joiner"),
    ("好👍🏽好", 2, 1, 3, "before a skin tone"),
    ("好🏳️好", 2, 1, 3, "before a variation selector"),
    ("好🇩🇪🇫🇷", 2, 1, 3, "inside a flag"),
    ("好🇩🇪🇫🇷", 3, 3, 3, "between two flags"),
    ("好e\u0301好", 2, 1, 3, "before a combining mark"),
    ("好\ud83c\udf89好", 2, 1, 3, "between two halves of a surrogate pair"),
    ("好\udf89好", 1, 1, 1, "before a lone low surrogate"),
    ("a\r\nb", 2, 1, 3, "inside a line break"),
    (f"字字{RED}字", 4, 2, 2 + len(RED), "inside a terminal escape sequence"),
    ("字字\x1b字字", 3, 3, 3, "after a lone escape"),
    ("\u1112\u1161\u11ab好", 1, 0, 3, "inside a Hangul syllable of jamo"),
    (FAMILY, 1, 0, len(FAMILY), "inside the only character"),
    ("好" + "\u0301" * 300, 150, 150, 150, "in a run of marks that is no writing"),
]


@pytest.mark.parametrize(("text", "at", "before", "after", "why"), TABLE, ids=[row[-1] for row in TABLE])
def test_a_cut_moves_to_the_nearest_place_that_breaks_nothing(text: str, at: int, before: int, after: int, why: str) -> None:
    assert (cuts.before(text, at), cuts.after(text, at)) == (before, after), why


@given(st.lists(st.one_of(st.sampled_from(SPICE), st.text(max_size=5)), max_size=40).map("".join), st.integers(-2, 200))
def test_a_cut_is_inside_the_text_on_the_right_side_and_never_before_a_mark(text: str, at: int) -> None:
    before, after = cuts.before(text, at), cuts.after(text, at)
    assert 0 <= before <= max(at, 0) or before == len(text) <= at
    assert after == len(text) or min(max(at, 0), len(text)) <= after <= len(text)
    for place in (before, after):
        if 0 < place < len(text):
            assert unicodedata.combining(text[place]) == 0
            assert not (0xDC00 <= ord(text[place]) <= 0xDFFF and 0xD800 <= ord(text[place - 1]) <= 0xDBFF)
