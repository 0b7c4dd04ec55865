"""How a summary stands in a prompt: framed, in one language, and read back as it was written."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core import frames
from ctxproxy.core.frames import (
    Background,
    acknowledgement,
    carried,
    frame_text,
    gap,
    is_filler,
    is_frame,
    language_of_frame,
    parse,
    said,
    without_frames,
)
from ctxproxy.core.messages import text_of, tool_calls
from ctxproxy.core.validity import violations
from tests.core.histories import assistant, call, result, user

FULL = Background(
    "The user wants A.\nIt is half done.",
    ("first words", "two\nlines"),
    ("Never push.",),
    ("PIN-1",),
    "User: Ship it.\nTool: done",
    ("src/a.py", "4711"),
)
Lines = tuple[str, ...]
ENGLISH_WORDS = re.compile(r"[A-Za-z]{2,}")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_frame_holds_everything_and_is_read_back_as_it_was(language: str) -> None:
    text = frame_text(FULL, language)  # type: ignore[arg-type]
    assert parse(text) == FULL
    assert language_of_frame(text) == language
    assert all(
        part in " ".join(text.split())
        for part in ("first words", "two lines", "Never push.", "PIN-1", "It is half done.", "User: Ship it. Tool: done")
    )
    assert text.endswith("src/a.py; 4711")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sections_without_anything_are_left_out(language: str) -> None:
    assert frame_text(Background("Only this."), language).count("\n") == 1  # type: ignore[arg-type]
    assert frame_text(Background(""), language).count("\n") == 0  # type: ignore[arg-type]


def test_the_title_marks_background_and_orders_nothing() -> None:
    for wording in frames.WORDINGS.values():
        assert re.search("(?i)background|背景", wording.title)
        assert not re.match(r"(?i)\W*(trim|shorten|summari[sz]e|continue|please)\b", wording.title)
        assert len(wording.acknowledgement) < 120


def test_a_chinese_frame_has_no_line_of_english() -> None:
    text = frame_text(Background("用户询问订单。", ("什么时候发货？",), ("不要改地址。",), ("固定",), "助手：已经出库。", ("12:30",)), "zh")
    assert not any(ENGLISH_WORDS.findall(line) for line in text.splitlines())


@pytest.mark.parametrize(
    ("message", "ours"),
    [
        (said("user", frame_text(FULL, "en")), True),
        (said("assistant", frame_text(FULL, "zh")), True),
        (user("Tell me of [Background: summary of the earlier conversation, not a new request]"), False),
        (user(""), False),
    ],
)
def test_our_own_frames_are_known_again(message: object, ours: bool) -> None:
    assert is_frame(message) is ours  # type: ignore[arg-type]
    assert (parse(text_of(message)) is not None) is ours  # type: ignore[arg-type]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_fillers_are_known_again_and_the_users_words_are_none(language: str) -> None:
    assert is_filler(acknowledgement(language))  # type: ignore[arg-type]
    assert is_filler(gap("user", language))  # type: ignore[arg-type]
    assert is_filler(gap("assistant", language))  # type: ignore[arg-type]
    assert not is_filler(user("Understood."))


def test_a_model_that_gives_the_title_back_does_not_pile_them_up() -> None:
    told = frame_text(Background("It is done."), "en")
    text = frame_text(Background(f"{told}\n{frames.WORDINGS['zh'].title}\nMore."), "en")
    assert text.count("[Background") == 1
    assert "背景" not in text
    assert without_frames("plain\ntext") == "plain\ntext"


def test_a_group_that_carries_a_frame_keeps_its_calls_and_gets_short() -> None:
    long: dict[str, Any] = {"path": "a.py", "content": "x" * 5000}
    group = [call("c1", "write", "I write.", **long), result("c1", "line\n" * 2000)]
    front, answer = carried(group, "the text", "en")
    assert text_of(front) == "the text"
    assert tool_calls(front)[0].id == "c1"
    assert "a.py" in json.loads(tool_calls(front)[0].arguments)["shortened"]
    assert len(text_of(answer)) < 600
    assert violations([user("q"), front, answer]) == []


def test_a_short_group_is_carried_as_it_is_but_for_the_text() -> None:
    group = [call("c1", "read", path="a.py"), result("c1", "short")]
    front, answer = carried(group, "the text", "zh")
    assert tool_calls(front) == tool_calls(group[0])
    assert answer is group[1]
    (alone,) = carried([assistant("An answer.", x_unknown=1)], "the text", "en")
    assert alone.fields == {"role": "assistant", "content": "the text", "x_unknown": 1}


def test_a_call_of_another_kind_is_carried_as_it_is() -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "run", "input": "x" * 5000}}
    (front,) = carried([assistant(None, tool_calls=[custom])], "text", "en")
    assert front.fields["tool_calls"] == [custom]


lines = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1).map(str.strip).filter(bool)


some = st.lists(lines, max_size=3).map(tuple)
values = st.lists(lines.filter(lambda line: ";" not in line), max_size=3).map(tuple)


@given(lines, some, some, some, some.map("\n".join), values)
def test_any_background_is_read_back(summary: str, words: Lines, rules: Lines, pins: Lines, passages: str, exact: Lines) -> None:
    background = Background(summary, words, rules, pins, passages, exact)
    assert parse(frame_text(background, "en")) == background
