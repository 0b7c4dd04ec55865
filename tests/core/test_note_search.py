"""Memory files in the search: their pieces, how their days count, and what of them comes back."""

from __future__ import annotations

import pytest

from ctxproxy.core.chunks import CHUNK_CHARS
from ctxproxy.core.distilling import Item, Source
from ctxproxy.core.distilling import rendered as distilled
from ctxproxy.core.memory_notes import Note, opening, rendered
from ctxproxy.core.note_search import MOST, FoundNote, NoteIndex, NotePiece, Told, apart, as_passage, chosen, news, pieces_of, remaining
from ctxproxy.core.recalled import Passage, recalled_text
from ctxproxy.core.retrieval import Query
from ctxproxy.core.search_terms import query_terms, terms_of

TODAY = "2026-11-30"
FILE = "2026-11-30.md"


def section(session: str, tip: str, text: str) -> str:
    return rendered(Note(session, tip, f"Trimmed 10:31, session {session}", text))


def query(text: str, *, looks_back: bool = False) -> Query:
    return Query(dict.fromkeys(query_terms(text), 1.0), asks=True, looks_back=looks_back)


def piece(text: str, day: str = TODAY, *sources: Source, at: int = 0) -> NotePiece:
    return NotePiece((f"{day}.md", at), text, day, sources)


# ---------------------------------------------------------------- pieces


def test_a_days_file_is_cut_into_its_sections_and_what_was_written_by_hand_without_marks_and_headings() -> None:
    file = (
        opening(TODAY) + "\nThe spare key hangs in the shed.\n" + section("s", "aa", "They spoke of a heron.") + section("t", "bb", "And of a lynx.")
    )
    assert pieces_of(FILE, TODAY, file) == [
        NotePiece((FILE, 0), "The spare key hangs in the shed.", TODAY),
        NotePiece((FILE, 1), "They spoke of a heron.", TODAY, (Source("s", "aa"),)),
        NotePiece((FILE, 2), "And of a lynx.", TODAY, (Source("t", "bb"),)),
    ]


def test_what_was_added_to_a_section_by_hand_is_found_with_it() -> None:
    file = opening(TODAY) + section("s", "aa", "They spoke of a heron.") + "\nThe gate opens with 7731.\n"
    [only] = pieces_of(FILE, TODAY, file)
    assert only.text == "They spoke of a heron.\n\nThe gate opens with 7731."


def test_the_distilled_memory_is_cut_into_its_items_and_paragraphs_written_by_hand_and_has_no_day() -> None:
    file = distilled([Item("Prefers window seats.", (Source("s", "aa"),)), Item("By hand.")], ["12ab"]) + "\nThe cat is called Biscuit.\n"
    assert [(one.text, one.day, one.sources) for one in pieces_of("MEMORY.md", "", file)] == [
        ("The cat is called Biscuit.", "", ()),
        ("Prefers window seats.", "", (Source("s", "aa"),)),
        ("By hand.", "", ()),
    ]


def test_a_long_section_is_cut_into_parts_and_an_empty_file_has_none() -> None:
    told = " ".join(f"Sentence number {n} tells of the harbour." for n in range(40))
    parts = pieces_of(FILE, TODAY, opening(TODAY) + section("s", "aa", told))
    assert len(parts) > 2
    assert max(len(one.text) for one in parts) <= CHUNK_CHARS + 50
    assert [one.place for one in parts] == [(FILE, n) for n in range(len(parts))]
    assert pieces_of(FILE, TODAY, "") == pieces_of("MEMORY.md", "", "") == []


# ---------------------------------------------------------------- finding


def test_a_file_is_found_as_it_was_last_put_in() -> None:
    index = NoteIndex()
    index.put(FILE, [piece("The heron sleeps in the quarry."), piece("The lynx eats.", at=1)])
    index.put("MEMORY.md", [NotePiece(("MEMORY.md", 0), "The otter swims.")])
    [found] = index.found(query("Where does the heron sleep?").terms)
    assert found.piece.text == "The heron sleeps in the quarry."
    assert 0.5 < found.share < 1.5
    index.put(FILE, [piece("The badger digs.")])
    assert index.found(query("Where does the heron sleep?").terms) == []
    assert [one.piece.text for one in index.found(query("What does the badger do?").terms)] == ["The badger digs."]
    assert [one.piece.text for one in index.found(query("the otter").terms)] == ["The otter swims."]


