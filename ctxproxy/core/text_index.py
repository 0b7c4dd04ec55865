"""Full text by BM25: how often terms stand in pieces of text, and how well each piece fits what is looked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from ctxproxy.core.messages import Tip

Place: TypeAlias = tuple[Tip, int]
"""Which message a piece is of, and which part of it."""
K1, B = 1.2, 0.75
"""BM25's usual constants, SQLite's too (sqlite.org/fts5.html, the bm25() function)."""


MOST_GAIN = 0.2
"""What having been quoted may add to the score of a piece, at most (003-50): half of it the first time, half of the rest each further time."""


class Posting(NamedTuple):
    """A piece that holds a term so many times; `length` in terms."""

    place: Place
    length: int
    times: int


class Postings(NamedTuple):
    """Where terms stand, and what to weigh that against: how many pieces there are, how long they are on average."""

    by_term: Mapping[str, Sequence[Posting]]
    pieces: int
    average_length: float
    quoted: Mapping[Place, int] = MappingProxyType({})
    """How often answers made use of a piece; one that is not here, never."""


class Inverted(NamedTuple):
    """Pieces of a message by their terms: of each piece its length in terms; of each term the pieces that hold it, number and times in turns."""

    tip: Tip
    lengths: Mapping[int, int]
    by_term: Mapping[str, Sequence[int]]


NO_POSTINGS = Postings({}, 0, 0.0)


class TextIndex:
    """Pieces by their terms, for a store without a search engine."""

    def __init__(self) -> None:
        self._times: dict[str, dict[Place, int]] = defaultdict(dict)
        self._terms: dict[Place, Mapping[str, int]] = {}
        self._lengths: dict[Place, int] = {}

    def __contains__(self, place: Place) -> bool:
        return place in self._lengths

    def add(self, place: Place, terms: Mapping[str, int]) -> None:
        """Put a piece in; one that is there already stays."""
        if place in self._lengths:
            return
        for term, times in terms.items():
            self._times[term][place] = times
        self._terms[place] = terms
        self._lengths[place] = sum(terms.values())

    def remove(self, place: Place) -> None:
        """Take a piece out, if it is there."""
        for term in self._terms.pop(place, {}):
            del self._times[term][place]
            if not self._times[term]:
                del self._times[term]
        self._lengths.pop(place, None)

    def postings(self, terms: Iterable[str]) -> Postings:
        """Where these terms stand."""
        found = {term: [Posting(place, self._lengths[place], n) for place, n in self._times[term].items()] for term in terms if term in self._times}
        return Postings(found, len(self._lengths), sum(self._lengths.values()) / max(len(self._lengths), 1))


def inverted(tip: Tip, pieces: Iterable[tuple[int, Mapping[str, int]]]) -> Inverted:
    """The pieces of a message, each told by its number and its terms."""
    lengths: dict[int, int] = {}
    by_term: dict[str, tuple[int, ...] | list[int]] = {}
    for part, terms in pieces:
        lengths[part] = sum(terms.values())
        once = (part, 1)  # most terms: they share it
        for term, times in terms.items():
            held = by_term.get(term)
            if held is None:
                by_term[term] = once if times == 1 else (part, times)
            elif isinstance(held, list):
                held += (part, times)
            else:
                by_term[term] = [*held, part, times]
    return Inverted(tip, lengths, by_term)


def turned_back(message: Inverted) -> dict[int, dict[str, int]]:
    """How often each term is in each piece."""
    terms: dict[int, dict[str, int]] = {part: {} for part in message.lengths}
    for term, held in message.by_term.items():
        for at in range(0, len(held), 2):
            terms[held[at]][term] = held[at + 1]
    return terms


def standing(messages: Iterable[Inverted], terms: Iterable[str], left_out: Collection[Place] = ()) -> Postings:
    """Where terms stand in pieces that are in no index, those at some places left out."""
    found: dict[str, list[Posting]] = {term: [] for term in terms}
    sizes: list[int] = []
    has_left_out = {tip for tip, _ in left_out}
    for tip, lengths, by_term in messages:
        out = {part for part in lengths if (tip, part) in left_out} if tip in has_left_out else ()
        sizes += [length for part, length in lengths.items() if part not in out] if out else lengths.values()
        for term, postings in found.items():
            if held := by_term.get(term):
                for at in range(0, len(held), 2):
                    if (part := held[at]) not in out:
                        postings.append(Posting((tip, part), lengths[part], held[at + 1]))
    return Postings({term: held for term, held in found.items() if held}, len(sizes), sum(sizes) / max(len(sizes), 1))


def scores(postings: Postings, weights: Mapping[str, float]) -> dict[Place, float]:
    """How well each piece that holds any of the terms fits; `weights` says how much each term counts."""
    found: dict[Place, float] = defaultdict(float)
    average = postings.average_length or 1.0
    for term, held in postings.by_term.items():
        weight = weights.get(term, 0.0) * rarity(len(held), postings.pieces) * (K1 + 1)
        for place, length, times in held:
            found[place] += weight * times / (times + K1 * (1 - B + B * length / average))
    return {place: score * proven(postings.quoted.get(place, 0)) for place, score in found.items()} if postings.quoted else dict(found)


def proven(quoted: int) -> float:
    """What a score is multiplied by for having been quoted so often: from 1 to 1 + `MOST_GAIN`."""
    return 1 + MOST_GAIN * float(1 - 0.5**quoted)


def most(postings: Postings, weights: Mapping[str, float]) -> float:
    """About the score of a piece of average length that holds each of the terms once, those that stand nowhere aside."""
    return sum(weights.get(term, 0.0) * rarity(len(held), postings.pieces) for term, held in postings.by_term.items())


def rarity(holding: int, pieces: int) -> float:
    """BM25's weight of a term that so many of the pieces hold: 0 where all do, never below."""
    return log(1 + (pieces - holding + 0.5) / (holding + 0.5))
