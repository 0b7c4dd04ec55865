"""Cutting what is asked right now."""

from __future__ import annotations

import json

import pytest

from ctxproxy.core.messages import Directives, Message, text_of, tool_calls
from ctxproxy.core.stages.base import Context
from ctxproxy.core.stages.shrink_newest import ShrinkNewest
from tests.core.histories import FILLER, assistant, call, context, result, tool_call, transcript, user
from tests.core.stages.tables import changed, rewrite

STAGE = ShrinkNewest()
LONG = FILLER * 200
BOTH = assistant(None, tool_calls=[tool_call("a", "ping"), tool_call("b", "ping")])
KEPT = Message(result("c", LONG).raw, result("c", LONG).fields, Directives(never_summarize=True))

LEAVES_ALONE = [
    ([user("q"), call("c"), result("c", LONG)], context(100, 5000), (), "over the target, within the limit"),
    ([user(LONG)], context(100), (), "the last user message"),
    ([user("q"), call("c"), result("c", LONG), user("now")], context(100), (), "results that are not the newest"),
    ([user("q"), call("c"), result("c", LONG)], context(100), (2,), "pinned"),
    ([user("q"), call("c"), KEPT], context(100), (), "the client wants it whole"),
    ([user("q"), call("c"), result("c", "short")], context(1), (), "nothing to gain"),
]


@pytest.mark.parametrize(("messages", "told", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], told: Context, pinned: tuple[int, ...], why: str) -> None:
    assert changed(rewrite(STAGE, messages, told, pinned)) == [], why


def test_rewrites_the_result_just_as_far_as_the_limit_asks() -> None:
    entries = rewrite(STAGE, [user("q"), call("c"), result("c", "FIRST " + LONG + " LAST")], context(0, 1000))
    assert 850 < sum(e.tokens for e in entries) <= 1000
    text = text_of(entries[2].message)
    assert "\nFIRST plain" in text
    assert text.endswith(" LAST")


def test_rewrites_large_results_alike_and_leaves_small_ones() -> None:
    entries = rewrite(STAGE, [user("q"), BOTH, result("a", LONG), result("b", "alpha ok")], context(0, 800))
    assert changed(entries) == [2]


def test_rewrites_parts_and_loses_no_short_one() -> None:
    parts = [{"type": "text", "text": "log start " + LONG}, {"type": "text", "text": "exit code 1"}]
    entries = rewrite(STAGE, [user("q"), call("c"), result("c", parts)], context(0, 300))
    assert entries[2].message.content[1] == parts[1]
    assert sum(e.tokens for e in entries) <= 300


def test_rewrites_arguments_only_if_results_are_not_enough() -> None:
    messages = [user("q"), call("c", path="a.py", text=LONG), result("c", LONG)]
    tokens = transcript(messages).tokens
    assert changed(rewrite(STAGE, messages, context(0, tokens - 500))) == [2]
    entries = rewrite(STAGE, messages, context(0, 600))
    assert changed(entries) == [1, 2]
    assert json.loads(tool_calls(entries[1].message)[0].arguments)["path"] == "a.py"


def test_leaves_arguments_of_a_pinned_call_alone() -> None:
    messages = [user("q"), call("c", path="a.py", text=LONG), result("c", "ok")]
    assert changed(rewrite(STAGE, messages, context(0, 100), (1,))) == []


def test_rewrites_what_is_said_beside_a_call_last_of_all() -> None:
    said = assistant("FIRST " + LONG + " LAST", tool_calls=[tool_call("a", "ping")])
    messages = [user("q"), said, result("a", "ok")]
    entries = rewrite(STAGE, messages, context(0, 400))
    assert changed(entries) == [1]
    assert sum(e.tokens for e in entries) <= 400
    assert "FIRST" in text_of(entries[1].message)
    assert tool_calls(entries[1].message) == tool_calls(said)


def test_leaves_what_the_answer_is_to_begin_with_alone() -> None:
    messages = [user("q"), call("c"), result("c", "ok"), assistant(LONG)]
    assert changed(rewrite(STAGE, messages, context(0, 100))) == []
