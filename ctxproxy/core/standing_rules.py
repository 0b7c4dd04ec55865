"""The rules that are in force after a conversation so far: what users stated and did not take back, and what they said matters little."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxproxy.core.memo import Memo, no_memo
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.retraction_words import CHANGE, REMARK_CUES, STRONG_CHANGE
from ctxproxy.core.retractions import (
    Retraction,
    belittles,
    keeps,
    opens_with_little,
    retraction,
    share_meant,
    supersedes,
)
from ctxproxy.core.rule_words import any_of
from ctxproxy.core.rules import NAMED, RULE, RULE_CHARS, Statement, prose, rule_weight, statements
from ctxproxy.core.sentences import split
from ctxproxy.core.topics import Topic, topic

SHORT_SENTENCES = 3
"""A message of no more sentences is meant whole when it says that it matters little."""


LEAST_CHARS = 6
"""What is shorter ("ok", "好的") is not what a later "remember this" means."""


class Rule(NamedTuple):
    """A rule in force, word for word, how surely it is one, and the index of the message that said it last."""

    text: str
    weight: float
    at: int


class Standing(NamedTuple):
    """What holds after some messages."""

    rules: tuple[Rule, ...] = ()
    """In the order in which they were first said."""
    little: frozenset[int] = frozenset()
    """The indexes of the messages of which the user said that they matter little."""


def in_force(messages: Sequence[Message]) -> list[str]:
    """The rules in force after these messages, the surest first, of equal ones the newest."""
    return [rule.text for rule in sorted(standing(messages).rules, key=lambda rule: (-rule.weight, -rule.at))]


def standing(messages: Sequence[Message], held: Sequence[str] = (), memo: Memo = no_memo) -> Standing:
    """The rules in force after these messages, those `held` before them included; only a user's count: what a tool's or a page's "must"
    demands binds nobody (Governance Decay).
    """
    book = _Book()
    for text in held:
        book.state(-1, Statement(text, max(RULE, rule_weight(text))))
    for at, message in enumerate(messages):
        if message.role == "user":
            book.hear(at, memo("rules", message, lambda m=message: _utterance(text_of(m))), counts=not message.directives.drop_first)  # type: ignore[misc]
    return Standing(tuple(book.rules.values()), frozenset(book.little))


class _Utterance(NamedTuple):
    """What is read out of one user message by itself."""

    text: str
    sentences: tuple[str, ...]
    """Only where some of them are remarks."""
    remarks: tuple[int, ...]
    """The places of sentences about rules: taken back, kept, of little weight."""
    statements: tuple[Statement, ...]


def _utterance(text: str) -> _Utterance:
    low = text.lower()
    cues = [cue for cue in REMARK_CUES if cue in low]
    sentences = tuple(_sentences(text)) if cues else ()
    remarks = tuple(n for n, sentence in enumerate(sentences) if any_of(cues, sentence.lower()))
    return _Utterance(text, sentences, remarks, tuple(statements(text)))


@dataclass(slots=True)
class _Book:
    rules: dict[str, Rule] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    little: set[int] = field(default_factory=set)
    before: tuple[int, str] = (-1, "")
    """The user message before that says something: its index and text."""

    def hear(self, at: int, heard: _Utterance, *, counts: bool) -> None:
        """Note what one user message says."""
        text, sentences, remarks = heard.text, heard.sentences, heard.remarks
        slighted = self._belittle(at, sentences, [n for n in remarks if belittles(sentences[n])])
        kept = [n for n in remarks if keeps(sentences[n])]
        if counts and at not in self.little:
            said = [one for one in heard.statements if one.text not in slighted and not keeps(one.text)]
            if self.rules:
                said = self._take_back(at, said, [sentences[n] for n in remarks])
            for one in said:
                self.state(at, one)
            self._keep(at, text, sentences, kept)
        if len(text) >= LEAST_CHARS and at not in self.little and not (kept and len(kept) == len(sentences)):
            self.before = (at, text)

    def _belittle(self, at: int, sentences: Sequence[str], places: Sequence[int]) -> set[str]:
        """What a message says matters little: a mere remark means the message before, a short message is meant whole, of a longer one the
        sentence before the remark.
        """
        if not places:
            return set()
        if len(places) == len(sentences):
            meant = at if any(opens_with_little(sentences[n]) for n in places) else self.before[0]
            self.little |= {meant, at} - {-1}
            self._remove([text for text, rule in self.rules.items() if rule.at == meant])
        elif len(sentences) <= SHORT_SENTENCES:
            self.little.add(at)
        return {sentences[n] for place in places for n in (place, max(place - 1, 0))}

    def _take_back(self, at: int, said: list[Statement], remarks: Sequence[str]) -> list[Statement]:
        """What a message states beside what it takes back, and with the rules to which it gives another value."""
        told = {one.text for one in said}
        for sentence in remarks:
            back = retraction(sentence)
            if back is not None:
                self._drop(back)
                said = [one for one in said if back.form == "stopped" or sentence not in one.text]
            elif sentence not in told and STRONG_CHANGE.found(sentence.lower()):
                weights = [self.rules[old].weight for old in self._replaced(at, topic(sentence), says_change=True)]
                said = [*said, *(Statement(sentence, weight) for weight in weights[:1])]
        return said

    def _drop(self, back: Retraction) -> None:
        shares = {text: share_meant(back, about) for text, about in self.topics.items()}
        best = max(shares.values(), default=0.0)
        meant = [text for text, share in shares.items() if share == best]
        if best == 1.0 or (best > 0 and len(meant) == 1):
            self._remove(meant)

    def _remove(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.rules.pop(text, None)
            self.topics.pop(text, None)

    def state(self, at: int, said: Statement) -> None:
        known = self.rules.get(said.text)
        if known:
            self.rules[said.text] = Rule(said.text, max(known.weight, said.weight), at)
            return
        about = topic(said.text)
        self._remove(self._replaced(at, about, says_change=CHANGE.search(said.text.lower()) is not None))
        self.rules[said.text] = Rule(said.text, said.weight, at)
        self.topics[said.text] = about

    def _replaced(self, at: int, new: Topic, *, says_change: bool) -> list[str]:
        """The rules whose place a newer one takes; where a change could mean one of several, none."""
        found = [text for text, old in self.topics.items() if not new.level.isdisjoint(old.level) and supersedes(new, old, says_change=says_change)]
        again = [text for text in found if self.topics[text].values == new.values]
        others = {text: len(new.level & self.topics[text].level) for text in found if text not in again and self.rules[text].at < at}
        nearest = [self.topics[text] for text, common in others.items() if common == max(others.values())]
        sure = len({about.level for about in nearest}) == 1 or len({about.values for about in nearest}) == 1
        return [*again, *(text for text in others if sure and self.topics[text] in nearest)]

    def _keep(self, at: int, text: str, sentences: Sequence[str], places: Sequence[int]) -> None:
        """Keep what the user wants remembered: the message, of a long one the sentence beside; after a mere remark, the message before."""
        if not places:
            return
        if len(places) == len(sentences):
            self._remember(at, self.before[1])
        elif len(text) <= RULE_CHARS:
            self._remember(at, text)
        else:
            self._remember(at, sentences[places[0] - 1 if places[0] else 1])

    def _remember(self, at: int, text: str) -> None:
        if text.strip():
            self.state(at, Statement(_head(text.strip()), NAMED))


def _sentences(text: str) -> list[str]:
    return [sentence for line in prose(text) for sentence in split(line, RULE_CHARS)]


def _head(text: str) -> str:
    """The first sentence of a text that is too long for one rule."""
    return text if len(text) <= RULE_CHARS else split(text, RULE_CHARS)[0]
