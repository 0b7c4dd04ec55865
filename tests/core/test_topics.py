"""What a sentence is about, in words that can be compared."""

from __future__ import annotations

import pytest

from ctxproxy.core.topics import topic


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Never deploy the atlas-birch service.", {"deploy", "atlas-birch", "servic"}),
        ("You must always run the tests.", {"run", "test"}),
        ("Keep answers under 1,000 words.", {"answer", "1000", "word"}),
        ("the 50-word limit", {"50", "word", "limit"}),
        ("files in src/app.py", {"fil", "src/app.py"}),
        ("不要动青松目录。", {"动青", "青松", "松目", "目录"}),
        ("回答不得超过100字。", {"回答", "字", "100", "字数"}),
        ("必须", set()),
    ],
)
def test_only_words_of_content_count(sentence: str, words: set[str]) -> None:
    assert topic(sentence).words == words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Keep replies under 50 words.", "Keep replies under 80 words."),
        ("Answer in German.", "Answer in French."),
        ("Deliver on Monday.", "Deliver on Friday."),
        ("请用法语回答。", "请用英语回答。"),
        ("住三天", "住五天"),
    ],
)
def test_values_are_levelled(one: str, other: str) -> None:
    assert topic(one).level == topic(other).level
    assert topic(one).values != topic(other).values


@pytest.mark.parametrize(
    ("sentence", "negative"),
    [("Never use tabs.", True), ("Use tabs.", False), ("don't", True), ("不要用", True), ("请用", False), ("class kiss", False)],
)
def test_what_forbids_is_told_from_what_demands(sentence: str, negative: bool) -> None:
    assert topic(sentence).negative is negative
