"""What new messages of a session change of what is remembered of it, by rules; and what of all that is worth telling at the start of a new one.

The newest value of a key wins. What the user takes back, or says matters little, is ended, not deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxproxy.core.attributes import attributes, may_tell
from ctxproxy.core.decisions import decisions, triples
from ctxproxy.core.extractive import CountText
from ctxproxy.core.facts import ROLE_WEIGHTS, WEIGHTS, Kind, anchors
from ctxproxy.core.frames import is_filler, is_frame, item
from ctxproxy.core.language import Language
from ctxproxy.core.memo import Memo, no_memo
from ctxproxy.core.messages import SYSTEM_ROLES, Message, Tip, text_of, tool_calls
from ctxproxy.core.points import MAX_KEY_CHARS, MAX_VALUE_CHARS, MemoryPoint, Point, PointChanges, PointKind
from ctxproxy.core.records import SessionKey
from ctxproxy.core.retractions import Retraction, share_meant, supersedes
from ctxproxy.core.rules import LOG, PREFERENCE, RULE, RULE_CHARS, Statement, prose, rule_weight
from ctxproxy.core.sentences import split
from ctxproxy.core.standing_rules import Standing, standing, utterances
from ctxproxy.core.summaries import fitting
from ctxproxy.core.topics import EMPTY, EMPTY_HAN, HAN_RUN, WORD, Topic, topic
from ctxproxy.core.utterances import Claim, claim, edges

RULING = frozenset(("rule", "preference", "note"))
ANCHOR_KINDS: frozenset[Kind] = frozenset(("url", "email", "path", "id", "name"))
MOST_ANCHORS = {"user": 60, "call": 30, "assistant": 30}
"""Of one message, the weightiest; of a tool's result and all else `MOST_TOOL_ANCHORS`: a listing of a thousand paths is none of them worth more."""
MOST_TOOL_ANCHORS = 15
ATTRIBUTE_WEIGHT, DECISION_WEIGHT, SAID_BY_MODEL = 3.0, 2.5, 0.6
ANCHOR_SHARE = 0.25
"""So that an anchor never weighs more than what was said in words."""
KEY_WORDS, KEY_HAN_CHARS = 6, 16
REMARKED = 2
"""Messages of the user before the new ones that a remark in those may mean."""
EDGE_CHARS = 20_000
"""Of a longer text, what lies further inside is pasted: nobody tells there who he is."""
MOST_COMPARED = 150
"""Sentences, the newest, that new ones are compared with: each with each."""
LASTING = re.compile(
    r"\b(?:always|never|from now on|in general|every time|whenever|in (?:the )?future|call me|prefer)\b"
    "|以后|今后|始终|永远|每次|总是|一直|一律|从现在|叫我|从不|偏好"
)
"""A rule of one conversation that says of itself that it holds in others."""


class Told(NamedTuple):
    """A message as it was stored."""

    tip: Tip
    message: Message
    time: float


def changes(fresh: Sequence[Told], before: Sequence[Told], held: Sequence[MemoryPoint], session: SessionKey, memo: Memo = no_memo) -> PointChanges:
    """What newly stored messages change; `before` are messages right before them that a remark may mean ("remember this"), `held` the points in
    force of the session and of its user's other sessions, oldest first.
    """
    fresh = [one for one in fresh if not (is_frame(one.message) or is_filler(one.message))]
    heard = (*before, *fresh)
    ruling = [one for one in held if is_statement(one.point)][-MOST_COMPARED:]
    texts = [one.point.value for one in ruling]
    stated = standing([one.message for one in heard], texts, memo)
    ledger = _Ledger(held, session)
    for at, one in enumerate(heard):
        if at in stated.little:
            ledger.end_all_of(one.tip)
        elif at >= len(before):
            ledger.hear(_said(one), _retracted(one, memo))
            ledger.new += _rules(stated, at, one)
    left = {rule.text for rule in stated.rules}
    ledger.end_rules([one for one in ruling if one.point.value not in left])
    return ledger.result()


def is_statement(point: Point) -> bool:
    """Whether a point is a whole sentence, replaced by what it is about; not "favorite color" with its value."""
    return point.kind in RULING and point.key == subject(point.value)


# --- what one message says ------------------------------------------------------------------------------------------------------------


