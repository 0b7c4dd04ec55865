"""Which sentences state a rule, a limit or a lasting preference, and which only look like it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.rules import NAMED, ORDERED, PREFERENCE, RULE, candidates, prose, rule_weight, statements
from tests.core.rule_histories import RULES, RULES_ZH, TALK, TALK_ZH

VALUES = {"name": "atlas", "n": "140", "m": "900", "day": "7"}
VALUES_ZH = {**VALUES, "name": "青松"}
STATED = [form.format(**VALUES) for form in RULES] + [form.format(**VALUES_ZH) for form in RULES_ZH]
SAID = [form.format(**VALUES) for form in TALK] + [form.format(**VALUES_ZH) for form in TALK_ZH]


def texts(text: str) -> list[str]:
    return [one.text for one in statements(text)]


@pytest.mark.parametrize(
    "sentence",
    [
        *STATED,
        "RULE-7: never push to main.",
        "Please do not touch the tests folder.",
        "You must answer in German.",
        "- DO NOT MODIFY: tests, configuration files",
        "Use tabs only.",
        "My budget is $500.",
        "The answer should not exceed 50 words.",
        "It has to stay under $200.",
        "Also, avoid global state.",
        "At most 3 retries.",
        "No emojis.",
        "Stop using emojis.",
        "Answer in German.",
        "必须住在市中心。",
        "不要用英文回答。",
        "最多三个人。",
        "请别改数据库。",
        "规则1：只能用中文。",
        "能不能以后都用中文回答？",
    ],
)
def test_rules_limits_and_lasting_preferences_are_found(sentence: str) -> None:
    before, after = ("Hello there. ", " The sky is blue.") if sentence.isascii() else ("你好。", "天是蓝的。")
    mark = "" if sentence[-1] in ".!?。！？" else "."
    assert texts(sentence) == [sentence]
    assert [text.rstrip(".") for text in texts(before + sentence + mark + after)] == [sentence.rstrip(".")]


@pytest.mark.parametrize(
    "sentence",
    [
        *SAID,
        "I never went there.",
        "You don't have to do that.",
        "Must I go?",
        "Don't worry about it.",
        "Never give up!",
        "Stay safe and keep going!",
        "Deborah: Always by your side!",
        "That is a must.",
        "I came here only yesterday.",
        "The markets will always be unpredictable.",
        "No, that is wrong.",
        "No problem at all.",
        "That must have been hard.",
        "She is trying to stay on top of deadlines.",
        "I don't think so.",
        "Don't forget, you got this!",
        "At least I tried.",
        "I like red.",
        "我特别喜欢你。",
        "不得不说很好。",
        "不要紧。",
        "怪不得这么厉害。",
        "必须去吗？",
        "我们分别用了两种方法。",
        "今天天气不错。",
    ],
)
def test_talk_is_none(sentence: str) -> None:
    assert texts(sentence) == []


@pytest.mark.parametrize(
    "text",
    [
        "```python\nif x must be:\n    never()\n```",
        "~~~\nYou must obey.\n~~~",
        'raise ValueError("x must be positive")',
        'if name == "never": assert must, "always"',
        "ERROR: value must be positive",
        "2024-05-01 12:00:01 WARN key must not be null",
        "TypeError: argument must be int",
        "1463:            msg = 'must be'",
        "    return must_be(never, 'always')",
    ],
)
def test_code_and_logs_state_none(text: str) -> None:
    assert texts(text) == []
    assert texts(f"{text}\nNever push to main.") == ["Never push to main."]


def test_a_fence_that_is_not_closed_hides_nothing() -> None:
    assert texts("```\nNever push to main.") == ["Never push to main."]


def test_each_item_of_a_list_of_rules_is_one() -> None:
    assert texts("The rules:\n1. tabs\n2. two spaces in YAML\n\nNow fix it.") == ["1. tabs", "2. two spaces in YAML"]
    assert texts("请遵守以下要求：\n- 代码用制表符\n- 注释用英文") == ["- 代码用制表符", "- 注释用英文"]
    assert {one.weight for one in statements("Requirements:\n* fast\n* small")} == {NAMED}


def test_a_list_under_an_order_is_one_rule_with_it_if_it_is_short() -> None:
    block = "Do not touch any of the following files:\n- a.py\n- b.py"
    assert texts(block) == [block]
    assert len(texts("Do not touch:\n" + f"- {'x' * 90}\n" * 20)) == 1
    assert texts("Do not touch:\n" + f"- {'x' * 90}\n" * 20) == ["Do not touch:"]


def test_a_list_under_another_heading_is_read_line_by_line() -> None:
    assert texts("What I did:\n- lunch\n- never push to main\n- lunch again") == ["- never push to main"]
    assert texts("ERROR rules: must not\n- never x") == ["- never x"]


def test_a_wrapped_line_is_joined() -> None:
    text = "You must never deploy the service on a Friday\nafternoon without my written approval."
    assert texts(text) == [text.replace("\n", " ")]
    assert texts("Never deploy\nwithout me") == ["Never deploy"]
    assert prose("a,\nb\n\n<rules>c</rules>") == ["a,", "b", "c"]


def test_they_come_in_order_once_each_and_without_tags() -> None:
    text = "<rules>RULE-7: never push to main. RULE-8: answer in German.</rules> First task: fix it.\nNever shout.\nNever shout."
    assert texts(text) == ["RULE-7: never push to main.", "RULE-8: answer in German.", "Never shout."]


def test_a_named_rule_weighs_most_and_a_question_nothing() -> None:
    weights = [rule_weight(s) for s in ("RULE-1: be brief.", "Never do it.", "It must be red.", "I prefer red.", "It is red.", "Must it be red?")]
    assert weights == [NAMED, ORDERED, RULE, PREFERENCE, 0.0, 0.0]


def test_candidates_are_the_sentences_that_may_be_rules() -> None:
    assert list(candidates("Never push. The sky is blue.\nERROR: must be int")) == ["Never push."]
    assert list(candidates("Hello.")) == []


@given(st.text(max_size=300))
def test_what_is_found_stands_in_the_text(text: str) -> None:
    assert all("".join(rule.split()) in "".join(text.split()) for rule in texts(text.replace("<", "")))


@pytest.mark.parametrize(
    "trap",
    ["must ", "never ", "no ", "at most ", "always, ", "budget ", "- x:\n", "```\n", "<a", "不", "必须", "if (", "rule ", "don't ", "别", "预算"],
)
def test_time_grows_with_the_length_and_no_faster(trap: str) -> None:
    """Bounded in steps, not in seconds: eight times the text may not take more than a hundred times as long."""

    def took(length: int) -> float:
        text = trap * (length // len(trap))
        start = time.process_time()
        statements(text)
        return time.process_time() - start

    assert took(80_000) < 100 * max(took(10_000), 0.001)
