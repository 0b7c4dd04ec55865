"""What a text is found by: its words in a common form, pairs of neighbouring Chinese characters, and its exact values as they stand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from ctxproxy.core.facts import Kind, anchors
from ctxproxy.core.passages import STOPWORDS

WORD = re.compile(r"[^\W_\u3400-\u9fff]+")
HAN_RUN = re.compile("[\u3400-\u9fff]+")
EXACT: frozenset[Kind] = frozenset({"url", "email", "path", "id", "version", "date", "name"})
"""The kinds of values that somebody who names one means exactly (003-55)."""
MARK = "="
"""Begins the term of an exact value: no word begins so."""
LONGEST_WORD_CHARS = 40
"""Longer ones are encoded data."""
LEAST_STEM_CHARS = 4
MOST_STEMS = 16_384
"""Remembered, about 150 bytes each: nearly all words of a text are from a few thousand."""
SUFFIXES = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", ""))
ASKING_PAIRS = """
什么 怎么 哪些 哪个 为何 多少 我们 你们 他们 之前 记得 还记 得吗 一下 可以 知道 这个 那个 是什 么样 请问 告诉 诉我
"""
ASKING_HAN = frozenset(ASKING_PAIRS.split())
"""Pairs of characters that say that something is asked, not what."""


def terms_of(text: str) -> Counter[str]:
    """How often each term is in a text."""
    return Counter(_terms(text))


def query_terms(text: str) -> list[str]:
    """The terms of a text that say what it is about, each once; all of them where none does."""
    found = dict.fromkeys(_terms(text, STOPWORDS))
    telling = [term for term in found if term not in ASKING_HAN and not (len(term) == 1 and term.isascii())]
    return telling or list(dict.fromkeys(_terms(text)))


def _terms(text: str, left_out: frozenset[str] = frozenset()) -> Iterator[str]:
    low = text.lower()
    yield from map(_stem, [word for word in WORD.findall(low) if len(word) <= LONGEST_WORD_CHARS and word not in left_out])
    if not low.isascii():
        for run in HAN_RUN.findall(low):
            yield from (run[at : at + 2] for at in range(len(run) - 1)) if len(run) > 1 else (run,)
    yield from (MARK + value.lower() for value, kind in anchors(text).items() if kind in EXACT)


@lru_cache(maxsize=MOST_STEMS)
def _stem(word: str) -> str:
    """A word without a common English ending, so that "painted" finds "paint"; what has a digit in it stays."""
    if len(word) < LEAST_STEM_CHARS or not word.isascii() or not word.isalpha():
        return word
    for suffix, instead in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) + len(instead) >= LEAST_STEM_CHARS - 1 and not word.endswith("ss"):
            word = word[: len(word) - len(suffix)] + instead
            break
    ends_in_e = word.endswith("e") and len(word) > LEAST_STEM_CHARS
    return word[:-1] if ends_in_e or word.endswith("xe") else word
