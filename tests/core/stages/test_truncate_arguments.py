"""Long arguments of old calls are cut and stay JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxproxy.core.messages import Message, tool_calls
from ctxproxy.core.stages.base import Context
from ctxproxy.core.stages.truncate_arguments import TruncateArguments
from tests.core.histories import FILLER, assistant, call, context, result, tool_call, user
from tests.core.stages.tables import changed, rewrite

CODE = "import os, sys, json\n" + "value = compute(value)\n" * 200


def turn(arguments: str, **extra: Any) -> list[Message]:
    head = assistant(None, tool_calls=[tool_call("c", "write", arguments, **extra)])
    return [user("write it"), head, result("c", "done"), assistant("It is written."), user("next?")]


WRITES = json.dumps({"path": "src/main.py", "content": CODE})
LEAVES_ALONE: list[tuple[list[Message], Context, tuple[int, ...], str]] = [
    (turn(WRITES), context(10_000), (), "it fits"),
    (turn(json.dumps({"path": "src/main.py", "content": "x" * 1900})), context(), (), "not over 2,000 characters"),
    ([user("old " + FILLER * 60), assistant("ok"), *turn(WRITES)], context(1300, keep_recent_turns=2), (), "a recent turn"),
    (turn(WRITES)[:3], context(), (), "the newest group"),
    (turn(WRITES), context(), (1,), "pinned"),
    (turn(WRITES, extra_content={"google": {"thought_signature": "SIG"}}), context(), (), "signed"),
]


@pytest.mark.parametrize(("messages", "told", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], told: Context, pinned: tuple[int, ...], why: str) -> None:
    assert changed(rewrite(TruncateArguments(recent_share=1.0), messages, told, pinned)) == [], why


def test_rewrites_the_long_string_to_its_first_characters_and_a_marker() -> None:
    after = rewrite(TruncateArguments(), turn(WRITES), context())
    assert changed(after) == [1]
    (one,) = tool_calls(after[1].message)
    arguments = json.loads(one.arguments)
    assert arguments["path"] == "src/main.py"
    assert arguments["content"].startswith("import os, sys, json [COMPACTED: argument of ")
    assert f"{len(CODE)} characters" in arguments["content"]
    assert after[1].tip[:16] in arguments["content"]
    assert len(one.arguments) < 200


def test_rewrites_by_its_options() -> None:
    after = rewrite(TruncateArguments(max_chars=500, keep_chars=9), turn(json.dumps({"content": FILLER * 20})), context())
    assert json.loads(tool_calls(after[1].message)[0].arguments)["content"].startswith("plain [COMPACTED: ")


@pytest.mark.parametrize("arguments", ["not json " * 400, json.dumps({"rows": list(range(2000))}), json.dumps(["x" * 3000])])
def test_rewrites_what_has_no_long_string_in_an_object_and_it_is_json_all_the_same(arguments: str) -> None:
    after = rewrite(TruncateArguments(), turn(arguments), context())
    (one,) = tool_calls(after[1].message)
    assert len(one.arguments) <= 2000
    assert isinstance(json.loads(one.arguments), dict)


def test_rewrites_in_chinese() -> None:
    after = rewrite(TruncateArguments(), turn(json.dumps({"content": "汉字" * 2000}, ensure_ascii=False)), context(language="zh"))
    assert "4000 个字符的参数" in json.loads(tool_calls(after[1].message)[0].arguments)["content"]


def test_rewrites_calls_of_one_long_turn_but_the_newest() -> None:
    messages = [user("go")]
    for n in range(6):
        messages += [call(f"c{n}", "write", content=CODE), result(f"c{n}", "done")]
    assert changed(rewrite(TruncateArguments(), messages, context())) == [1, 3, 5, 7, 9]
