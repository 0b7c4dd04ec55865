"""Old images, audio and files."""

from __future__ import annotations

from typing import Any

import pytest

from ctxproxy.core.messages import Message
from ctxproxy.core.stages.media_to_notes import MediaToNotes
from tests.core.histories import PNG, assistant, call, context, result, transcript, user
from tests.core.stages.tables import changed, rewrite

IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": PNG}}
FILE: dict[str, Any] = {"type": "file", "file": {"filename": "contract.pdf", "file_data": "JVBERi0xLjQK"}}


def shot(n: int) -> list[Message]:
    return [user([{"type": "text", "text": f"Screenshot {n}"}, IMAGE]), assistant(f"window {n}")]


LEAVES_ALONE = [
    ([*shot(1), user("now")], (), "the newest one"),
    ([user("q"), assistant("a"), user([IMAGE, FILE])], (), "all in the last user message"),
    ([*shot(1), *shot(2), user("now")], (0,), "pinned"),
    ([user("data:image/png in a text"), user("now")], (), "no part at all"),
]


@pytest.mark.parametrize(("messages", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], pinned: tuple[int, ...], why: str) -> None:
    assert changed(rewrite(MediaToNotes(), messages, pinned=pinned)) == [], why


def test_leaves_the_newest_group_alone_even_if_none_is_to_be_kept() -> None:
    messages = [user("q"), call("c"), result("c", [{"type": "text", "text": "x"}, IMAGE])]
    assert changed(rewrite(MediaToNotes(keep=0), messages)) == []


def test_rewrites_old_parts_whole_and_keeps_the_text_beside_them() -> None:
    entries = rewrite(MediaToNotes(), [*shot(1), *shot(2), *shot(3), user("now")])
    assert changed(entries) == [0, 2]
    text, note = entries[0].message.content
    assert text == {"type": "text", "text": "Screenshot 1"}
    assert note == {"type": "text", "text": f"[COMPACTED: earlier image image/png · 307 tokens · {entries[0].tip[:16]}]"}


def test_rewrites_oldest_first_and_only_as_many_as_needed() -> None:
    messages = [*shot(1), *shot(2), *shot(3), user("now")]
    assert changed(rewrite(MediaToNotes(), messages, context(transcript(messages).tokens - 200))) == [0]


def test_rewrites_media_in_tool_results_too() -> None:
    messages = [user("q"), call("c"), result("c", [FILE]), user([IMAGE]), assistant("a"), user("now")]
    entries = rewrite(MediaToNotes(), messages, context(language="zh"))
    assert changed(entries) == [2]
    assert entries[2].message.content[0]["text"].startswith("[已压缩: 较早的文件 contract.pdf · ")
