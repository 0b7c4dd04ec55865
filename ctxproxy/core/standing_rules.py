"""The rules that are in force after a conversation so far: what users stated and did not take back, and what they said matters little."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxproxy.core.memo import Memo, Reading, no_memo
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.retractions import Retraction, share_meant, supersedes
from ctxproxy.core.rules import NAMED, RULE, RULE_CHARS, Statement, rule_weight
from ctxproxy.core.sentences import split
from ctxproxy.core.topics import Topic
from ctxproxy.core.utterances import Claim, Remark, Utterance, claim, utterance

RULES = Reading("rules", 2.0)
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


def in_force(messages: Sequence[Message], memo: Memo = no_memo) -> list[str]:
    """The rules in force after these messages, the surest first, of equal ones the newest."""
    return [rule.text for rule in sorted(standing(messages, memo=memo).rules, key=lambda rule: (-rule.weight, -rule.at))]


def standing(messages: Sequence[Message], held: Sequence[str] = (), memo: Memo = no_memo) -> Standing:
    """The rules in force after these messages, those `held` before them included; only a user's count: what a tool's or a page's "must"
    demands binds nobody (Governance Decay).
    """
    book = _Book()
    for text in held:
        book.state(-1, claim(Statement(text, max(RULE, rule_weight(text)))))
    by_user = [(at, message) for at, message in enumerate(messages) if message.role == "user"]
    heard = utterances([message for _, message in by_user], memo)
    for (at, message), one in zip(by_user, heard, strict=True):
        book.hear(at, one, counts=not message.directives.drop_first)
    return Standing(tuple(book.rules.values()), frozenset(book.little))


def utterances(messages: Sequence[Message], memo: Memo) -> Sequence[Utterance]:
    """What each of these messages of a user says that bears on rules."""
    return memo(RULES, messages, lambda message: utterance(text_of(message)))


@dataclass(slots=True)
class _Book:
    rules: dict[str, Rule] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    little: set[int] = field(default_factory=set)
    before: tuple[int, str] = (-1, "")
    """The user message before that says something: its index and text."""

    def hear(self, at: int, heard: Utterance, *, counts: bool) -> None:
        """Note what one user message says; of most that is only that it is the newest."""
        if not (heard.claims or heard.remarks or heard.little or heard.kept):
            if len(heard.text) >= LEAST_CHARS and at not in self.little:
                self.before = (at, heard.text)
            return
        slighted = self._belittle(at, heard)
        if counts and at not in self.little:
            said = [one for one in heard.claims if one.text not in slighted]
            for one in self._take_back(at, said, heard.remarks) if self.rules else said:
                self.state(at, one)
            self._keep(at, heard)
        only_remarks = bool(heard.kept) and len(heard.kept) == len(heard.sentences)
        if len(heard.text) >= LEAST_CHARS and at not in self.little and not only_remarks:
            self.before = (at, heard.text)

    def _belittle(self, at: int, heard: Utterance) -> set[str]:
        """The sentences that a message says matter little: a mere remark means the message before, a short message is meant whole, of a
        longer one the sentence before the remark.
        """
        if not heard.little:
            return set()
        if len(heard.little) == len(heard.sentences):
            meant = at if heard.opens_with_little else self.before[0]
            self.little |= {meant, at} - {-1}
            self._remove([text for text, rule in self.rules.items() if rule.at == meant >= 0])
        elif len(heard.sentences) <= SHORT_SENTENCES:
            self.little.add(at)
        return {heard.sentences[n] for place in heard.little for n in (place, max(place - 1, 0))}

    def _take_back(self, at: int, said: list[Claim], remarks: Sequence[Remark]) -> list[Claim]:
        """What a message states beside what it takes back, and with the rules to which it gives another value."""
        told = {one.text for one in said}
        for sentence, back, new_value in remarks:
            if back:
                self._drop(back)
                said = [one for one in said if back.form == "stopped" or sentence not in one.text]
            elif new_value and sentence not in told:
                weights = [self.rules[old].weight for old in self._replaced(at, new_value, says_change=True)]
                said = [*said, *(Claim(sentence, weight, new_value, says_change=True) for weight in weights[:1])]
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

    def state(self, at: int, said: Claim) -> None:
        """Note a rule; it takes the place of those that it replaces."""
        known = self.rules.get(said.text)
        if not known:
            self._remove(self._replaced(at, said.about, says_change=said.says_change))
            self.topics[said.text] = said.about
        self.rules[said.text] = Rule(said.text, max(known.weight, said.weight) if known else said.weight, at)

    def _replaced(self, at: int, new: Topic, *, says_change: bool) -> list[str]:
        """The rules whose place a newer one takes; where a change could mean one of several, none."""
        found = [text for text, old in self.topics.items() if not new.level.isdisjoint(old.level) and supersedes(new, old, says_change=says_change)]
        again = [text for text in found if self.topics[text].values == new.values]
        others = {text: len(new.level & self.topics[text].level) for text in found if text not in again and self.rules[text].at < at}
        nearest = [self.topics[text] for text, common in others.items() if common == max(others.values())]
        sure = len({about.level for about in nearest}) == 1 or len({about.values for about in nearest}) == 1
        return [*again, *(text for text in others if sure and self.topics[text] in nearest)]

    def _keep(self, at: int, heard: Utterance) -> None:
        """Keep what the user wants remembered: the message, of a long one the sentence beside; after a mere remark, the message before."""
        if not heard.kept:
            return
        first = heard.kept[0]
        if len(heard.kept) == len(heard.sentences):
            text = self.before[1].strip()
        else:
            text = heard.text.strip() if len(heard.text) <= RULE_CHARS else heard.sentences[first - 1 if first else 1]
        if text:
            self.state(at, claim(Statement(_head(text), NAMED)))


def _head(text: str) -> str:
    """The first sentence of a text that is too long for one rule."""
    return text if len(text) <= RULE_CHARS else split(text, RULE_CHARS)[0]
