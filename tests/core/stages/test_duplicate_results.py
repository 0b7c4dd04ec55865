"""Results whose text is seen again later."""

from __future__ import annotations

import pytest

from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.stages.duplicate_results import DuplicateResults
from tests.core.histories import FILLER, PNG, call, context, result, user
from tests.core.stages.tables import changed, rewrite

TEXT = FILLER * 20
PARTS = [{"type": "text", "text": TEXT}]
IMAGE = {"type": "image_url", "image_url": {"url": PNG}}


def ask(*contents: object) -> list[Message]:
    return [user("q"), *(m for n, content in enumerate(contents) for m in (call("c", n=n), result("c", content))), user("now")]


LEAVES_ALONE = [
    (ask(TEXT, TEXT + "x"), (), "another text"),
    (ask("ok", "ok"), (), "too short"),
    (ask([*PARTS, IMAGE], [*PARTS, IMAGE]), (), "a picture beside the text may differ"),
    (ask(TEXT, TEXT), (2,), "pinned"),
    ([user("q"), user(TEXT), user(TEXT), user("now")], (), "users repeat themselves on purpose"),
]
REWRITES = [
    (ask(TEXT, TEXT), [2], "the earlier of two"),
    (ask(TEXT, "other", TEXT, TEXT), [2, 6], "all but the last"),
    (ask(PARTS, TEXT), [2], "parts and a string with the same text"),
]


@pytest.mark.parametrize(("messages", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], pinned: tuple[int, ...], why: str) -> None:
    assert changed(rewrite(DuplicateResults(), messages, pinned=pinned)) == [], why


def test_leaves_the_newest_group_alone() -> None:
    assert changed(rewrite(DuplicateResults(), ask(TEXT, TEXT)[:-1])) == [2]


@pytest.mark.parametrize(("messages", "places", "why"), REWRITES, ids=[row[-1] for row in REWRITES])
def test_rewrites(messages: list[Message], places: list[int], why: str) -> None:
    assert changed(rewrite(DuplicateResults(), messages)) == places, why


def test_the_marker_speaks_the_conversations_language() -> None:
    entry = rewrite(DuplicateResults(), ask(TEXT, TEXT), context(language="zh"))[2]
    assert text_of(entry.message) == f"[已压缩: read 0 的结果，与后面的结果相同 · 204 个词元 · {entry.tip[:16]}]"
