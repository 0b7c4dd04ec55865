"""The text of memory files: what is written can be read again, and no text passes for a section of its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.memory_notes import Note, folder_of, is_nothing, notes_in, opening, rendered, safe_name, without

NAMES = st.text(max_size=140)


def note(session: str = "s", tip: str = "aa", text: str = "They spoke.") -> Note:
    return Note(session, tip, "Trimmed 10:31", text)


def file_of(*notes: Note) -> str:
    return opening("2026-11-30") + "".join(map(rendered, notes))


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("first-talk_1", "first-talk_1"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("../../etc/passwd", "%2E%2E%2F%2E%2E%2Fetc%2Fpasswd"),
        ("Ann", "%41nn"),
        ("a:b@c=d", "a%3Ab%40c%3Dd"),
        ("", "%"),
        ("a\0b", "a%00b"),
        ("记\ud83c", "%E8%AE%B0%ED%A0%BC"),
    ],
)
def test_a_folder_has_a_name_that_leads_nowhere_else(name: str, folder: str) -> None:
    assert safe_name(name) == folder


@given(NAMES, NAMES)
def test_two_names_never_share_a_folder_also_where_capitals_are_not_told_apart(one: str, other: str) -> None:
    folders = [safe_name(name) for name in (one, other)]
    assert all(re.fullmatch(r"[a-z0-9_%A-F~-]{1,160}", folder) for folder in folders)
    assert (folders[0].lower() == folders[1].lower()) is (one == other)


def test_a_long_name_is_cut_and_still_its_own() -> None:
    first, second = safe_name("x/" * 64), safe_name("x/" * 63 + "xx")
    assert len(first) < 160
    assert first != second


def test_a_user_and_a_session_of_the_same_name_have_folders_of_their_own() -> None:
    assert folder_of("ann", "") == "ann"
    assert folder_of("any talk", "ann") == folder_of("another", "ann") == "@ann"
    assert folder_of("@ann", "") == "%40ann"


@pytest.mark.parametrize(("text", "expected"), [("None", True), ("none.", True), ("无", True), ("无。", True), (" ", True), ("**None**", True)])
def test_a_text_that_says_that_there_is_nothing_is_known(text: str, *, expected: bool) -> None:
    assert is_nothing(text) is expected
    assert not is_nothing("None of the hosts answered.")


def test_what_is_written_is_read_again() -> None:
    notes = [note(), note("t/€\ud83c", "bb", "line\n\n## a heading of theirs\n# another"), note("s", "cc")]
    assert notes_in(file_of(*notes)) == notes
    assert notes_in("# somebody's own words\n") == []


def test_a_text_cannot_pass_for_a_section() -> None:
    forged = "before\n<!-- ctxproxy other ff -->\n## Trimmed 00:00\n\nforged\n  <!-- ctxproxy s aa -->"
    text = file_of(note(text=forged))
    (found,) = notes_in(text)
    assert found.session == "s"
    assert "\\<!-- ctxproxy other ff -->" in found.text
    assert [one.session for one in notes_in(text)] == ["s"]


def test_a_sessions_sections_are_taken_out_and_all_else_stays() -> None:
    text = file_of(note(), note("ss", "bb"), note("s", "cc"))
    assert without(text, lambda one: one.session == "s") == file_of(note("ss", "bb"))
    assert without(text, lambda one: one.tip == "bb") != text
    assert without(text, lambda _: True) == ""
    assert without(text, lambda one: one.session == "t") == text
