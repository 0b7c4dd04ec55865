"""Memory points beside a summary: parted off, checked by schema, borne out by the originals."""

from __future__ import annotations

import json

import pytest

from ctxproxy.core.messages import make
from ctxproxy.core.prompts import prompt
from ctxproxy.core.summary_points import POINTS_TOKENS, Parted, ToldPoint, asking, parted, points_of


def block(*points: object) -> str:
    return f"```json\n{json.dumps({'memory_points': points})}\n```"


BUDGET = {"kind": "number", "key": "Budget", "value": "4,500 €"}


def test_the_block_is_parted_off_and_its_points_are_read() -> None:
    assert parted(f"1. Goal: a trip.\n\n{block(BUDGET)}\n") == Parted("1. Goal: a trip.", (ToldPoint("number", "Budget", "4,500 €"),))
    assert parted(block()) == Parted("")


@pytest.mark.parametrize("text", ["1. Goal: a trip.", '```json\n{"a": 1}\n```', f"{block(BUDGET)}\nand more text", '"memory_points" is a word', ""])
def test_an_answer_without_a_block_at_its_end_is_all_summary(text: str) -> None:
    assert parted(text) == Parted(text)


@pytest.mark.parametrize(
    "wrong",
    [
        block({**BUDGET, "kind": "rumour"}),
        block({**BUDGET, "more": 1}),
        block({"kind": "number", "key": "budget"}),
        block({**BUDGET, "value": 4500}),
        block({**BUDGET, "key": ""}),
        block({**BUDGET, "value": "x" * 601}),
        block(*[BUDGET] * 21),
        '```json\n{"memory_points": [}\n```',
        '```\n{"memory_points": []}, "x"}\n```',
        '```json\n{"memory_points": ["\ud83c"]}\n```',
    ],
)
def test_001_81_an_invalid_block_is_refused_and_the_summary_stays(wrong: str) -> None:
    assert parted(f"the summary\n{wrong}") == Parted("the summary", refused=True)


@pytest.mark.parametrize(("language", "word"), [("en", "After the summary"), ("zh", "摘要之后")])
def test_it_is_asked_for_in_the_same_call(language: str, word: str) -> None:
    bare = prompt("text", language, 100)  # type: ignore[arg-type]
    asked = asking(bare, language)  # type: ignore[arg-type]
    assert asked.system.startswith(bare.system)
    assert word in asked.system
    assert '{"memory_points": [{"kind"' in asked.system
    assert (asked.user, asked.max_tokens) == (bare.user, 100 + POINTS_TOKENS)


def test_only_what_the_originals_bear_out_is_kept() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"room": 12}'}}
    covered = [make({"role": "user", "content": "The budget is 4,500 €."}), make({"role": "assistant", "content": None, "tool_calls": [call]})]
    told = [
        ToldPoint("number", "Budget ", " 4,500 €"),
        ToldPoint("number", "room", "12"),
        ToldPoint("number", "made up", "9,000 €"),
        ToldPoint("decision", "way", "by train"),
        ToldPoint("entity", " ", "blank"),
    ]
    points = points_of(told, "Done.\n[Ann|train][takes][a trip]", covered, "aa", 5.0)
    assert [(p.kind, p.key, p.value) for p in points] == [
        ("number", "budget", "4,500 €"),
        ("number", "room", "12"),
        ("decision", "way", "by train"),
        ("action", "Ann | train: takes", "a trip"),
    ]
    assert {(p.tip, p.time, p.source) for p in points} == {("aa", 5.0, "summary")}
    assert points_of([], "nothing", covered, "aa", 5.0) == []
