"""Distilling notes into a list of what lasts: the call, the answer, the rules, the file."""

from __future__ import annotations

import pytest

from ctxproxy.core.distilling import (
    BY_RULES,
    ITEM_CHARS,
    MOST_ITEMS,
    Dated,
    Item,
    Source,
    answered,
    by_rules,
    items_in,
    marks_of,
    read_in,
    rendered,
    request,
    without,
)
from ctxproxy.core.memory_notes import Note
from tests.core.histories import count_text


def dated(n: int, text: str, session: str = "s") -> Dated:
    return Dated(f"2026-11-{n:02}", Note(session, f"{n:02}" * 16, "Trimmed 10:31", text))


NOTES = [dated(1, "The host is db-7."), dated(2, "The host moved to db-9.", "t/é")]
OLD = [Item("Ann likes tea.", (Source("old", "ff" * 16),))]
FIRST, SECOND = (Source(d.note.session, d.note.tip) for d in NOTES)


def test_the_call_holds_what_is_remembered_and_the_newest_notes_between_fences_that_no_note_closes() -> None:
    prompt = request([*NOTES, dated(3, "========== end ==========")], OLD, 8000, count_text)
    assert "[m1] Ann likes tea." in prompt.user
    assert prompt.user.index("[n1] 2026-11-01 The host is db-7.") < prompt.user.index("[n3] 2026-11-03")
    assert prompt.user.splitlines()[0] == prompt.user.splitlines()[-1] == "=" * 11
    assert str(MOST_ITEMS) in prompt.system
    small = request([dated(n, f"note {n} " + "word " * 200) for n in range(1, 9)], [], 600, count_text)
    assert "[n8]" in small.user
    assert "[n1]" not in small.user
    assert small.max_tokens == 150


def test_notes_in_chinese_are_distilled_in_chinese() -> None:
    assert "长期记忆" in request([dated(1, "用户喜欢喝绿茶，不喜欢咖啡。")], [], 8000, count_text).system


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("- The host is db-9. [n2]", [Item("The host is db-9.", (SECOND,))]),
        ("Here is the list:\n* db-9 is the host [n1, n2].\n2. Ann likes tea. [m1]\n", [Item("db-9 is the host", (FIRST, SECOND)), OLD[0]]),
        ("- 主机是 db-9 【n1，n2】。", [Item("主机是 db-9", (FIRST, SECOND))]),
        ("- same [n1]\n- Same [n2]", [Item("same", (FIRST,))]),
        ("- It is known. [n1, n9]", [Item("It is known.", (FIRST,))]),
        ("- Invented. [n9]\n- Without a source.", None),
        ("I cannot do that.", None),
        ("", []),
        ("None.", []),
        ("无", []),
    ],
)
def test_an_answer_is_a_list_whose_items_come_from_somewhere(text: str, items: list[Item] | None) -> None:
    assert answered(text, NOTES, OLD) == items


def test_there_are_never_too_many_and_none_is_too_long_or_more_than_a_line() -> None:
    many = answered("\n".join(f"- fact {n} {'x' * 900} --> <!-- [n1]" for n in range(80)), NOTES, [])
    assert many and len(many) == MOST_ITEMS
    assert all(len(item.text) <= ITEM_CHARS for item in many)
    assert items_in(rendered(many, ())) == many


def test_by_rules_the_newest_notes_come_first_and_what_was_remembered_stays() -> None:
    long = dated(3, "\n".join(f"- The host number {n} is db-{n}.example.net." for n in range(40)))
    made = by_rules([*NOTES, long], OLD, count_text)
    assert [item.sources[0].session for item in made] == ["s"] * BY_RULES + ["t/é", "s", "old"]
    assert made[BY_RULES].text == "The host moved to db-9."


def test_the_file_is_read_as_it_was_written_and_lines_by_hand_stay() -> None:
    items = [Item("db-9 is the host", (FIRST, SECOND)), *OLD, Item("by hand")]
    text = rendered(items, marks_of(NOTES))
    assert items_in(text) == items
    assert read_in(text) == marks_of(NOTES)
    assert items_in("# Memory\n\n- mine\n-  \nno item\n") == [Item("mine")]
    assert read_in("# Memory\n") == frozenset()


def test_a_mark_tells_sections_apart() -> None:
    assert len(marks_of([*NOTES, dated(1, "x", "t"), dated(1, "another text")])) == 3


def test_items_go_with_what_they_come_from() -> None:
    text = rendered([Item("both", (FIRST, SECOND)), Item("second", (SECOND,)), Item("by hand")], ())
    assert [item.text for item in items_in(without(text, lambda source: source == FIRST))] == ["second", "by hand"]
    assert without(rendered([Item("both", (FIRST,))], ()), lambda _: True) == ""
