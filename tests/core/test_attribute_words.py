"""The sentences in which people tell who they are: each row of the table finds its own, and takes no time over others."""

from __future__ import annotations

import re

import pytest

from ctxproxy.core.attribute_words import COPULAS, LINKS, OWN
from ctxproxy.core.attributes import attributes, may_tell

SAMPLES = (
    ("I'm called Zoe", "Zoe"),
    ("my birthday was 3 May", "3 May"),
    ("my boss is named Kim", "Kim"),
    ("my son's name is Ole", "Ole"),
    ("my preferred airline is KLM", "KLM"),
    ("I moved to Lisbon", "Lisbon"),
    ("I'm working for ACME Ltd", "ACME Ltd"),
    ("I work as a nurse", "nurse"),
    ("I am allergic to nuts", "nuts"),
    ("I'm a vegan", "vegan"),
    ("以后叫我阿强吧", "阿强"),
    ("我家在成都", "成都"),
    ("我目前在华为任职", "华为"),
    ("我对海鲜过敏", "海鲜"),
    ("我的生日是五月三日", "五月三日"),
    ("我最喜欢的歌手是王菲", "王菲"),
)


@pytest.mark.parametrize(("at", "sentence", "value"), [(at, *sample) for at, sample in enumerate(SAMPLES)])
def test_each_row_finds_its_sentence(at: int, sentence: str, value: str) -> None:
    pattern, kind, key = OWN[at]
    match = pattern.search(sentence)
    assert match
    assert match["v"].startswith(value[0])
    assert (kind, value) in [(one.kind, one.value) for one in attributes(sentence)]
    assert key or "k" in match.groupdict()


def test_texts_without_a_cue_are_told_apart_cheaply() -> None:
    assert all(may_tell(sentence) for sentence, _ in SAMPLES)
    assert [text for text in ("It rains a lot.", "天气不错", "") if may_tell(text)] == []
    assert all(may_tell(text) for text in ("at 5", "on Friday", "下周见", "三千元"))


def test_there_is_a_sample_for_each_row() -> None:
    assert len(SAMPLES) == len(OWN)
    assert COPULAS < LINKS


@pytest.mark.parametrize("piece", ["my ", "1", "1 ", "我的", "我在", "the of ", "is ", "、", "$1,", "一"])
def test_a_sentence_of_the_longest_kind_is_read_without_going_back_and_forth(piece: str) -> None:
    """A pattern that tries all ways would not come back within the test's time limit."""
    sentence = (piece * 600)[:600]
    assert attributes(sentence) == attributes(sentence)
    assert all(isinstance(pattern, re.Pattern) for pattern, _, _ in OWN)
