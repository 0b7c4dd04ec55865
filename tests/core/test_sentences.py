"""`split`, `units` and `parted`: pieces of bounded length that lose nothing but blanks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.sentences import MAX_CHARS, parted, split, units


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        ("  \n\n ", []),
        ("One line", ["One line"]),
        ("Stop. Go! Why? Now", ["Stop.", "Go!", "Why?", "Now"]),
        ("你好。我说：“去吧。”他走了！好；行", ["你好。", "我说：“去吧。”", "他走了！", "好；", "行"]),
        ("Ask Dr. Smith, e.g. today. J. Doe came.", ["Ask Dr. Smith, e.g. today.", "J. Doe came."]),
        ("1. Do this. 2. Not that.", ["1. Do this.", "2. Not that."]),
        ("def f():\n    return 1.5\n\nERROR x.py:3", ["def f():", "return 1.5", "ERROR x.py:3"]),
        ("Version 1.2.3 at a.b.c", ["Version 1.2.3 at a.b.c"]),
        ("End.  ", ["End."]),
    ],
)
def test_prose_is_parted_between_sentences_and_code_between_lines(text: str, sentences: list[str]) -> None:
    assert split(text) == sentences


def test_long_json_is_parted_between_fields() -> None:
    text = '{"rows": [{"id": "A-1", "name": "' + "x" * 30 + '"}, {"id": "A-2", "name": "' + "y" * 30 + '"}]}'
    parts = parted(text, 60)
    assert [part for part in parts if '"A-1"' in part] != [part for part in parts if '"A-2"' in part]
    assert all(len(part) <= 60 for part in parts)
    assert any('{"id": "A-2"' in part for part in parts)


@pytest.mark.parametrize("text", ["长" * 1000, "x" * 1000, "one, two; " * 100, "子句，" * 300, "word " * 300])
def test_a_long_piece_is_parted_whatever_it_is_made_of(text: str) -> None:
    parts = parted(text, 100)
    assert all(len(part) <= 100 for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_a_short_message_stays_one_unit_and_a_long_one_is_packed() -> None:
    short = "First this. Then that! And so on."
    assert units(short) == [short]
    long = "A sentence of some words. " * 40
    assert all(100 < len(unit) <= MAX_CHARS for unit in units(long)[:-1])
    assert units("第一句话很短。" * 100)[0].startswith("第一句话很短。第一句话很短。")
    assert all(len(unit) <= 60 for unit in units(short * 5, 60))


def test_lines_keep_the_blanks_before_them_where_they_stand_among_their_neighbours() -> None:
    code = "def f(x):\n    if x:  \n\n   \n\treturn 1\n"
    assert units(code) == ["def f(x):", "if x:", "return 1"]
    assert units(code, indented=True) == ["def f(x):", "    if x:", "\treturn 1"]


@given(st.text(max_size=400), st.integers(20, 200))
def test_nothing_but_blanks_is_lost(text: str, most: int) -> None:
    for pieces in (split(text, most), units(text, most), units(text, most, indented=True)):
        assert "".join("".join(pieces).split()) == "".join(text.split())
        assert all(piece and len(piece) <= max(most, 20) + 1 for piece in pieces)


def test_a_word_that_ends_like_an_abbreviation_ends_a_sentence() -> None:
    assert split("Wait for my approval. Then go on.") == ["Wait for my approval.", "Then go on."]
    assert split("See Lee et al. for more.") == ["See Lee et al. for more."]
