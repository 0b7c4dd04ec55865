"""What a summary may not lose: rules and limits as they were said, and exact values (ids, paths, versions, dates, amounts).

Every pattern runs over pieces of bounded length or has disjoint neighbours, so the time is linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ctxproxy.core.messages import Message, text_of, tool_calls
from ctxproxy.core.sentences import split

Kind: TypeAlias = Literal["url", "email", "path", "id", "version", "date", "amount", "number", "name"]

RULE_CHARS = 600
"""The longest sentence that is still taken for one rule."""
RULE = 2.0
"""The weight from which a sentence is a constraint; a preference weighs less, a strict rule more."""

# --- rules, limits and preferences -------------------------------------------------------------------------------------------------

_CUES = (
    "never", "must", "only", "do not", "don't", "don’t", "always", "budget", "at most", "at least", "no more than", "no less than", "not exceed",
    "limit", "deadline", "forbidden", "prohibited", "not allowed", "required", "mandatory", "make sure", "ensure", "avoid", "under no", "should",
    "need to", "has to", "have to", "cannot", "can't", "may not", "prefer", "rather", "hate", "dislike", "like", "allergic", "favorite", "favourite",
    "vegetarian", "vegan", "rule", "req-", "policy", "constraint", "please", "keep", "use ", "instead", "without", "maximum", "minimum", "up to",
    "must not", "no ",
)  # fmt: skip
_CUES_ZH = (
    "必须", "务必", "一定要", "不要", "不能", "不得", "不可", "不许", "不准", "禁止", "严禁", "切勿", "请勿", "只能", "只可", "只用",
    "仅限", "仅能", "超过", "低于", "少于", "多于", "高于", "以内", "以下", "之内", "至多", "最多", "至少", "上限", "下限", "预算",
    "截止", "期限", "避免", "确保", "永远", "绝不", "绝对", "始终", "一律", "总是", "规则", "别", "喜欢", "讨厌", "偏好", "希望",
    "过敏", "倾向", "习惯", "要求", "不吃", "不用", "约束",
)  # fmt: skip

RULE_ID = re.compile(
    r"\b(?:rule|req|policy|constraint|guideline|rules)(?:[-_ #:]{1,2}\d|:)|(?:规则|要求|约束|规定)\s?(?:\d|[一二三四五六七八九十]|[:：])"
)
ORDER = re.compile(
    r"\b(?:never|always|do not|don['’]t|avoid|make sure|be sure to|ensure|under no circumstances"
    r"|only (?:use|in|with|on|if|when|after|the|a|reply|answer))\b"
)
BEFORE_ORDER = re.compile(r"(?:^[\W\d_]{0,6}|[,;:.!(–—>•*|\"“]\s?|\b(?:please|also|then|you|and|but|we|should|must|shall|kindly|just)\s)$")
BEFORE_CHARS = 12
OPENING_ORDER = re.compile(
    r"[\W\d_]{0,6}(?:please |and |but |also |so )?"
    r"(?:use|stick to|no(?! one| way| problem| worr| doubt| idea| matter| need)|only|leave|limit|remember|note that|stay|keep(?! it up| up| going))\b"
)
DUTY = re.compile(
    r"\b(?:must(?:n['’]t| not| never)?|(?:is|are|be) (?:not allowed|forbidden|prohibited|required|mandatory)|not allowed|not permitted|may not"
    r"|should (?:not|never|always)|shouldn['’]t|shall not|has to (?:be|stay|have)|(?:have|need)s? to (?:be|stay|keep|use|fit)|without exception"
    r"|not exceed|at (?:the )?(?:most|least) [\w$€£¥]|no (?:more|less|fewer|later|earlier) than|(?:maximum|minimum|max|min|limit) (?:of|is|:)"
    r"|limited to|up to [$€£¥\d]|(?:under|below|within|over) [$€£¥]\s?\d|budget|deadline|spending limit|price limit|constraints?\b)"
)
WISH = re.compile(
    r"\b(?:prefer(?:s|red|ence|ably)?|i['’]d rather|i would rather|i (?:really )?(?:hate|dislike|love|like|want|need)|i['’]d like|allerg(?:y|ic)"
    r"|favou?rite|vegetarian|vegan|i (?:always|never|only|don['’]t|can['’]t|cannot|won['’]t))\b"
)
EASING = re.compile(
    r"\b(?:do(?:n['’]t| not) (?:have|need) to|don['’]t (?:worry|you|mention)|must have been|must be (?:so|a lot|hard|nice|great)|must['’]ve)\b"
)
ORDER_ZH = re.compile(
    r"必须|务必|一定要|(?<!要)不要(?!紧)|不得(?!不|了|已)|不许|不准|禁止|严禁|切勿|请勿|只能|只可以?|只用|仅限|仅能|不可以?(?!思议|避免|能)|永远不|绝不|绝对不|始终|一律|确保"
    r"|(?:^|[，,。；;：:！!、\s])(?:请|也|都|千万)?(?:别|避免|不能|不用|总是)(?!的|人|墅)"
)
LIMIT_ZH = re.compile(
    r"预算|上限|下限|截止|期限|(?:不|别)(?:能|要|得|可)?(?:超过|低于|少于|多于|高于)|(?:至多|最多|至少|最少)\s?[\d一二三四五六七八九十百千万两]|\d\s?(?:元|块|天|个|人)?(?:以内|以下|之内)"
)
WISH_ZH = re.compile(r"喜欢|讨厌|偏好|偏爱|希望|想要|过敏|倾向|习惯|不吃|更想|最爱")
ASKING = re.compile(r"[?？][\"'”’)）]{0,2}$|[吗呢么][。.!！]?$")


TAG = re.compile(r"</?[A-Za-z][\w:-]{0,40}>")
"""Agents put rules between tags; a tag is no part of the sentence beside it."""


def constraints(text: str) -> list[str]:
    """The sentences of a text that state a rule, a limit or a duty, verbatim, in order, each once."""
    return list(dict.fromkeys(s for s in _candidates(text) if rule_weight(s) >= RULE))


def preferences(text: str) -> list[str]:
    """The sentences that state a wish or a habit and no rule, verbatim, in order, each once."""
    return list(dict.fromkeys(s for s in _candidates(text) if 0 < rule_weight(s) < RULE))


def _candidates(text: str) -> Iterator[str]:
    """The sentences that hold a cue: cheap tests first, a pasted log has none."""
    cues = [cue for cue in _CUES if cue in (low := text.lower())] + ([] if text.isascii() else [cue for cue in _CUES_ZH if cue in text])
    for sentence in split(TAG.sub("\n", text), RULE_CHARS) if cues else ():
        low = sentence.lower()
        if any(cue in low for cue in cues):
            yield sentence


def rule_weight(sentence: str) -> float:
    """How surely a sentence is a rule: 4 named rule, 3 order, 2 duty or limit, 1 wish, 0 none; questions are none."""
    low = sentence.lower()
    if RULE_ID.search(low):
        return 4.0
    if ASKING.search(low[-4:]) or EASING.search(low):
        return 0.0
    zh = "" if low.isascii() else low
    if OPENING_ORDER.match(low) or _is_order(low) or ORDER_ZH.search(zh):
        return 3.0
    if DUTY.search(low) or LIMIT_ZH.search(zh):
        return RULE
    return 1.0 if WISH.search(low) or WISH_ZH.search(zh) else 0.0


def _is_order(low: str) -> bool:
    """ "Never push", "you must never push", but not "I never went there"."""
    return any(BEFORE_ORDER.search(low[max(0, match.start() - BEFORE_CHARS) : match.start()]) for match in ORDER.finditer(low))


# --- exact values ------------------------------------------------------------------------------------------------------------------

MAX_VALUE_CHARS = 200
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
    r"(?<![A-Za-z0-9_.,])(?:[$€£¥￥]\s?\d[\d,]{0,14}(?:\.\d{1,8})?\s?(?:million|billion|[kKMB]\b)?|\d[\d,]{0,14}(?:\.\d{1,8})?\s?(?:%|"
    + _UNITS
    + "|"
    + _UNITS_ZH
    + "))"
)
DATE = re.compile(
    rf"\b{_MONTHS}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTHS}(?:,? \d{{4}})?\b"
    r"|(?<!\d)\d{2,4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|(?<!\d)\d{1,2}月\d{1,2}[日号]"
)
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


class Fact(NamedTuple):
    """An exact value and how much it matters."""

    text: str
    weight: float


def anchors(text: str, known: dict[str, Kind | None]) -> dict[str, Kind]:
    """The exact values of a text with their kinds: URLs, mail addresses, paths, ids, hashes, error codes, versions, dates, amounts, names of
    code. `known` remembers the kinds of words from one text to the next.
    """
    found: dict[str, Kind] = {}
    for pattern, kind in _SPACED:
        if kind == "url" or DIGIT.search(text):
            text = pattern.sub(lambda match: _note(found, match.group(), kind), text)  # noqa: B023 - called before the loop goes on
    for chunk in dict.fromkeys(CHUNK.findall(text)):
        if chunk not in known:
            value = chunk.strip(EDGES).rstrip("-")
            known[chunk] = kind_of(value) if len(value) <= MAX_VALUE_CHARS else None
        own = known[chunk]
        if own:
            found.setdefault(chunk.strip(EDGES).rstrip("-"), own)
    return found


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


def rank(messages: Sequence[Message]) -> list[Fact]:
    """The exact values of messages, weightiest first: by kind, by who said it (user, call, assistant, result) and how often."""
    known: dict[str, Kind | None] = {}
    weights: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for message in messages:
        for role, text in _said(message):
            for value, kind in anchors(text, known).items():
                weights[value] = max(weights[value], WEIGHTS[kind] * ROLE_WEIGHTS.get(role, 0.5))  # type: ignore[assignment]
                times[value] += 1
    facts = (Fact(value, weight * (1 + min(times[value] - 1, 4) / 4)) for value, weight in weights.items())
    return sorted(facts, key=lambda fact: -fact.weight)


def _said(message: Message) -> Iterable[tuple[str, str]]:
    yield message.role, text_of(message)
    yield from (("call", call.arguments.replace("\\n", "\n").replace('\\"', '"')) for call in tool_calls(message))


def rules(messages: Sequence[Message]) -> list[str]:
    """The constraints that users stated, verbatim, in order, each once; a tool's or a page's "must" binds nobody (Governance Decay)."""
    return list(dict.fromkeys(sentence for m in messages if m.role == "user" for sentence in constraints(text_of(m))))
