"""Decisions and conclusions, and lines of the form `[entity|entity][action][goal]`."""

from __future__ import annotations

import pytest

from ctxproxy.core.decisions import Triple, decisions, triples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We have decided to use PostgreSQL. It is fast.", ["We have decided to use PostgreSQL."]),
        ("Fine, let's go with the blue one.", ["Fine, let's go with the blue one."]),
        ("Decision: ship on Monday", ["Decision: ship on Monday"]),
        ("The plan was rejected because it costs too much.", ["The plan was rejected because it costs too much."]),
        ("我们最终决定采用方案B。明天再说。", ["我们最终决定采用方案B。"]),
        ("那就选第二个吧", ["那就选第二个吧"]),
        ("Have we decided on a name?", []),
        ("我们决定了吗", []),
        ("ERROR: agreed on nothing", []),
        ("if decision: we_agreed(decision='x')", []),
        ("He has an agreed price list", []),
        ("Nothing of the kind", []),
        ("```\nwe decided\n```", []),
    ],
)
def test_what_was_decided_is_found_word_for_word(text: str, expected: list[str]) -> None:
    assert decisions(text) == expected


def test_003_07_the_form_of_entities_action_and_goal_is_parsed() -> None:
    text = "Notes:\n- [user|laptop | laptop][buy][video editing]\n[用户] [预订] [家庭旅行]\nsee [1][2] and [a][b][c] inside a line"
    assert triples(text) == [Triple(("user", "laptop"), "buy", "video editing"), Triple(("用户",), "预订", "家庭旅行")]


@pytest.mark.parametrize("text", ["[a][b]", "[ ][b][c]", "[a][ ][c]", "plain", "[a|b][c|d][e]"])
def test_what_lacks_a_part_is_not_of_that_form(text: str) -> None:
    assert triples(text) == []
