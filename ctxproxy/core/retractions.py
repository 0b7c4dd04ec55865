"""What users say of their own earlier words: that a rule is off, that it has another value now, that a text is to be kept or matters little.

Whether it is the same rule is judged by its content words. Losing a rule is worse than keeping an old one, so where it is not clear
which one is meant, all stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from ctxproxy.core.retraction_words import (
    ALLOWED,
    ALLOWED_ZH,
    EVERYTHING,
    KEEP_THIS,
    LITTLE_OPENING,
    MATTERS_LITTLE,
    NEEDLESS,
    NEEDLESS_SURE,
    NEEDLESS_ZH,
    NEGATED,
    OFF,
    OFF_ZH,
    STOPPED,
)
from ctxproxy.core.rule_words import Words
from ctxproxy.core.topics import QUANTITIES, Topic, topic

Form: TypeAlias = Literal["off", "allowed", "needless", "stopped"]
FORMS: tuple[tuple[Form, Words], ...] = (
    ("off", OFF),
    ("off", OFF_ZH),
    ("needless", NEEDLESS_ZH),
    ("allowed", ALLOWED),
    ("allowed", ALLOWED_ZH),
    ("needless", NEEDLESS),
    ("stopped", STOPPED),
)
"""In the order in which they are tried."""
RETRACTION_CHARS = 300
"""A longer sentence tells something else besides."""
SURE, LIKELY = 0.75, 0.5
"""Of the words of a retraction that a rule must hold: where it only allows something; where it names a rule."""
SAME, FLIPPED, LEVELLED, CHANGED = 0.8, 0.75, 0.8, 0.6
"""Shares of common words: said again; said the other way round; the same limit with another number; said to have changed."""


class Retraction(NamedTuple):
    """That an earlier rule is off (None: all of them), not needed any more, to be stopped, or that what it forbids is allowed now."""

    form: Form
    about: Topic | None


def retraction(sentence: str) -> Retraction | None:
    """What a sentence takes back; None if nothing."""
    low = sentence.lower()
    if len(low) > RETRACTION_CHARS or NEGATED.search(low) or low.rstrip("\"'”’)）").endswith(("?", "？")):
        return None
    if EVERYTHING.search(low):
        return Retraction("off", None)
    for form, words in FORMS:
        match = next(iter(words.places(low)), None)
        target = next((group for group in match.groups() if group), "") if match else ""
        about = topic(target)
        if about.words and (words is not NEEDLESS or NEEDLESS_SURE.search(low)):
            return Retraction(form, about)
    return None


def share_meant(back: Retraction, rule: Topic) -> float:
    """How much of what is taken back a rule holds; 0 where it cannot be meant."""
    if back.about is None:
        return 1.0
    if back.form == "allowed" and not rule.negative:
        return 0.0
    held = len(back.about.words & rule.words) / len(back.about.words)
    return held if held >= (LIKELY if back.form == "off" else SURE) else 0.0


def supersedes(new: Topic, old: Topic, *, says_change: bool) -> bool:
    """Whether a newer rule takes the place of an older one: the same again, its opposite, or the same with another value."""
    if not new.level or not old.level:
        return False
    if new.values == old.values and _alike(new.words, old.words) >= (SAME if new.negative == old.negative else FLIPPED):
        return not _names_another(new.order, old.order)
    other_value = new.values != old.values and bool(new.values) and bool(old.values)
    if not other_value:
        return False
    if says_change:
        common = new.level & old.level
        sure = bool(common & QUANTITIES) or len(common) > 1
        return sure and len(common) / min(len(new.level), len(old.level)) >= CHANGED
    one_differs = len(new.values - old.values) == len(old.values - new.values) == 1
    return bool(new.level & old.level & QUANTITIES) and one_differs and _alike(new.level, old.level) >= LEVELLED


def _names_another(new: Sequence[str], old: Sequence[str]) -> bool:
    """Whether a rule differs from another in one place, where it has other words: there the two name what they are about."""
    ahead = next((n for n, (one, other) in enumerate(zip(new, old, strict=False)) if one != other), min(len(new), len(old)))
    rest, other_rest = new[ahead:], old[ahead:]
    pairs = zip(reversed(rest), reversed(other_rest), strict=False)
    behind = next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(rest), len(other_rest)))
    return len(rest) > behind and len(other_rest) > behind


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


def keeps(sentence: str) -> bool:
    """Whether a sentence says that what stands beside it, or was said before, is to be kept (001-75)."""
    return KEEP_THIS.pattern.fullmatch(sentence.lower().strip()) is not None


def belittles(sentence: str) -> bool:
    """Whether a sentence says that its message, or the one before, matters little (001-75)."""
    low = sentence.lower().strip()
    return MATTERS_LITTLE.pattern.fullmatch(low) is not None or LITTLE_OPENING.match(low) is not None


def opens_with_little(sentence: str) -> bool:
    """Whether a sentence says so of what it goes on to tell: "not important: …"."""
    return LITTLE_OPENING.match(sentence.lower().strip()) is not None
