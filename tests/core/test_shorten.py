"""Cutting one text to head and tail."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.core.shorten import shorten
from tests.core.histories import FILLER, PNG, texts

BANNER = "[COMPACTED: result of sh · 900 tokens · 0123456789abcdef]"
NOTICE = re.compile(r"omitted|省略|COMPACTED")
TABLES = "== docker ==\nrtk 0.42.4 0.43.0 update available\n" + "other tool 1.0 1.0 up-to-date\n" * 400 + "== wsl ==\nrtk ok 0.42.4 - up-to-date\n"
LOG = "start\n" + "step done\n" * 300 + "ValueError: boom\n" + "step done\n" * 300 + "end"


@pytest.mark.parametrize("text", ["", "short", "x" * 100, '{"a": 1}'])
def test_a_text_that_fits_is_the_same_string(text: str) -> None:
    assert shorten(text, 100, banner=BANNER) is text


def test_lines_are_whole_lines_of_the_original_or_notices() -> None:
    short = shorten(TABLES, 400, "en", BANNER)
    assert len(short) <= 400
    assert short.startswith(BANNER + "\n== docker ==\nrtk 0.42.4 0.43.0 update available\n")
    assert short.endswith("== wsl ==\nrtk ok 0.42.4 - up-to-date\n")
    assert all(line in TABLES.split("\n") or NOTICE.search(line) for line in short.split("\n"))
    assert re.search(r"\[\d+ of 405 lines omitted\]", short)


def test_an_error_line_in_the_middle_is_kept_between_two_notices() -> None:
    short = shorten(LOG, 300)
    assert "ValueError: boom\n" in short
    assert short.count("omitted") == 2


def test_code_keeps_its_indentation() -> None:
    code = "def f(x):\n    if x:\n        return  1\n" * 50
    assert set(shorten(code, 300).split("\n")) - {*code.split("\n")} == {next(line for line in shorten(code, 300).split("\n") if "omitted" in line)}


def test_one_long_line_keeps_both_ends_and_words_whole() -> None:
    short = shorten("DATA " + FILLER * 100 + "LOG-END", 300)
    assert short.startswith("DATA plain")
    assert short.endswith("all LOG-END")
    assert len(short) <= 300
    left, right = re.split(r" \[\d+ of \d+ characters omitted\] ", short)
    assert FILLER.split()[0] in left.split()
    assert {*left.split(), *right.split()} <= {"DATA", "LOG-END", *FILLER.split()}


def test_a_long_line_among_short_ones_is_cut_and_the_short_ones_stay() -> None:
    short = shorten("first\n" + "y " * 2000 + "\nlast", 300)
    assert short.startswith("first\ny y")
    assert short.endswith("\nlast")


@pytest.mark.parametrize("lead", range(4))
def test_no_cut_falls_into_a_character(lead: int) -> None:
    short = shorten("é" * lead + "🎉中" * 3000, 200)
    left, right = re.split(r" \[.*\] ", short)
    assert set(left + right) <= set("é🎉中")


def test_emoji_with_joiners_stay_whole() -> None:
    group = "👩‍👩‍👧‍👦🏳️‍🌈👍🏽"
    rest = re.sub(r" \[.*\] ", "", shorten(group * 300, 400))
    assert re.sub("👩‍👩‍👧‍👦|🏳️‍🌈|👍🏽", "", rest) == ""


def test_data_urls_and_base64_go_whole() -> None:
    blob = "Zx9kQ1v7Lm3Tp0Wb" * 100
    assert shorten(f"see {PNG} here", 200) == f"see [image/png data of {len(PNG)} characters omitted] here"
    assert shorten(f"key {blob} end", 200) == "key [base64 data of 1600 characters omitted] end"
    assert shorten("data:;base64," + "A" * 400, 100).startswith("[data URL data of")


def test_a_letter_over_and_over_is_no_data() -> None:
    short = shorten("HEAD" + "x" * 5000 + "TAIL", 300)
    assert short.startswith("HEADx")
    assert short.endswith("xTAIL")


def test_json_on_one_line_stays_json_with_the_banner_inside() -> None:
    rows = json.dumps({"rows": [{"id": n, "name": 'a "quoted" {row}'} for n in range(400)], "total": 400, "next": "cursor-XYZ"})
    short = shorten(rows, 800, "en", BANNER)
    value = json.loads(short)
    assert len(short) <= 1000
    assert (value["[note]"], value["total"], value["next"]) == (BANNER, 400, "cursor-XYZ")
    assert any(isinstance(row, str) and "of 400 items omitted" in row for row in value["rows"])


def test_what_looks_like_json_but_is_none_is_cut_like_text() -> None:
    assert "characters omitted" in shorten('{"a": ' + "x " * 500, 200)


def test_json_over_many_lines_is_cut_by_lines() -> None:
    assert "lines omitted" in shorten(json.dumps(list(range(500)), indent=1), 300)


def test_very_long_json_is_not_parsed() -> None:
    assert "characters omitted" in shorten("[" + "1, " * 200_000 + "1]", 300)


def test_without_room_only_notices_are_left() -> None:
    assert shorten("word " * 100, 0, "en", BANNER) == BANNER + "\n[500 of 500 characters omitted]"
    assert shorten("a\nb\n" * 100, 0, "zh") == "[此处省略 201 行，共 201 行]"


def test_a_line_that_cannot_be_parted_stays() -> None:
    assert shorten("字" * 60 + "\n" + "x" * 130, 190).startswith("字" * 60)


@settings(max_examples=60, deadline=None)
@given(texts, st.integers(0, 3000), st.sampled_from(["en", "zh"]), st.sampled_from(["", BANNER]))
def test_a_cut_text_is_near_its_room_announced_and_without_new_halves(text: str, room: int, language: str, banner: str) -> None:
    short = shorten(text, room, language, banner)  # type: ignore[arg-type]
    if len(text) <= room:
        assert short is text
        return
    assert NOTICE.search(short)
    assert len(short) <= max(room * 5 // 4, room + 60) + len(banner) + 60
    assert len(re.findall("[\ud800-\udfff]", short)) <= len(re.findall("[\ud800-\udfff]", text)) + short.count("\\ud83c")
