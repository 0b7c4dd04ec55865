"""The words that stand in for what was taken out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core import markers
from ctxproxy.core.messages import Message, ToolCall
from tests.core.histories import assistant, user

TIP = "0123456789abcdef0123456789abcdef"
ADVICE = re.compile(r"(?i)(?:call|use|invoke|with|via|tool)\W{1,3}(?:the\W{1,3})?(?:tool\W{1,3}|function\W{1,3})?[`'\"]?([a-z]+_[a-z_]+)")


def test_a_marker_tells_topic_size_and_name_of_the_original_in_one_line() -> None:
    assert markers.marker("result of read m.py", 51, TIP, "en") == "[COMPACTED: result of read m.py · 51 tokens · 0123456789abcdef]"
    assert markers.marker("read m.py 的结果", 51, TIP, "zh") == "[已压缩: read m.py 的结果 · 51 个词元 · 0123456789abcdef]"
    assert markers.marker("x", 51, "", "en") == "[COMPACTED: x · 51 tokens]"


@pytest.mark.parametrize(
    ("text", "whether"),
    [
        (markers.marker("x", 1, TIP, "en"), True),
        (markers.marker("x", 1, TIP, "zh"), True),
        ("[COMPACTED: x · 1 tokens]\nand text", False),
        ("text [COMPACTED: x]", False),
        ("[COMPACTED: x] and", False),
    ],
)
def test_a_lone_marker_is_recognised(text: str, whether: bool) -> None:
    assert markers.is_marker(text) is whether


@pytest.mark.parametrize(
    ("arguments", "main"),
    [
        ('{"limit": 5, "path": "src/a.py"}', "src/a.py"),
        ('{"x": [1], "note": "hello"}', "hello"),
        ('{"n": 7}', "7"),
        ('{"x": [], "path": ""}', ""),
        ('"just text"', "just text"),
        ("[1]", ""),
        ("not json", ""),
        ("", ""),
    ],
)
def test_the_main_argument_is_the_one_that_tells_most(arguments: str, main: str) -> None:
    assert markers.main_argument(arguments) == main


def test_topics_of_results_name_the_tool_and_what_it_was_about() -> None:
    call = ToolCall("c", "read_file", '{"path": "src/[a]·b.py"}')
    assert markers.topic_of_result(call, "en") == "result of read_file src/ a b.py"
    assert markers.topic_of_result(call, "zh") == "read_file src/ a b.py 的结果"
    assert (markers.topic_of_result(None, "en"), markers.topic_of_result(None, "zh")) == ("tool result", "工具结果")
    assert markers.superseded_topic(call, "en").endswith(", newer one further on")
    assert markers.duplicate_topic(call, "zh").endswith("，与后面的结果相同")


@pytest.mark.parametrize(
    ("message", "language", "topic"),
    [
        (user("Delete the old logs. Then restart."), "en", "earlier user message “Delete the old logs…”"),
        (assistant("已经完成了迁移。接下来监控。"), "zh", "较早的助手消息 “已经完成了迁移…”"),
        (user([{"type": "image_url", "image_url": {"url": "x"}}]), "en", "earlier user message"),
        (user("x" * 500), "en", "earlier user message “" + "x" * 60 + "…”"),
        (user("Please use get_weather for Paris"), "en", "earlier user message “Please…”"),
    ],
)
def test_topics_of_messages_quote_their_first_clause(message: Message, language: markers.Language, topic: str) -> None:
    assert markers.topic_of_text(message, language) == topic


@pytest.mark.parametrize(
    ("part", "language", "topic"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "en", "earlier image image/png"),
        ({"type": "image_url", "image_url": {"url": "https://h.invalid/a.png?sig=secret"}}, "en", "earlier image https://h.invalid/a.png"),
        ({"type": "input_audio", "input_audio": {"format": "wav", "data": "A"}}, "zh", "较早的音频 wav"),
        ({"type": "file", "file": {"filename": "contract.pdf"}}, "en", "earlier file contract.pdf"),
        ({"type": "image_url", "image_url": {"url": 5}}, "en", "earlier image"),
        ({"type": "document"}, "zh", "较早的document"),
        ({}, "en", "earlier media"),
    ],
)
def test_topics_of_media_tell_kind_and_name(part: dict[str, object], language: markers.Language, topic: str) -> None:
    assert markers.topic_of_media(part, language) == topic


def test_topics_of_arguments_tell_their_length() -> None:
    assert markers.topic_of_argument(4600, "en") == "argument of 4600 characters"
    assert markers.topic_of_argument(4600, "zh") == "4600 个字符的参数"


def test_notices_tell_how_much_is_missing() -> None:
    assert markers.omitted(3, 9, "lines", "en") == "[3 of 9 lines omitted]"
    assert markers.omitted(3, 9, "items", "zh") == "[此处省略 3 项，共 9 项]"
    assert markers.omitted_data("base64", 800, "en") == "[base64 data of 800 characters omitted]"
    assert markers.omitted_data("base64", 800, "zh") == "[此处省略 base64 数据，共 800 个字符]"


def test_our_own_messages_are_short_notes_in_both_languages() -> None:
    for language in ("en", "zh"):
        notes = (markers.acknowledgement(language), markers.unanswered(language), markers.stray("x", language))
        assert all(len(note) < 120 and note.startswith("[") for note in notes)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_stands_before_a_message_says_how_many_turns_it_tells_of_and_where_it_ends(language: markers.Language) -> None:
    assert " 12 " in markers.turns_compacted(12, language)
    assert "\n" not in markers.turns_compacted(12, language) + markers.end_of_background(language)
    assert "30000" in markers.truncated_topic(None, 30_000, language)


@given(st.text(max_size=300) | st.builds("{} {}{}_{}".format, st.sampled_from(["call", "Use", "via the", "tool"]), st.just(""), st.text(), st.text()))
def test_a_topic_is_one_short_line_that_cannot_break_the_marker_or_offer_a_tool(text: str) -> None:
    topic = markers.clip(text)
    assert len(topic) <= 60
    assert not re.search(r"[\n\r\[\]·\ud800-\udfff]", topic)
    assert not ADVICE.search(topic)
