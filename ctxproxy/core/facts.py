"""The exact values that a summary may not lose: ids, paths, versions, dates, amounts; and which of them weigh most.

Every pattern runs over pieces of bounded length or has disjoint neighbours, so the time is linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

from ctxproxy.core.memo import Memo, Reading, no_memo
from ctxproxy.core.messages import Message, text_of, tool_calls

Kind: TypeAlias = Literal["url", "email", "path", "id", "version", "date", "amount", "number", "name"]

MAX_VALUE_CHARS = 200
MOST_WORDS = 16_384
"""Of which is remembered whether they are values, about 200 bytes each: nearly all words of a text are from a few thousand."""
EDGES = ".:!?&^~,"
DIGIT = re.compile(r"\d")
URL = re.compile(r"https?://[^\s\"'<>`|\\^{}\[\]\u3000-\u303f\u3400-\u9fff\uff00-\uffef]{3,300}")
CHUNK = re.compile(r"[^\s\"'`<>(){}\[\],;|=*“”‘’…—–\u3000-\u303f\u3400-\u9fff\uff00-\uffef]+")
_UNITS = (
    r"(?:ms|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|[KMGT]i?B|bytes?|kb|mb|gb|km|kg|cm|mm|miles?|lbs?|tokens?|people|persons?"
    r"|users?|items?|percent|USD|EUR|CNY|RMB|dollars?|euros?|yuan|[kK]?[wW]|[MG]?Hz|rows?|pages?|requests?|nights?|bags?|passengers?)\b"
)
_UNITS_ZH = r"(?:元|块钱?|万元?|亿元?|人|个|天|小时|分钟|秒|周|年|月|公里|千米|米|公斤|斤|岁|次|条|件|台|张|份|页|行|度|折|号|层|楼)"
_MONTHS = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
AMOUNT = re.compile(
    r"(?<![A-Za-z0-9_.,])(?:[$€£¥￥]\s?\d[\d,]{0,14}(?:\.\d{1,8})?(?:\s?(?:million|billion|[kKMB]\b))?|\d[\d,]{0,14}(?:\.\d{1,8})?\s?(?:%|"
    + _UNITS
    + "|"
    + _UNITS_ZH
    + "))"
)
DATE = re.compile(
    rf"\b{_MONTHS}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTHS}(?:,? \d{{4}})?\b"
    r"|(?<!\d)\d{2,4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|(?<!\d)\d{1,2}月\d{1,2}[日号]"
)
DATE_HINTS = (*["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], "年", "月")
_MARKED = re.compile(r"[/\\@_.:#-]")
"""Without one of these, a word of small letters or of another script is plain."""
_SPACED: tuple[tuple[re.Pattern[str], Kind], ...] = ((URL, "url"), (DATE, "date"), (AMOUNT, "amount"))
"""Taken out in this order, so that no part of one is found again as a number."""
DATE_CHUNK = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:T[\d:.+Z-]+)?|\d{1,2}/\d{1,2}/\d{2,4}")
TIME_CHUNK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:[ap]m)?|\d+(?:-[a-z]{2,})+")
ORDINAL_CHUNK = re.compile(r"\d+(?:st|nd|rd|th|s)")
VERSION_CHUNK = re.compile(r"v?\d+(?:\.\d+){1,4}(?:[-+.]?[A-Za-z][\w.]*)?")
NAME_CHUNK = re.compile(
    r"[a-z0-9]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|\w*[A-Za-z0-9]_\w+|--[A-Za-z][\w-]{2,}|E(?:CONN|NO|ACC|PERM|EXIST|TIMED|PIPE|ADDR|HOST|NET|INVAL|AGAIN|BUSY|ISDIR|MFILE|NFILE)[A-Z]*|SIG[A-Z]{3,4}|\w+::\w[\w:]*|\w+(?:\.\w+){2,}|#\d+"
)
FILE_CHUNK = re.compile(r"[\w.@+-]*\w\w\.(?!com\b)[A-Za-z][A-Za-z0-9]{0,4}")
WEIGHTS: dict[Kind, float] = {
    "url": 2.5, "email": 3.0, "path": 2.5, "id": 3.0, "version": 1.5, "date": 1.2, "amount": 1.0, "number": 0.7, "name": 1.5,
}  # fmt: skip
ROLE_WEIGHTS = {"user": 2.0, "call": 1.6, "assistant": 1.2}
"""A user's own value counts most, then what a call was made with, then what the assistant said; a result's alone counts 0.5."""
VALUES = Reading("values", 2.0)


class Fact(NamedTuple):
    """An exact value and how much it matters."""

    text: str
    weight: float


VALUE_OF, WEIGHT_OF = itemgetter(0), itemgetter(1)


def anchors(text: str) -> dict[str, Kind]:
    """The exact values of a text with their kinds: URLs, mail addresses, paths, ids, hashes, error codes, versions, dates, amounts, names of
    code.
    """
    found: dict[str, Kind] = {}
    for pattern, kind in _SPACED:
        if _may_hold(text, kind):
            text = pattern.sub(lambda match: _note(found, match.group(), kind), text)  # noqa: B023 - called before the loop goes on
    words = [word if len(word) <= MAX_VALUE_CHARS else _stripped(word) for word in dict.fromkeys(CHUNK.findall(text))]
    for value, own in filter(None, map(_value_in, [word for word in words if len(word) <= MAX_VALUE_CHARS])):
        found.setdefault(value, own)
    return found


@lru_cache(maxsize=MOST_WORDS)
def _value_in(word: str) -> tuple[str, Kind] | None:
    value = _stripped(word)
    kind = kind_of(value)
    return (value, kind) if kind else None


def _stripped(word: str) -> str:
    return word.strip(EDGES).rstrip("-")


def _may_hold(text: str, kind: Kind) -> bool:
    """Whether it is worth a look for values of that kind: most texts have none, and a pattern takes longer than a substring."""
    if kind == "url":
        return "://" in text
    return DIGIT.search(text) is not None and (kind != "date" or any(hint in text for hint in DATE_HINTS))


def _note(found: dict[str, Kind], value: str, kind: Kind) -> str:
    found.setdefault(value.rstrip(" .,:;!?)/'"), kind)
    return " "


def kind_of(value: str) -> Kind | None:
    """What kind of exact value a word is, None for a plain one; linear in its length."""
    if value.isalpha() and value[1:].islower():
        return None
    digits = sum(c.isdigit() for c in value)
    if not digits and (value[1:].islower() or not value.isascii()) and not _MARKED.search(value):
        return None
    if "@" in value:
        return "email" if "." in value[value.find("@") :] and value[0] != "@" else None
    if DATE_CHUNK.fullmatch(value):
        return "date"
    if "/" in value or "\\" in value:
        return "path" if _is_path(value) else None
    return _numeric_kind(value, digits) if digits else _name_kind(value)


def _is_path(value: str) -> bool:
    """Several parts, or one with a root or a mark of its own; "and/or" and a closing tag are none."""
    parts = [part for part in value.replace("\\", "/").split("/") if part]
    rooted = value[0] in "/~." or value[1:3] == ":\\"
    if not parts or not any(c.isalnum() for c in value):
        return False
    return len(parts) > 2 or (rooted and len(parts) == 2) or any(c in parts[-1] for c in "._-0123456789")


def _numeric_kind(value: str, digits: int) -> Kind | None:
    if digits == len(value):
        return ("id" if digits >= 6 else "number") if digits >= 3 else None
    if VERSION_CHUNK.fullmatch(value):
        return "version"
    if TIME_CHUNK.fullmatch(value) or not any(c.isalpha() for c in value):
        return "number" if digits >= 3 else None
    return "id" if len(value) >= 3 and not ORDINAL_CHUNK.fullmatch(value) else None


def _name_kind(value: str) -> Kind | None:
    if NAME_CHUNK.fullmatch(value):
        return "name"
    return "path" if FILE_CHUNK.fullmatch(value) and value.islower() else None


def rank(messages: Sequence[Message], memo: Memo = no_memo) -> list[str]:
    """The exact values of messages, weightiest first: by kind, by who said it (user, call, assistant, result) and how often."""
    told = memo(VALUES, messages, _values_of)
    facts = list(chain.from_iterable(told))
    times = Counter(map(VALUE_OF, facts))
    most = dict(sorted(facts, key=WEIGHT_OF))  # the weightiest of a value comes last, and stays
    weights = {value: most[value] if seen == 1 else most[value] * (1 + min(seen - 1, 4) / 4) for value, seen in times.items()}
    return sorted(weights, key=weights.__getitem__, reverse=True)


def _values_of(message: Message) -> tuple[Fact, ...]:
    said = ((role, anchors(text)) for role, text in _said(message))
    return tuple(Fact(value, WEIGHTS[kind] * ROLE_WEIGHTS.get(role, 0.5)) for role, found in said for value, kind in found.items())


def _said(message: Message) -> Iterable[tuple[str, str]]:
    yield message.role, text_of(message)
    yield from (("call", call.arguments.replace("\\n", "\n").replace('\\"', '"')) for call in tool_calls(message))
