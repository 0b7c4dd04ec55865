"""Asking what happened in messages that leave a prompt."""

from __future__ import annotations

import pytest

from ctxproxy.core.event_notes import MOST_TOKENS, event_prompt, events_in
from tests.core.histories import count_text, talk, user


def test_000_s6_each_message_goes_in_shortened_and_as_data() -> None:
    call = event_prompt([user("Start. " + "x" * 2000 + " The end."), user("==========")], 8000, count_text)
    assert "[1] user: Start." in call.user
    assert "The end." in call.user
    assert len(call.user) < 900
    assert call.user.splitlines()[0] == call.user.splitlines()[-1] == "=" * 11
    assert "grouped by event" in call.system
    assert "None" in call.system
    assert call.max_tokens == MOST_TOKENS


def test_what_is_too_much_for_the_window_is_told_by_what_says_most() -> None:
    history = talk(200)
    call = event_prompt(history, 1000, count_text)
    assert count_text(call.user) < 700
    assert call.max_tokens == 250


def test_a_chinese_conversation_is_noted_in_chinese() -> None:
    assert "按事件" in event_prompt([user("请记住，数据库的主机是 db-7，不要改动它。")], 8000, count_text).system


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("Here is what happened:\n- They chose db-9.\n  * The budget is 400.\n1. Done.", "- They chose db-9.\n* The budget is 400.\n1. Done."),
        ("None.", "None."),
        ("无", "无"),
        ("", ""),
        ("I am sorry, I cannot do that.", ""),
    ],
)
def test_an_answer_is_a_list_of_events_or_says_that_there_are_none(text: str, events: str) -> None:
    assert events_in(text) == events