def test_a_folder_that_holds_few_of_the_terms_is_about_something_else() -> None:
    index = NoteIndex()
    index.put(FILE, [piece("The heron sleeps in the quarry.")])
    assert index.found(query("Zebras graze near volcanic heron slopes").terms) == []
    assert index.found({}) == []


def test_chinese_notes_are_found() -> None:
    index = NoteIndex()
    index.put(FILE, [piece("用户的猫叫饼干，喜欢睡在窗台上。"), piece("项目的截止日期是周五。", at=1)])
    assert [one.piece.text for one in index.found(query("我的猫叫什么？").terms)][:1] == ["用户的猫叫饼干，喜欢睡在窗台上。"]


# ---------------------------------------------------------------- days


@pytest.mark.parametrize(("age_days", "left"), [(0, 1.0), (30, 0.5), (60, 0.25)])
def test_000_s14_a_note_counts_half_after_thirty_days(age_days: int, left: float) -> None:
    assert remaining(age_days) == left


AGES = {"": 0, TODAY: 0, "2026-10-31": 30, "2026-09-01": 90}


NOTHING = Told("s", (), "")


def texts(found: list[FoundNote], told: Told = NOTHING, min_score: float = 0.0) -> list[str]:
    return [one.text for one in chosen(found, told, AGES.__getitem__, min_score)]


def test_of_two_that_fit_alike_the_newer_comes_first_and_one_that_has_lost_more_than_half_beside_it_not_at_all() -> None:
    found = [FoundNote(0.9, piece("long ago", "2026-09-01")), FoundNote(0.9, piece("a month ago", "2026-10-31")), FoundNote(0.9, piece("today"))]
    assert texts(found) == ["today", "a month ago"]
    assert texts(found[:1]) == ["long ago"], "alone it is still the best there is"
    assert texts([*found, FoundNote(0.9, NotePiece(("MEMORY.md", 0), "for good"))]) == ["today", "for good", "a month ago"]


def test_what_does_not_fit_clearly_is_in_the_prompt_or_too_old_for_the_least_score_stays_out() -> None:
    assert texts([FoundNote(0.4, piece("weak"))]) == []
    assert texts([FoundNote(0.9, piece("shown"))], Told("s", (), "it was shown there")) == []
    assert texts([FoundNote(0.8, piece("old", "2026-10-31"))], min_score=0.5) == []
    assert len(texts([FoundNote(0.9, piece(f"piece {n}", at=n)) for n in range(MOST + 3)])) == MOST


# ---------------------------------------------------------------- a session's own sections


def test_a_sessions_own_sections_are_told_apart_from_those_of_others_and_from_what_was_written_by_hand() -> None:
    found = [FoundNote(0.9, piece(text, TODAY, *sources)) for text, *sources in (("own", Source("s", "aa")), ("other", Source("t", "bb")), ("hand",))]
    others, own = apart(found, "s")
    assert [one.piece.text for one in others] == ["other", "hand"]
    assert [one.piece.text for one in own] == ["own"]


@pytest.mark.parametrize(
    ("logged", "cleared", "looks_back", "counts"),
    [
        ("", (), False, True),
        ("The heron is grey.", (), False, True),
        ("The heron sleeps in the quarry.", (), False, False),
        ("", ("aa",), False, False),
        ("", ("aa",), True, True),
    ],
    ids=["nothing else is known", "half is known", "the log has it", "cleared", "cleared, and asked for"],
)
def test_an_own_section_counts_only_for_what_the_log_does_not_have(logged: str, cleared: tuple[str, ...], looks_back: bool, counts: bool) -> None:
    own = [FoundNote(0.9, piece("The heron sleeps in the quarry.", TODAY, Source("s", "aa")))]
    asked = query("Where does the heron sleep?", looks_back=looks_back)
    assert bool(news(own, asked, Told("s", cleared, "", terms_of(logged)))) is counts


def test_a_piece_stands_in_a_prompt_as_a_note_under_its_day() -> None:
    passages = [as_passage(NotePiece(("MEMORY.md", 0), "The otter swims.")), as_passage(piece("The heron sleeps.", "2026-11-02"))]
    assert passages[0] == Passage(("MEMORY.md", 0), "note", "The otter swims.", "")
    assert recalled_text(passages, "en").splitlines()[1:] == ["Note: The otter swims.", "[2026-11-02]", "Note: The heron sleeps."]
    assert recalled_text(passages, "zh").splitlines()[1] == "笔记：The otter swims."
