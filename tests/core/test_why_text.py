"""The answer to `/why` in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxproxy.core.language import Language
from ctxproxy.core.phrases import Found
from ctxproxy.core.why import Held, StandIn, Step, Why
from ctxproxy.core.why_text import MOST_TOLD, WORDS, told

FOUND = Found("content", "… the code is 7741 …", "The code is 7741.")
LEFT = Step("summarized", "summarize", "summarized by summarize: summary", 20.0, "ab" * 16, 9)
HELD = Held(
    "cd" * 16, "user", 10.0, 3, "ef" * 16, 1, FOUND, "summarized", "summarize", LEFT.why, LEFT, (LEFT,), StandIn(1, "frame", False, "They spoke.")
)
SENT = replace(HELD, state="sent", stage="", why="recent: in the newest 4 turns", left=None, steps=(), stands_in=None)
WHY = Why("0f0f0f0f:talk", "code", 40, (HELD,), 0, (), ())


def shown(time_s: float) -> str:
    return f"<{time_s:.0f}>"


def test_what_left_is_told_in_english() -> None:
    assert told(WHY, "en", shown).splitlines() == [
        "“code” stands in 1 of the 40 messages of 0f0f0f0f:talk.",
        "The next request does not carry it.",
        "1. user, turn 3, <10>: … the code is 7741 …",
        "   now summarized: summarized by summarize: summary",
        "   left the prompt at <20> with turn 9: summarized by summarize: summary",
        "   in its place: a summary at #1, which does not hold it: They spoke.",
        f"   original: {'cd' * 8}",
        "To have it back: /pin The code is 7741.",
    ]


def test_what_left_is_told_in_chinese() -> None:
    lines = told(WHY, "zh", shown).splitlines()
    assert lines[0] == "会话 0f0f0f0f:talk 的 40 条消息中，有 1 条包含“code”。"
    assert lines[4] == "   <20> 随第 9 轮离开提示（summarized by summarize: summary）"
    assert lines[-1] == "要找回它：/pin The code is 7741."


@pytest.mark.parametrize(("language", "number"), [("en", 1), ("zh", 1)])
def test_what_was_never_said_is_told_in_one_line(language: Language, number: int) -> None:
    assert len(told(replace(WHY, held=()), language, shown).splitlines()) == number


@pytest.mark.parametrize(
    ("why", "line"),
    [
        (replace(WHY, prompt=(0, 4)), "The next request carries it, at 0, 4."),
        (replace(WHY, pins=(2, 3)), "It is pinned (2, 3)."),
        (replace(WHY, held=(replace(HELD, stands_in=None),)), "   nothing stands in its place"),
        (
            replace(WHY, held=(replace(HELD, left=Step("dropped", "drop_oldest", "the oldest")),)),
            "   leaves the prompt with the next request: the oldest",
        ),
        (replace(WHY, held=(replace(HELD, stands_in=StandIn(2, "marker", True, "code")),)), "   in its place: a marker at #2, which holds it: code"),
        (replace(WHY, held=(HELD,) * 9, left_off=3), f"… and {12 - MOST_TOLD} more messages"),
        (replace(WHY, held=(SENT,)), "   now sent as it was: recent: in the newest 4 turns"),
    ],
)
def test_each_circumstance_has_its_line(why: Why, line: str) -> None:
    assert line in told(why, "en", shown).splitlines()
    assert len(told(why, "zh", shown).splitlines()) == len(told(why, "en", shown).splitlines())


def test_for_what_is_sent_nothing_stands_in() -> None:
    assert not any("place" in line for line in told(replace(WHY, held=(SENT,)), "en", shown).splitlines())


def test_a_text_with_braces_of_its_own_is_told_as_it_is() -> None:
    braces = Found("content", "{phrase} {0}", "{text}")
    assert "{phrase} {0}" in told(replace(WHY, phrase="{x}", held=(replace(HELD, found=braces),)), "en", shown)


def test_both_languages_have_a_word_for_every_state_and_kind() -> None:
    assert WORDS["en"].states.keys() == WORDS["zh"].states.keys()
    assert WORDS["en"].kinds.keys() == WORDS["zh"].kinds.keys()