def _said(one: Told) -> list[Point]:
    """The points of one message but for its rules, which depend on those before."""
    message = one.message
    if message.role in SYSTEM_ROLES:
        return []
    return [Point(kind, key[:MAX_KEY_CHARS], value[:MAX_VALUE_CHARS], one.tip, one.time, weight) for kind, key, value, weight in _read(message)]


def _read(message: Message) -> Iterator[tuple[PointKind, str, str, float]]:
    text = edges(text_of(message))
    prose_part = edges(text, EDGE_CHARS)
    if message.role == "user" and may_tell(prose_part):
        for sentence in dict.fromkeys(_sentences(prose_part)):
            yield from ((a.kind, a.key, a.value, ATTRIBUTE_WEIGHT) for a in attributes(sentence))
    if message.role in ("user", "assistant"):
        weight = DECISION_WEIGHT * (1.0 if message.role == "user" else SAID_BY_MODEL)
        yield from (("decision", subject(sentence), sentence, weight) for sentence in decisions(prose_part))
        yield from (("action", f"{' | '.join(t.entities)}: {t.action}", t.goal, weight) for t in triples(prose_part))
    yield from _anchors(message.role, text)
    for call in tool_calls(message):
        yield from _anchors("call", edges(call.arguments.replace("\\n", "\n").replace('\\"', '"')))


def _sentences(text: str) -> Iterator[str]:
    for line in prose(text):
        if not LOG.match(line.lower()):
            yield from split(line, RULE_CHARS)


def _anchors(role: str, text: str) -> Iterator[tuple[PointKind, str, str, float]]:
    found = [(value, kind) for value, kind in anchors(text).items() if kind in ANCHOR_KINDS and len(value) <= MAX_KEY_CHARS]
    found.sort(key=lambda pair: -WEIGHTS[pair[1]])
    share = ROLE_WEIGHTS.get(role, 0.5) * ANCHOR_SHARE
    yield from (("anchor", value, kind, round(WEIGHTS[kind] * share, 2)) for value, kind in found[: MOST_ANCHORS.get(role, MOST_TOOL_ANCHORS)])


def _retracted(one: Told, memo: Memo) -> list[Retraction]:
    if one.message.role != "user":
        return []
    [heard] = utterances([one.message], memo)
    return [remark.back for remark in heard.remarks if remark.back]


def _rules(stated: Standing, at: int, one: Told) -> list[Point]:
    return [
        Point(_kind_of(rule.text), subject(rule.text), rule.text[:MAX_VALUE_CHARS], one.tip, one.time, rule.weight)
        for rule in stated.rules
        if rule.at == at
    ]


def _kind_of(text: str) -> PointKind:
    """A text that the user wanted remembered need not be a rule."""
    weight = rule_weight(text)
    return "rule" if weight >= RULE else "preference" if weight >= PREFERENCE else "note"


def subject(sentence: str) -> str:
    """What a sentence is about, in its own first words of weight: a key that a reader understands."""
    words = [word for word in WORD.findall(sentence.lower()) if word not in EMPTY]
    han = "".join(HAN_RUN.findall(EMPTY_HAN.sub(" ", sentence)))
    return (" ".join([*words[:KEY_WORDS], *([han[:KEY_HAN_CHARS]] if han else [])]) or sentence.strip().lower())[:MAX_KEY_CHARS]


