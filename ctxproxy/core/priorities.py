"""How much each group of a prompt is worth keeping, by rules alone: what kind of message it is, whose wish it states, how new it is.

The scores are those of 001-15; where two are alike, D6 decides: system, summary, the user's wishes, the user, tool output, the assistant.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from ctxproxy.core import frames, rules
from ctxproxy.core.messages import SYSTEM_ROLES, text_of
from ctxproxy.core.passages import is_small_talk
from ctxproxy.core.selection import FAILURES
from ctxproxy.core.transcript import RESULT_ROLES, Span, Transcript

Kind: TypeAlias = Literal["system", "summary", "latest", "goal", "key_result", "reasoning", "user", "result", "assistant", "small_talk", "dropped"]

SCORES: Mapping[Kind, float] = MappingProxyType(
    {
        "system": 10, "summary": 9, "latest": 9, "goal": 9, "key_result": 8, "reasoning": 7, "user": 6, "result": 5, "assistant": 4,
        "small_talk": 3, "dropped": 0,
    }
)  # fmt: skip
"""The six classes of 001-15, the user's plain words between the two kinds of tool output (D6), a summary and the goal with the latest
question (001-02, 001-21), and what the client marked `drop_first` (001-75)."""
RANKS: tuple[Kind, ...] = ("system", "latest", "summary", "goal", "dropped", "user", "key_result", "result", "reasoning", "assistant", "small_talk")
"""Which of two equal scores comes first; the user's wishes have a bonus and come before plain words by that."""
KEYWORDS = ("goal", "final", "summary", "error", "conclusion", "目标", "最终", "总结", "错误", "结论")
"""001-11, in both languages."""
REASONING = (
    "because", "therefore", "decided", "decision", "conclusion", "root cause", "the reason", "trade-off", "instead of",
    "因为", "因此", "所以", "决定", "结论", "原因", "根因",
)  # fmt: skip
"""What marks an answer that argues or decides."""
WISH_WORDS = ("prefer", "hate", "i like", "i love", "favorite", "favourite", "budget", "喜欢", "讨厌", "偏好", "预算")
"""001-44: what the user likes and has, though it states no rule ("预算中等")."""
Bonus: TypeAlias = Literal["keyword", "recency", "preference", "rule"]
KEYWORD_BONUS, RECENCY_BONUS = 0.4, 0.2
"""Together less than the step between two classes: a new greeting never outranks an old question (001-12)."""
WISH_BONUS, RULE_BONUS = 1.75, 2.25
"""For the user's preferences and rules (001-44, 001-61): above any reasoning, below a summary, which holds more of them (D6)."""
BONUSES: Mapping[Bonus, float] = MappingProxyType({"keyword": KEYWORD_BONUS, "recency": RECENCY_BONUS, "preference": WISH_BONUS, "rule": RULE_BONUS})
TEXT_CHARS = 4000
"""Of a longer message, so much of its beginning and its end together is read."""
SMALL_TALK_CHARS = 24
"""No longer text is looked up among the phrases of small talk."""


class Priority(NamedTuple):
    """What a group is and what it scores; the one to keep first has the smallest `key`."""

    kind: Kind
    score: float

    @property
    def key(self) -> tuple[float, int]:
        return -self.score, RANKS.index(self.kind)


class Features(NamedTuple):
    """What the score of a group is made of."""

    kind: Kind
    wish: Literal["", "preference", "rule"]
    """Only of the user's words."""
    has_keyword: bool
    recency: float
    """From 0, the oldest group, to 1, which none has."""


def priorities(
    transcript: Transcript,
    goal_tokens: int,
    keywords: Collection[str] = KEYWORDS,
    scores: Mapping[Kind, float] = SCORES,
    bonuses: Mapping[Bonus, float] = BONUSES,
) -> list[Priority]:
    """One for each group of a transcript; a first user message over `goal_tokens` is a document and no goal."""
    return [Priority(one.kind, score(one, scores, bonuses)) for one in features(transcript, goal_tokens, keywords)]


def score(one: Features, scores: Mapping[Kind, float] = SCORES, bonuses: Mapping[Bonus, float] = BONUSES) -> float:
    """What a group is worth; what is not in `scores` or `bonuses` counts as by default."""
    total = scores.get(one.kind, SCORES[one.kind]) + one.recency * bonuses.get("recency", RECENCY_BONUS)
    if one.has_keyword:
        total += bonuses.get("keyword", KEYWORD_BONUS)
    if one.wish:
        total += bonuses.get(one.wish, BONUSES[one.wish])
    return total


def features(transcript: Transcript, goal_tokens: int, keywords: Collection[str] = KEYWORDS) -> list[Features]:
    """Those of each group of a transcript."""
    found: list[Features] = []
    total = len(transcript.groups)
    for n, group in enumerate(transcript.groups):
        entries = transcript.entries[group.start : group.end]
        if n and entries[0].origin == "inserted" and frames.is_filler(entries[0].message):
            found.append(found[-1])  # our acknowledgement of what stands before it goes with that
            continue
        texts = [_sample(text_of(entry.message)).lower() for entry in entries]
        kind = _kind(transcript, group, texts, goal_tokens)
        wish = _wish(_sample(text_of(entries[0].message))) if kind == "user" else ""
        found.append(Features(kind, wish, _holds(texts, keywords), n / total))
    return found


def _sample(text: str) -> str:
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS // 2] + "\n" + text[-TEXT_CHARS // 2 :]


def _holds(texts: Sequence[str], words: Collection[str]) -> bool:
    for text in texts:  # a generator would cost more than all that it looks at
        for word in words:
            if word in text:
                return True
    return False


def _wish(text: str) -> Literal["", "preference", "rule"]:
    """Whether the user states a rule or limit, a preference or a word of one, or neither."""
    weight = 0.0
    for sentence in rules.candidates(text):
        weight = max(weight, rules.rule_weight(sentence))
        if weight >= rules.RULE:
            return "rule"
    return "preference" if weight or _holds([text.lower()], WISH_WORDS) else ""


def _kind(transcript: Transcript, group: Span, texts: Sequence[str], goal_tokens: int) -> Kind:
    entries = transcript.entries[group.start : group.end]
    role = entries[0].message.role
    if entries[0].origin == "inserted" and frames.is_frame(entries[0].message):
        return "summary"
    if any(entry.message.directives.drop_first for entry in entries):
        return "dropped"
    if role in SYSTEM_ROLES:
        return "system"
    if role == "user":
        is_goal = group.start == 0 and entries[0].tokens <= goal_tokens
        return _of_user(texts[0], is_latest=group.start == transcript.last_user, is_goal=is_goal)
    return _of_assistant(texts, results_from=int(role not in RESULT_ROLES))


def _of_user(text: str, *, is_latest: bool, is_goal: bool) -> Kind:
    if is_latest:
        return "latest"
    if _is_small_talk(text):
        return "small_talk"
    return "goal" if is_goal else "user"


def _of_assistant(texts: Sequence[str], results_from: int) -> Kind:
    """An assistant message with its results is worth what the best of them is."""
    results = texts[results_from:]
    if _holds(results, FAILURES):
        return "key_result"
    if _holds(texts[:results_from], REASONING):
        return "reasoning"
    if results:
        return "result"
    return "small_talk" if _is_small_talk(texts[0]) else "assistant"


def _is_small_talk(text: str) -> bool:
    return len(text) <= SMALL_TALK_CHARS and is_small_talk(text)
