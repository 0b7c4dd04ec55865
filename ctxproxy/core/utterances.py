"""What one user message says of rules by itself: those it states, and its remarks on others. All that costs time to read is read here."""

from __future__ import annotations

from typing import NamedTuple

from ctxproxy.core.retraction_words import CHANGE, REMARK_CUES, STRONG_CHANGE
from ctxproxy.core.retractions import Retraction, belittles, keeps, opens_with_little, retraction
from ctxproxy.core.rule_words import any_of
from ctxproxy.core.rules import RULE_CHARS, Statement, prose, statements
from ctxproxy.core.sentences import split
from ctxproxy.core.topics import Topic, topic

EDGE_CHARS = 200_000
"""What lies further inside is a pasted document; reading it would take more time and memory than a request has."""


class Claim(NamedTuple):
    """A rule, what it is about, and whether it says that something has changed."""

    text: str
    weight: float
    about: Topic
    says_change: bool


class Remark(NamedTuple):
    """A sentence that takes a rule back, or gives one another value."""

    sentence: str
    back: Retraction | None
    new_value: Topic | None


class Utterance(NamedTuple):
    """A user message, read."""

    text: str
    sentences: tuple[str, ...]
    """Only where there are remarks; the numbers below are places in it."""
    little: tuple[int, ...]
    """Those that say that something matters little."""
    opens_with_little: bool
    """One of them goes on to tell what does."""
    kept: tuple[int, ...]
    """Those that say "remember this"."""
    remarks: tuple[Remark, ...]
    claims: tuple[Claim, ...]


def utterance(text: str) -> Utterance:
    """What a user's text says; of one as long as a book, what its beginning and its end say."""
    text = edges(text)
    low = text.lower()
    cues = [cue for cue in REMARK_CUES if cue in low]
    sentences = tuple(sentence for line in prose(text) for sentence in split(line, RULE_CHARS)) if cues else ()
    places = [at for at, sentence in enumerate(sentences) if any_of(cues, sentence.lower())]
    little = tuple(at for at in places if belittles(sentences[at]))
    kept = tuple(at for at in places if keeps(sentences[at]))
    return Utterance(
        text=text,
        sentences=sentences,
        little=little,
        opens_with_little=any(opens_with_little(sentences[at]) for at in little),
        kept=kept,
        remarks=tuple(remark for at in places if (remark := _remark(sentences[at]))),
        claims=tuple(claim(one) for one in statements(text) if not keeps(one.text)),
    )


def edges(text: str, edge_chars: int = EDGE_CHARS) -> str:
    """A text, or the beginning and the end of one as long as a book."""
    return text if len(text) <= 2 * edge_chars else f"{text[:edge_chars]}\n{text[-edge_chars:]}"


def claim(stated: Statement) -> Claim:
    """A statement with what it is about."""
    return Claim(stated.text, stated.weight, topic(stated.text), CHANGE.search(stated.text.lower()) is not None)


def _remark(sentence: str) -> Remark | None:
    back = retraction(sentence)
    new_value = topic(sentence) if back is None and STRONG_CHANGE.found(sentence.lower()) else None
    return Remark(sentence, back, new_value) if back or new_value else None
