"""What a sentence of a user says a thing is: "the budget is 4,500 €", "my name is Ann", "预算4500元", "我叫老王"; precise rather than complete.

Every pattern runs over one sentence of bounded length, so the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxproxy.core.attribute_words import (
    BEFORE_HAN,
    COPULAS,
    DAY_CUES,
    DETERMINERS,
    HAN_NOUN,
    HAN_VALUE,
    HYPOTHETICAL,
    IS_DATE,
    JOINTS,
    LINKS,
    LINKS_HAN,
    NO_VALUE,
    OWN,
    OWN_CUES,
    PLACING,
    PRONOUNS,
    UNFIT_HAN,
    VALUE,
    WEAK_LINKS_HAN,
)
from ctxproxy.core.facts import DIGIT
from ctxproxy.core.points import PointKind
from ctxproxy.core.rule_words import any_of
from ctxproxy.core.topics import EMPTY

LOOK_BACK_CHARS = 80
"""How far before a value its name may begin."""
KEY_WORDS = 5
HAN_KEY_CHARS = 8
TOKEN = re.compile(r"[A-Za-z][\w'’/-]*|[:=]|\S")
CLAUSE_END = re.compile(r"[,;()，。；！？、（）]\s*|\.\s")
HAN_CLAUSE = re.compile("[\u3400-\u9fffA-Za-z：:=]+$")
HAN_KEY = re.compile("[\u3400-\u9fffA-Za-z]*[\u3400-\u9fff][\u3400-\u9fffA-Za-z]*")
VALUE_END = re.compile(r"\s(?:but|so|because|which|who|since|though|and (?=(?:I|my|we|you|it|the)\b))\s?|(?<=\w\w)\.\s")
WORD_EDGES = " .,;:!?\"'“”‘’"


class Attribute(NamedTuple):
    """A named thing and its value, both as they were written; `key` in small letters."""

    kind: PointKind
    key: str
    value: str


def may_tell(text: str) -> bool:
    """Whether any sentence of a text may say what something is: cheap, most texts are told apart by it."""
    low = text.lower()
    return any_of(OWN_CUES, low) or _may_measure(low)


def _may_measure(low: str) -> bool:
    return DIGIT.search(low) is not None or any_of(DAY_CUES, low) or (not low.isascii() and HAN_VALUE.search(low) is not None)


def attributes(sentence: str) -> list[Attribute]:
    """What a sentence says things are; nothing if it asks or supposes."""
    low = sentence.lower().strip()
    if low.endswith(("?", "？", "吗", "呢")) or HYPOTHETICAL.match(low):
        return []
    found = list(_own(sentence)) if any_of(OWN_CUES, low) else []
    if _may_measure(low):
        taken = [one.value for one in found]
        found += [one for one in _measured(sentence) if not any(one.value in value for value in taken)]
    return found


def _own(sentence: str) -> Iterator[Attribute]:
    """What the speaker says of himself, by a table of sentences."""
    for pattern, kind, key in OWN:
        match = pattern.search(sentence)
        value = VALUE_END.split(match["v"], maxsplit=1)[0].strip(WORD_EDGES) if match else ""
        if match and value and not NO_VALUE.match(value.lower()):
            named = match.groupdict().get("k")
            yield Attribute(kind, " ".join((named or key).lower().replace("’", "'").split()), value)


def _measured(sentence: str) -> Iterator[Attribute]:
    """Amounts, dates and numbers with the name that stands before them."""
    for match in VALUE.finditer(sentence):
        before = sentence[max(0, match.start() - LOOK_BACK_CHARS) : match.start()]
        clause = CLAUSE_END.split(before)[-1]
        key = _han_key(clause) if not clause.isascii() else _key(clause, placed=IS_DATE.match(match.group()) is not None)
        value = match.group().strip(" .,")
        if key and value:
            yield Attribute("date" if IS_DATE.match(value) else "number", key, _without_filler(value))


def _without_filler(value: str) -> str:
    """A number without a word behind it that is no unit."""
    head, _, last = value.rpartition(" ")
    return head if head and last.lower() in EMPTY | LINKS else value


def _key(clause: str, *, placed: bool) -> str:
    """The noun phrase at a clause's end, before the words that tie it to its value ("is at most"); "" if they do not tie."""
    words = TOKEN.findall(clause.lower())
    tied, last = False, ""
    while words and words[-1] in LINKS:
        last = last or words[-1]
        tied = tied or words[-1] in COPULAS
        words.pop()
    key, determined = _phrase(words)
    fits = tied or (determined and (last in ("of", "to") or (placed and last in PLACING)))
    return " ".join(key) if fits and key and any(len(word) > 2 for word in key) else ""


def _phrase(words: list[str]) -> tuple[list[str], bool]:
    """The last words that name something, and whether "the" or its like stands before them."""
    key: list[str] = []
    at = len(words) - 1
    while at >= 0 and len(key) < KEY_WORDS:
        word = words[at]
        joint = bool(key) and word in JOINTS
        inner = word in DETERMINERS and at > 0 and words[at - 1] in JOINTS and bool(key)
        if not (joint or inner or (word[0].isalpha() and word not in EMPTY | PRONOUNS)):
            break
        key.insert(0, word)
        at -= 1
    while key and key[0] in JOINTS | DETERMINERS:
        key.pop(0)
    return key, at >= 0 and words[at] in DETERMINERS


def _han_key(clause: str) -> str:
    """The Chinese name at a clause's end: tied by a word ("是", "不超过"), or one of the nouns that have a value right behind them."""
    match = HAN_CLAUSE.search(clause.replace(" ", ""))
    text = match.group() if match else ""
    tied = False
    while stripped := LINKS_HAN.search(text):
        tied = tied or stripped.group() not in WEAK_LINKS_HAN
        text = text[: stripped.start()]
    text = BEFORE_HAN.sub("", text)
    noun = HAN_NOUN.search(text)
    fits = HAN_KEY.fullmatch(text) is not None and len(text) <= HAN_KEY_CHARS and not UNFIT_HAN.search(text)
    return text if fits and (tied or noun) else noun.group() if noun else ""
