"""Memory files in the search: their texts in pieces, found like what was said, those of older days after newer ones (000-S14)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ctxproxy.core.chunks import parts_of
from ctxproxy.core.distilling import Source, items_in
from ctxproxy.core.memory_notes import MARKED, notes_in
from ctxproxy.core.messages import Tip
from ctxproxy.core.recalled import Passage
from ctxproxy.core.retrieval import CLEAR_MATCH, LEAST_KNOWN, NEAR_BEST, Query
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.text_index import Place, TextIndex, most, scores

HALF_LIFE_DAYS = 30.0
"""000-S14: a note of a day so long ago scores half; what stands in `MEMORY.md` does not age."""
MOST = 8
"""Pieces of memory files in one prompt."""
MOST_TOKENS = 400
COMMENT = "<!-- ctxproxy"
TITLE = re.compile(r"^# (?:Memory|\d{4}-\d{2}-\d{2})$", re.MULTILINE)


class NotePiece(NamedTuple):
    """A piece of a memory file."""

    place: Place
    """The file's name, and where in it."""
    text: str
    day: str = ""
    """`YYYY-MM-DD`; "" in `MEMORY.md`."""
    sources: tuple[Source, ...] = ()
    """The sections it comes from; () for what somebody wrote by hand."""


class FoundNote(NamedTuple):
    """A piece, and its share of the score of one that holds all that is looked for."""

    share: float
    piece: NotePiece


def pieces_of(file: str, day: str, text: str) -> list[NotePiece]:
    """The pieces of a day's file, or, where `day` is "", of `MEMORY.md`; marks and headings of ours are none, all that was written by hand is."""
    told: list[tuple[str, tuple[Source, ...]]]
    if day:
        own = MARKED.split(text, maxsplit=1)[0]
        told = [(note.text, (Source(note.session, note.tip),)) for note in notes_in(text)]
    else:
        own = "\n".join(line for line in text.splitlines() if not line.startswith(("- ", COMMENT)))
        told = [(item.text, item.sources) for item in items_in(text)]
    whole = [(TITLE.sub("", own), ()), *told]
    parts = [(part, sources) for one, sources in whole for part in parts_of(one)]
    return [NotePiece((file, at), part, day, sources) for at, (part, sources) in enumerate(parts)]


class NoteIndex:
    """The pieces of one folder's files by their terms."""

    def __init__(self) -> None:
        self._index = TextIndex()
        self._pieces: dict[Place, NotePiece] = {}

    def put(self, file: str, pieces: Iterable[NotePiece]) -> None:
        """The pieces of a file, in place of those that it had."""
        for place in [place for place in self._pieces if place[0] == file]:
            self._index.remove(place)
            del self._pieces[place]
        for piece in pieces:
            self._index.add(piece.place, terms_of(piece.text))
            self._pieces[piece.place] = piece

    def found(self, terms: Mapping[str, float]) -> list[FoundNote]:
        """What holds any of the terms; [] where the folder is about something else."""
        postings = self._index.postings(terms)
        if not terms or len(postings.by_term) < LEAST_KNOWN * len(terms):
            return []
        whole = most(postings, terms) or 1.0
        return [FoundNote(score / whole, self._pieces[place]) for place, score in scores(postings, terms).items()]


def remaining(age_days: int) -> float:
    """How much a note that is so old still counts, from 0 to 1: half after each `HALF_LIFE_DAYS`."""
    return float(0.5 ** (age_days / HALF_LIFE_DAYS))


@dataclass(frozen=True, slots=True)
class Told:
    """What is known when notes are chosen."""

    session: str
    """The name of the session that asks."""
    cleared: Collection[Tip]
    shown: str
    """What stands in its prompt already."""
    logged: Collection[str] = ()
    """The terms looked for that its own log has."""


def apart(found: Iterable[FoundNote], session: str) -> tuple[list[FoundNote], list[FoundNote]]:
    """What was found in the notes of others and in what was written by hand, and what in a session's own sections."""
    others: list[FoundNote] = []
    own: list[FoundNote] = []
    for one in found:
        (own if any(source.session == session for source in one.piece.sources) else others).append(one)
    return others, own


def chosen(found: Iterable[FoundNote], told: Told, age_days: Callable[[str], int], min_score: float) -> list[NotePiece]:
    """The pieces that fit clearly and are not in the prompt, the best first: what a day has left of its score counts among them.

    `age_days` gives how old a day is; what is of no day does not age.
    """
    fitting = [one for one in found if one.share >= CLEAR_MATCH and one.piece.text not in told.shown]
    ranked = sorted(((one.share * remaining(age_days(one.piece.day)), one.piece) for one in fitting), key=lambda one: (-one[0], one[1].place))
    return [piece for score, piece in ranked if score >= max(min_score, NEAR_BEST * ranked[0][0])][:MOST]


def news(own: Iterable[FoundNote], query: Query, told: Told) -> list[FoundNote]:
    """What a session's own sections have beside its log, which is searched word for word: pieces with a term that the log does not have."""
    wanted = query.terms.keys() - set(told.logged)
    hidden = frozenset() if query.looks_back else frozenset(told.cleared)
    return [one for one in own if wanted & terms_of(one.piece.text).keys() and hidden.isdisjoint(source.tip for source in one.piece.sources)]


def as_passage(piece: NotePiece) -> Passage:
    """A piece as it stands in a prompt."""
    return Passage(piece.place, "note", piece.text, piece.day)
