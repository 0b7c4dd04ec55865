"""Which sentences of a user state a rule, a limit or a lasting preference, and how surely.

Code, logs and questions state none. Every pattern runs over one sentence of bounded length, so the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from ctxproxy.core.rule_words import (
    ADVERB,
    ANYWHERE,
    BEFORE_ADVERB,
    BEFORE_CHARS,
    BEFORE_ORDER,
    CUES,
    DUTY,
    EASING,
    LIST_HEADING,
    OPENING_ORDER,
    ORDER,
    POLITE,
    PREFERRED,
    RULE_ID,
    Words,
    any_of,
)
from ctxproxy.core.rule_words_zh import ASKING, CUES_ZH, LIMIT_ZH, LIST_HEADING_ZH, ORDER_ZH, POLITE_ZH, PREFERRED_ZH, RULE_ID_ZH
from ctxproxy.core.sentences import split

RULE_CHARS = 600
"""The longest sentence, and the longest list under one order, that is still taken for one rule."""
NAMED, ORDERED, RULE, PREFERENCE = 4.0, 3.0, 2.0, 1.5
"""Weights: a named rule or one of a list of rules, an order, a duty or limit, a lasting preference. What weighs less is none."""
HEADING_CHARS = 160
LIST_ITEMS = 40
"""Of one list, at most."""
ITEM = re.compile(r"\s{0,8}(?:[-*•·+–]|\(?\d{1,2}[.)、:]|\(?[a-z][.)]|[一二三四五六七八九十]{1,2}[、.)]|[①-⑳])\s?\S")
FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
CODE = re.compile(
    r"^\s*(?:if|elif|else|for|while|def|class|return|raise|assert|import|throw|const|var|let|public|private|static|@\w+|//|/\*|\*|#include"
    r"|self\.)(?=[\s(.\w]).*(?:[;{]\s*$|[=!<>]==?|\w\([^)]*[\"'=,]|\w\[|\w\.\w+\(|\):?\s*$)|[;{}]\s*$|^\s*\d{1,5}[:|]\s{2}"
    r"|\b\w+(?:error|exception)\b: |^\s*(?://|#!|/\*|@param|@return|:param|:return|>>>|\$ )"
)
LOG = re.compile(
    r"^\W{0,3}(?:\d{4}-\d\d-\d\d[t ]\d\d:\d\d|\d\d:\d\d:\d\d|\[?(?:error|info|debug|fatal|trace)\b[\]: ]|traceback\b"
    r"|(?:[\w.]+\.)?\w*(?:error|exception|warning):)"
)
"""Whose rules a program's message states, nobody can tell; the user's they are not."""
TAG = re.compile(r"</?[A-Za-z][\w:-]{0,40}>")
"""Agents put rules between tags; a tag is no part of the sentence beside it."""
WRAPPED_CHARS = 40
"""A line shorter than this was ended on purpose."""


class Statement(NamedTuple):
    """A rule as it was said, and how surely it is one."""

    text: str
    weight: float


def statements(text: str) -> list[Statement]:
    """What a text states as rules, limits and lasting preferences, verbatim (a wrapped line joined), in order, each once."""
    cues = _cues(text)
    found: dict[str, float] = {}
    for statement in _found(prose(text), cues) if cues else ():
        found[statement.text] = max(statement.weight, found.get(statement.text, 0.0))
    return [Statement(*one) for one in found.items()]


def candidates(text: str) -> Iterator[str]:
    """The sentences of a text that may be rules: those that hold a cue. Cheap tests come first, a pasted log has none."""
    cues = _cues(text)
    for line in prose(text) if cues else ():
        if not LOG.match(line.lower()):
            yield from (sentence for sentence in split(line, RULE_CHARS) if any_of(cues, sentence.lower()))


def _cues(text: str) -> list[str]:
    low = text.lower()
    return [cue for cue in CUES if cue in low] + ([] if text.isascii() else [cue for cue in CUES_ZH if cue in text])


def _found(lines: list[str], cues: list[str]) -> Iterator[Statement]:
    at = 0
    while at < len(lines):
        items = _items(lines, at)
        if items:
            yield from _of_list(lines[at], items, cues)
            at += 1 + len(items)
        else:
            yield from _of_line(lines[at], cues)
            at += 1


def prose(text: str) -> list[str]:
    """The lines of prose: without fenced code and tags, wrapped lines joined, blank ones left out."""
    parts: list[list[str]] = [[]]
    for line in (TAG.sub("\n", text) if "<" in text else text).splitlines():
        if FENCE.match(line):
            parts.append([])
        else:
            parts[-1].append(line)
    open_fence = len(parts) % 2 == 0
    kept = [line for n, part in enumerate(parts) if n % 2 == 0 or (open_fence and n == len(parts) - 1) for line in part]
    return [line for line in _unwrapped(kept) if line.strip()]


def _unwrapped(lines: list[str]) -> Iterator[str]:
    held = ""
    for line in lines:
        goes_on = len(held) >= WRAPPED_CHARS and held[-1:].isascii() and (held[-1].islower() or held[-1] == ",") and line[:1].islower()
        if goes_on and len(held) + len(line) < RULE_CHARS:
            held += " " + line
        else:
            yield held
            held = line.rstrip()
    yield held


def _items(lines: list[str], at: int) -> list[str]:
    """The items of the list whose heading a line is; [] if it is none."""
    heading = lines[at].rstrip()
    if not heading.endswith((":", "：")) or len(heading) > HEADING_CHARS:
        return []
    return list(takewhile(ITEM.match, lines[at + 1 : at + 1 + LIST_ITEMS]))


def _of_list(heading: str, items: list[str], cues: list[str]) -> Iterator[Statement]:
    """Under a heading that says "rules", each item is one; under an order ("never touch:") all of it is one rule, if it is short."""
    low = heading.lower()
    if (LIST_HEADING.found(low) or LIST_HEADING_ZH.found(low)) and not LOG.match(low):
        yield from (Statement(item.strip(), NAMED) for item in items if len(item) <= RULE_CHARS)
        return
    weight, block = rule_weight(heading), "\n".join([heading.strip(), *(item.strip() for item in items)])
    if weight >= RULE and len(block) <= RULE_CHARS:
        yield Statement(block, weight)
        return
    for line in (heading, *items):
        yield from _of_line(line, cues)


def _of_line(line: str, cues: list[str]) -> Iterator[Statement]:
    low = line.lower()
    if LOG.match(low) or not any_of(cues, low):
        return
    for sentence in split(line, RULE_CHARS):
        weight = rule_weight(sentence) if any_of(cues, sentence.lower()) else 0.0
        if weight >= PREFERENCE:
            yield Statement(sentence, weight)


def rule_weight(sentence: str) -> float:
    """How surely a sentence is a rule: `NAMED`, `ORDERED`, `RULE`, `PREFERENCE` or 0; questions, code and log lines are none."""
    low = sentence.lower()
    if CODE.search(low):
        return 0.0
    if RULE_ID.found(low) or RULE_ID_ZH.found(low):
        return NAMED
    if EASING.found(low) or (ASKING.search(low[-4:]) and not _asks_politely(low)):
        return 0.0
    zh = "" if low.isascii() else low
    if OPENING_ORDER.pattern.match(low) or _is_order(low) or ORDER_ZH.found(zh) or _asks_politely(low):
        return ORDERED
    if DUTY.found(low) or LIMIT_ZH.found(zh):
        return RULE
    return PREFERENCE if PREFERRED.found(low) or PREFERRED_ZH.found(zh) else 0.0


def _asks_politely(low: str) -> bool:
    """A question that is an order all the same."""
    return POLITE.found(low) or POLITE_ZH.found(low)


def _is_order(low: str) -> bool:
    """ "Never push", "you must never push", but not "I never went there"."""
    return _placed(low, ADVERB, BEFORE_ADVERB) or _placed(low, ORDER, BEFORE_ORDER) or ANYWHERE.found(low)


def _placed(low: str, words: Words, before: re.Pattern[str]) -> bool:
    return any(before.search(low[max(0, match.start() - BEFORE_CHARS) : match.start()]) for match in words.places(low))