# --- what that ends -------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Ledger:
    held: Sequence[MemoryPoint]
    session: SessionKey
    new: list[Point] = field(default_factory=list)
    ended: dict[tuple[SessionKey, int], None] = field(default_factory=dict)
    replaced: list[tuple[int, Point]] = field(default_factory=list)

    def hear(self, said: Sequence[Point], retracted: Iterable[Retraction]) -> None:
        """Note what a message says, after what it takes back."""
        for back in retracted:
            self._take_back(back)
        self.new += said

    def end_all_of(self, tip: Tip) -> None:
        """End what came from a message that matters little."""
        self.ended |= {(one.session, one.number): None for one in self.held if one.session == self.session and one.point.tip == tip}

    def end_rules(self, gone: Iterable[MemoryPoint]) -> None:
        """End rules that no longer hold; of another session only what was taken back: there the older one still is what was said."""
        for one in gone:
            about = topic(one.point.value)
            successor = next((new for new in self.new if is_statement(new) and _succeeds(_claim(new), about)), None)
            if successor is None:
                self.ended[one.session, one.number] = None
            elif one.session == self.session:
                self.replaced.append((one.number, successor))

    def _take_back(self, back: Retraction) -> None:
        standing_still = [one for one in self.held if _can_be_meant(one.point) and (one.session, one.number) not in self.ended]
        shares = [share_meant(back, topic(f"{one.point.key} {one.point.value}")) for one in standing_still]
        fresh = [share_meant(back, topic(f"{new.key} {new.value}")) if _can_be_meant(new) else 0.0 for new in self.new]
        best = max([*shares, *fresh], default=0.0)
        meant = [one for one, share in zip(standing_still, shares, strict=True) if share == best]
        young = [new for new, share in zip(self.new, fresh, strict=True) if share == best]
        if best == 1.0 or (best > 0.0 and len({p.key for p in (*(one.point for one in meant), *young)}) == 1):
            self.ended |= {(one.session, one.number): None for one in meant}
            self.new = [new for new in self.new if new not in young]

    def result(self) -> PointChanges:
        """All of it; of an anchor named again and again only the last."""
        last = {(new.kind, new.key): n for n, new in enumerate(self.new)}
        new = [one for n, one in enumerate(self.new) if one.kind != "anchor" or last[one.kind, one.key] == n]
        places = [(number, new.index(by)) for number, by in self.replaced]
        return PointChanges(tuple(new), tuple(places), tuple(self.ended))


def _can_be_meant(point: Point) -> bool:
    return point.kind != "anchor" and not is_statement(point)


def _claim(point: Point) -> Claim:
    return claim(Statement(point.value, point.weight))


def _succeeds(said: Claim, old: Topic) -> bool:
    return not said.about.level.isdisjoint(old.level) and supersedes(said.about, old, says_change=said.says_change)


# --- across sessions ------------------------------------------------------------------------------------------------------------------

ORDER: tuple[PointKind, ...] = ("entity", "place", "preference", "note", "rule", "number", "date", "decision", "action", "feedback", "anchor")
HEADINGS: dict[Language, str] = {"en": "Said by this user in earlier conversations:", "zh": "该用户在此前对话中说过："}
ANCHOR_LABELS: dict[Language, str] = {"en": "names, paths, links", "zh": "名称、路径、链接"}
MOST_TOLD_ANCHORS = 10


def in_force_for_user(points: Iterable[MemoryPoint]) -> list[MemoryPoint]:
    """Of what is in force in a user's sessions, what holds for him: the newest of a key, rules that no newer one replaces; newest first."""
    by_age = sorted((one for one in points if one.in_force), key=lambda one: (one.point.time, one.number))
    valid: dict[str, Topic] = {}
    for said in [_claim(one.point) for one in by_age if is_statement(one.point)][-MOST_COMPARED:]:
        valid = {text: about for text, about in valid.items() if not _succeeds(said, about)} | {said.text: said.about}
    newest = {(one.point.kind, one.point.key.casefold()): one for one in by_age if not is_statement(one.point) or one.point.value in valid}
    return sorted(newest.values(), key=lambda one: (one.point.time, one.number), reverse=True)


def user_block(facts: Sequence[MemoryPoint], max_tokens: int, count_text: CountText, language: Language) -> str:
    """What a new session of a known user may begin with, in at most `max_tokens`: who he is, what he prefers, what holds; "" if nothing fits.

    Rules go along only where they say that they last: others were for one piece of work.
    """
    known = sorted(in_force_for_user(facts), key=lambda one: (ORDER.index(one.point.kind), -one.point.weight))
    rules = " ".join(one.point.value for one in known if is_statement(one.point))
    lines = [told(one.point) for one in known if _is_told(one.point, rules)]
    names = [one.point.key for one in known if one.point.kind == "anchor" and one.point.weight >= WEIGHTS["name"] * ANCHOR_SHARE][:MOST_TOLD_ANCHORS]
    lines += [f"{ANCHOR_LABELS[language]}: {'; '.join(names)}"] if names else []
    heading = HEADINGS[language]
    chosen = fitting(map(item, lines), max_tokens - count_text(heading) - 1, count_text)
    return "\n".join([heading, *chosen]) if chosen else ""


def _is_told(point: Point, rules: str) -> bool:
    if point.kind == "anchor":
        return False
    if point.kind == "rule":
        return LASTING.search(point.value.lower()) is not None
    return is_statement(point) or point.value not in rules


def told(point: Point) -> str:
    """A point on a line: a sentence as it was said, else the key with its value."""
    return point.value if point.key == subject(point.value) else f"{point.key}: {point.value}"
