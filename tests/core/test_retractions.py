"""Taking back, changing, keeping and belittling, in both languages; what only sounds like it does nothing."""

from __future__ import annotations

import pytest

from ctxproxy.core.retractions import belittles, keeps, opens_with_little, retraction, share_meant, supersedes
from ctxproxy.core.topics import topic

LONG = "Always notify the owner of the {} team, wait for written approval, tag the release, and attach the signed report before deploying."
TAKING_BACK: list[tuple[str, str, str]] = [
    ("Forget the rule about tabs.", "Never use tabs.", "off"),
    ("forget about the budget", "My budget is $500.", "off"),
    ("Please drop the 50-word limit.", "Keep answers under 50 words.", "off"),
    ("Ignore what I said about XML.", "Never use XML.", "off"),
    ("RULE-7 no longer applies.", "RULE-7: never push.", "off"),
    ("The deadline of the report is off.", "The deadline of the report is Friday.", "off"),
    ("Docstrings are no longer required.", "Docstrings are required.", "off"),
    ("There is no budget any more.", "My budget is $500.", "off"),
    ("You may now use tabs.", "Never use tabs.", "allowed"),
    ("You can touch the folder again.", "Do not touch the folder.", "allowed"),
    ("From now on you may use tabs.", "Never use tabs.", "allowed"),
    ("Tabs are fine now.", "Never use tabs.", "allowed"),
    ("XML is now allowed.", "Never use XML.", "allowed"),
    ("You don't have to run the tests any more.", "Always run the tests.", "needless"),
    ("You no longer need to cite sources.", "Always cite sources.", "needless"),
    ("No need to ask first any longer.", "Always ask first.", "needless"),
    ("Stop citing sources.", "Always cite sources: citing sources matters.", "stopped"),
    ("取消关于制表符的规则。", "不要用制表符。", "off"),
    ("制表符的规则作废。", "不要用制表符。", "off"),
    ("没有预算限制了。", "预算5000元。", "off"),
    ("人数不限了。", "人数最多十人。", "off"),
    ("现在可以用制表符了。", "不要用制表符。", "allowed"),
    ("可以用红色了。", "不要用红色。", "allowed"),
    ("允许用红色了。", "不要用红色。", "allowed"),
    ("不用再写测试了。", "每次都要写测试。", "needless"),
    ("不再需要写测试。", "每次都要写测试。", "needless"),
    ("不用写测试了。", "每次都要写测试。", "needless"),
]
KEEPING = ["Remember this.", "please remember that!", "Keep in mind this.", "don't forget this", "记住这一点", "请记住", "这点很重要，务必记住。"]
BELITTLING = [
    "This is not important.",
    "It doesn't matter.",
    "never mind",
    "Forget it.",
    "Ignore my last message.",
    "You don't need to remember this.",
    "Not important: my cat is grey.",
    "By the way, this is not important, my cat is grey.",
    "这不重要。",
    "不重要",
    "无所谓。",
    "刚才说的可以忽略。",
    "这不重要，我家猫是灰的。",
]


@pytest.mark.parametrize(("sentence", "rule", "form"), TAKING_BACK)
def test_a_rule_is_taken_back(sentence: str, rule: str, form: str) -> None:
    back = retraction(sentence)
    assert back is not None
    assert back.form == form
    assert share_meant(back, topic(rule)) >= 0.5


@pytest.mark.parametrize(
    "sentence",
    [
        "Never forget the rule about tabs.",
        "Don't ignore the limit of 50 words.",
        "不要取消关于制表符的规则。",
        "May I drop the rule about tabs?",
        "I forgot my umbrella.",
        "You don't like tabs.",
        "You can do it.",
        "You may only use tabs now.",
        "The build is fine.",
        "Remove the file.",
        "Forget " + "the rule about tabs " * 30,
        "可以帮我看看吗？",
        "Stop.",
        "",
    ],
)
def test_nothing_is_taken_back(sentence: str) -> None:
    assert retraction(sentence) is None


def test_everything_can_be_taken_back_at_once() -> None:
    for sentence in ("Forget all the rules I gave you.", "取消之前说的所有规则。"):
        back = retraction(sentence)
        assert back is not None
        assert share_meant(back, topic("Never use tabs.")) == 1.0


def test_a_permission_takes_back_only_what_forbids() -> None:
    back = retraction("You may now use tabs.")
    assert back is not None
    assert share_meant(back, topic("Please use tabs.")) == 0.0
    assert share_meant(back, topic("Never use spaces in YAML.")) == 0.0


@pytest.mark.parametrize(
    ("new", "old", "says_change"),
    [
        ("Never push to main!", "never push to main", False),
        (LONG.format("atlas"), LONG.format("atlas").replace("written ", ""), False),
        (LONG.format("atlas").replace("written ", ""), LONG.format("atlas"), False),
        ("Always use tabs.", "Never use tabs.", False),
        ("The budget is $800.", "The budget is $500.", False),
        ("The budget is now $800.", "My budget is $500.", True),
        ("Keep replies under 80 words from now on.", "Keep replies under 50 words.", True),
        ("预算改为8000元。", "预算5000元。", True),
    ],
)
def test_a_newer_wording_takes_the_place_of_an_older_one(new: str, old: str, says_change: bool) -> None:
    assert supersedes(topic(new), topic(old), says_change=says_change)


@pytest.mark.parametrize(
    ("new", "old", "says_change"),
    [
        ("Never push to main.", "Never push to dev.", False),
        ("Close ticket 13 by Friday.", "Close ticket 12 by Friday.", False),
        ("Budget of team 2 is $800.", "Budget of team 1 is $500.", False),
        ("Now use 5 spaces.", "Answer in 3 words.", True),
        ("The budget is now open.", "The budget is $500.", True),
        ("必须", "不要", False),
        ("RULE-8: never push.", "RULE-7: never push.", False),
        ("每次提交海棠云杉之前必须先运行全部测试并且通知负责人。", "每次提交云杉海棠之前必须先运行全部测试并且通知负责人。", False),
        (LONG.format("birch"), LONG.format("atlas"), False),
    ],
)
def test_another_rule_does_not(new: str, old: str, says_change: bool) -> None:
    assert not supersedes(topic(new), topic(old), says_change=says_change)


@pytest.mark.parametrize("sentence", KEEPING)
def test_a_text_is_to_be_kept(sentence: str) -> None:
    assert keeps(sentence)
    assert not belittles(sentence)


@pytest.mark.parametrize("sentence", BELITTLING)
def test_a_text_matters_little(sentence: str) -> None:
    assert belittles(sentence)
    assert not keeps(sentence)


@pytest.mark.parametrize(
    "sentence",
    ["It doesn't matter how long it takes.", "It is not important to whom it goes.", "我记得很清楚。", "Remember Paris?", "Note the date."],
)
def test_other_sentences_do_neither(sentence: str) -> None:
    assert not belittles(sentence)
    assert not keeps(sentence)


def test_a_remark_may_open_what_it_belittles() -> None:
    assert opens_with_little("Not important: my cat is grey.")
    assert not opens_with_little("This is not important.")
