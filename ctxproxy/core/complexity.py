"""How complex a conversation is, 0 to 1, and how many of its newest turns should therefore stay word for word (003-41)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, pstdev

from ctxproxy.core.facts import anchors

ENTITIES, LENGTHS, TOPICS = 0.4, 0.3, 0.3
"""What each measure counts (003-41)."""
MANY_ENTITIES = 4
"""Exact values a text, on average, that count as 1; the row does not say how its inputs come to lie between 0 and 1."""
COMPLEX_TURNS = 7
"""So many of the newest user messages say how complex a conversation is."""
FEW, SOME, MANY = 3, 5, 7
LOW, HIGH = 0.5, 0.8
"""Below LOW few turns stay, up to HIGH, itself included, some, above it many (003-41)."""
WORD = re.compile(r"[^\W\d_\u3400-\u9fff]{3,}|[\u3400-\u9fff]{2}")
SAMPLE_CHARS = 2000
"""Of each text: a pasted log says no more with its second page."""


def window_turns(score: float) -> int:
    """How many turns stay for a complexity."""
    if score < LOW:
        return FEW
    return SOME if score <= HIGH else MANY


def complexity(texts: Sequence[str]) -> float:
    """0.4 x entities + 0.3 x variance of length + 0.3 x shift of topic, of what the user said, oldest first; each scaled to 0..1."""
    texts = [text[:SAMPLE_CHARS] for text in texts]
    return ENTITIES * entities(texts) + LENGTHS * length_variance(texts) + TOPICS * topic_shift(texts)


def entities(texts: Sequence[str]) -> float:
    """Exact values (ids, paths, amounts, dates, names) a text, 1 from `MANY_ENTITIES` on."""
    return min(fmean(len(anchors(text)) for text in texts) / MANY_ENTITIES, 1.0) if texts else 0.0


def length_variance(texts: Sequence[str]) -> float:
    """The standard deviation of the lengths over their mean, 1 at most."""
    lengths = [len(text) for text in texts]
    return min(pstdev(lengths) / fmean(lengths), 1.0) if any(lengths) else 0.0


def topic_shift(texts: Sequence[str]) -> float:
    """How little the words of neighbouring texts have in common, on average: 0 the same ones, 1 none."""
    words = [set(WORD.findall(text.lower())) for text in texts]
    shifts = [1.0 - len(one & other) / min(len(one), len(other)) for one, other in pairwise(words) if one and other]
    return fmean(shifts) if shifts else 0.0
