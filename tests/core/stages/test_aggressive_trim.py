"""The first rung after an overflow that cuts everywhere."""

from __future__ import annotations

import json

import pytest

from ctxproxy.core.messages import Directives, Message, text_of, tool_calls
from ctxproxy.core.stages.aggressive_trim import AggressiveTrim
from tests.core.histories import FILLER, assistant, call, context, result, talk, transcript, user
from tests.core.stages.tables import changed, rewrite, texts

STAGE = AggressiveTrim()
LONG = "x y " * 5_000
FITS = "x" * 10_000

LEAVES_ALONE = [
    (talk(4), (), "five turns"),
    ([user(FITS), call("c"), result("c", FITS), user(LONG)], (), "texts of just the limit, and the last user message"),
    ([user("q"), assistant(LONG), user("now")], (), "the assistant's own text"),
    ([user(LONG), call("c"), result("c", LONG), user("now")], (0, 2), "pinned"),
    ([user("q"), call("c", text="x" * 900), result("c", "ok")], (), "arguments within their limit"),
    ([user(LONG, Directives(never_summarize=True)), assistant("a"), user("now")], (), "the client wants it whole"),
]


@pytest.mark.parametrize(("messages", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], pinned: tuple[int, ...], why: str) -> None:
    assert [e.message for e in rewrite(STAGE, messages, pinned=pinned)] == messages, why


def test_rewrites_to_five_turns_and_keeps_pins() -> None:
    assert texts(rewrite(STAGE, talk(8)), 2) == ["q4", "a4", "q5", "a5", "q6", "a6", "q7", "a7", "la"]
    assert texts(rewrite(STAGE, talk(8), pinned=[2]), 2)[:3] == ["q1", "[p", "q4"]


def test_rewrites_long_results_texts_and_arguments_of_the_current_turn_too() -> None:
    messages = [user(LONG), assistant("a"), user("now"), call("c", path="a.py", text=LONG), result("c", LONG)]
    entries = rewrite(STAGE, messages)
    assert changed(entries) == [0, 3, 4]
    arguments = tool_calls(entries[3].message)[0].arguments
    assert len(arguments) <= 1_000
    assert json.loads(arguments)["path"] == "a.py"
    for at in (0, 4):
        text = text_of(entries[at].message)
        assert 8_000 < len(text) <= 10_000
        assert text.startswith("[COMPACTED: ")
        assert "omitted" in text


def test_rewrites_no_more_than_the_target_asks() -> None:
    messages = talk(8)
    assert len(rewrite(STAGE, messages, context(transcript(messages).tokens - 100))) == len(messages) - 2


def test_rewrites_nothing_in_the_turns_that_go() -> None:
    messages = [user("q"), call("c", text=FILLER * 99), result("c", LONG), *talk(4)]
    assert changed(rewrite(STAGE, messages)) == []
