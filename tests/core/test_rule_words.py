"""The patterns and the words by which they are skipped must agree."""

from __future__ import annotations

import pytest

from ctxproxy.core import retraction_words, rule_words, rule_words_zh
from ctxproxy.core.rule_words import Words, any_of, words
from tests.core.rule_histories import CHANGES, CHANGES_ZH
from tests.core.test_retractions import BELITTLING, KEEPING, TAKING_BACK
from tests.core.test_rules import STATED

ALL = {
    f"{module.__name__.rsplit('.')[-1]}.{name}": value
    for module in (rule_words, rule_words_zh, retraction_words)
    for name, value in vars(module).items()
    if isinstance(value, Words)
}
CHANGED = [text.format(name="atlas", n=140, m=900) for row in (*CHANGES, *CHANGES_ZH) for text in row[:2]]
SENTENCES = [*STATED, *CHANGED, *BELITTLING, *KEEPING, *(sentence for sentence, _, _ in TAKING_BACK)]
HEADINGS = [
    "The rules:",
    "以下要求：",
    "Please follow these instructions:",
    "Could you please always cite it?",
    "You don't have to.",
    "能不能以后别用？",
]


@pytest.mark.parametrize("name", ALL)
def test_a_pattern_finds_nothing_that_its_cues_would_skip(name: str) -> None:
    one = ALL[name]
    found = [sentence for sentence in (*SENTENCES, *HEADINGS) if one.pattern.search(sentence.lower())]
    assert found, "no sentence of the tests is found by it"
    assert [sentence for sentence in found if not one.found(sentence.lower())] == []


def test_a_cue_alone_is_not_enough() -> None:
    one = words(r"never (?:push|pull)", "never")
    assert one.found("never push")
    assert not one.found("never say so")
    assert not one.found("push")
    assert [match.group() for match in one.places("never push, never pull")] == ["never push", "never pull"]
    assert list(one.places("push")) == []
    assert any_of(("a", "b"), "xb")
    assert not any_of(("a", "b"), "x")
