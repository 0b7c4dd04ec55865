"""What waits for the search index, cut into pieces: for the index, and for a search that comes sooner."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ctxproxy.core.chunks import Chunk, Indexed, chunks_of, parts_of
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.records import StoredMessage, Summary
from ctxproxy.core.retrieval import merged
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.text_index import Inverted, Postings, inverted, standing, turned_back

SEARCHED_BYTES = 1_000_000
"""Of messages that wait for the index, the newest, that are searched in memory: cutting them takes half as many microseconds, once."""


class Cut(NamedTuple):
    """The pieces of a message, and where each term stands in them."""

    chunks: tuple[Chunk, ...]
    held: Inverted


@dataclass(frozen=True)
class WaitingSummary:
    """A summary, cut when it is first searched."""

    summary: Summary

    @cached_property
    def held(self) -> Inverted:
        return inverted(self.summary.tip, [(piece.chunk.part, piece.terms) for piece in pieces_of_summary(self.summary)])


def cut_all(messages: Iterable[tuple[Tip, Message]], gone: list[Cut]) -> list[Cut]:
    """The pieces of each message; lets go of what is `gone` one by one: in one go that would hold everything up, for all that is in it."""
    while gone:
        gone.pop()
    return [_cut(message, tip) for tip, message in messages]


def _cut(message: Message, tip: Tip) -> Cut:
    chunks = chunks_of(message, tip)
    return Cut(chunks, inverted(tip, [(chunk.part, terms_of(chunk.text)) for chunk in chunks]))


def pieces_of_rows(rows: Iterable[StoredMessage], cut: Mapping[Tip, Cut | None], turn: int, forgotten: Collection[Tip]) -> list[Indexed]:
    """What the index takes in of messages, before which so many of users stand; but for those that are forgotten."""
    made: list[Indexed] = []
    for row in rows:
        turn += row.role == "user"
        if row.raw and row.tip not in forgotten:
            made += [Indexed(chunk, terms, turn, row.created) for chunk, terms in _with_terms(row, cut[row.tip])]
    return made


def _with_terms(row: StoredMessage, cut: Cut | None) -> list[tuple[Chunk, Mapping[str, int]]]:
    """The pieces of a message, each with how often each term is in it."""
    if cut is None:
        return [(chunk, terms_of(chunk.text)) for chunk in chunks_of(row.message, row.tip)]
    terms = turned_back(cut.held)
    return [(chunk, terms[chunk.part]) for chunk in cut.chunks]


def newest_of(messages: Iterable[tuple[Tip, Message]]) -> list[tuple[Tip, Message]]:
    """The first of what comes newest first, as much of it as can be cut in the time of a request."""
    found: list[tuple[Tip, Message]] = []
    size = 0
    for tip, message in messages:
        size += len(message.raw)
        if size > SEARCHED_BYTES:
            break
        found.append((tip, message))
    return found


def pieces_of_summary(one: Summary) -> Iterator[Indexed]:
    parts = (Chunk(one.tip, -1 - n, text, "summary") for n, text in enumerate(parts_of(one.text)))
    yield from (Indexed(part, terms_of(part.text), 0, one.created) for part in parts)


def with_waiting(stored: Postings, waiting: Iterable[Inverted], terms: Sequence[str]) -> Postings:
    """The store's postings with those of what waits, or waited when the store was asked."""
    there = {posting.place for held in stored.by_term.values() for posting in held}
    return merged(stored, standing(waiting, terms, there))
