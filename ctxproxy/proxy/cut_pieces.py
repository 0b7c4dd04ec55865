"""What waits for the search index, cut into pieces: for the index, and for a search that comes sooner."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ctxproxy.core.chunks import Chunk, Indexed, chunks_of, parts_of
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.records import StoredMessage, Summary
from ctxproxy.core.retrieval import merged
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.text_index import Postings, standing

SEARCHED_BYTES = 1_000_000
"""Of messages that wait for the index, the newest, that are searched in memory: cutting them takes half as many microseconds, once."""


class CutPiece(NamedTuple):
    """A piece, how often each term is in it, and how many are in all."""

    chunk: Chunk
    terms: Mapping[str, int]
    length: int


Cut: TypeAlias = tuple[CutPiece, ...]
"""The pieces of a message."""


def cut_all(messages: Iterable[tuple[Tip, Message]], gone: list[Cut]) -> list[Cut]:
    """The pieces of each message; lets go of what is `gone` one by one: in one go that would hold everything up, for all that is in it."""
    while gone:
        gone.pop()
    return [_cut(message, tip) for tip, message in messages]


def _cut(message: Message, tip: Tip) -> Cut:
    return tuple(CutPiece(chunk, terms := terms_of(chunk.text), terms.total()) for chunk in chunks_of(message, tip))


def pieces_of_rows(rows: Iterable[StoredMessage], cut: Mapping[Tip, Cut | None], turn: int, forgotten: Collection[Tip]) -> list[Indexed]:
    made: list[Indexed] = []
    for row in rows:
        turn += row.role == "user"
        if row.raw and row.tip not in forgotten:
            made += [Indexed(chunk, terms, turn, row.created) for chunk, terms, _ in cut[row.tip] or _cut(row.message, row.tip)]
    return made


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


def with_waiting(stored: Postings, summaries: Iterable[Summary], cut: Iterable[Cut], terms: Sequence[str]) -> Postings:
    """The store's postings with those of what waits, or waited when the store was asked."""
    there = {posting.place for held in stored.by_term.values() for posting in held}
    pieces = [CutPiece(piece.chunk, piece.terms, sum(piece.terms.values())) for one in summaries for piece in pieces_of_summary(one)]
    pieces += [piece for one in cut for piece in one if (piece.chunk.tip, piece.chunk.part) not in there]
    by_term = standing((((chunk.tip, chunk.part), held, size) for chunk, held, size in pieces), terms)
    length = sum(piece.length for piece in pieces)
    return merged(stored, Postings(by_term, len(pieces), length / max(len(pieces), 1)))
