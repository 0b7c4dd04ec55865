"""Which pieces of what a prompt holds no more the newest request gets back: what it asks for, how well each fits, a choice that fits.

A piece counts with what was said right before it: "it is 6929" is found by the "phone" of the question that it answers. A question gets
all the room that there is; what asks nothing gets little, and only what fits it well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import NamedTuple, TypeVar

from ctxproxy.core.chunks import Chunk, chunks_of
from ctxproxy.core.extractive import ASKING, is_small_talk
from ctxproxy.core.forgetting import expired
from ctxproxy.core.memo import Memo
from ctxproxy.core.messages import Message, Tip, text_of
from ctxproxy.core.recalled import Passage
from ctxproxy.core.records import SessionKey
from ctxproxy.core.search_terms import MARK, query_terms
from ctxproxy.core.sentences import split
from ctxproxy.core.situation import Situation
from ctxproxy.core.text_index import Place, Postings, most, scores
from ctxproxy.core.transcript import Transcript

T = TypeVar("T")
BESIDE = (1.0, 0.6, 0.3)
"""How much the score of a piece, of the one before it and of the one before that count (measured on the quality conversations)."""
EXACT_WEIGHT = 2.0
"""An exact value that the request names, beside a word (003-55, 003-57)."""
EARLIER_WEIGHT = 0.5
"""A word of the request before, beside one of the request's own."""
SHORT_TERMS = 3
"""A request of no more telling terms is taken to go on from the one before it."""
QUERY_CHARS = 2400
"""Of the end of a long request, and a quarter of the one before: what is asked stands there."""
LOOKS_BACK = re.compile(
    r"\b(?:remind me|do you (?:still )?(?:remember|recall)|(?:we|I|you) (?:said|told|discussed|decided|mentioned|agreed))\b"
    r"|\b(?:last time|earlier|as before)\b|上次|之前|还记得|先前|刚才说",
    re.IGNORECASE,
)
LEAST_MATCH = 0.65
"""Of the score of a piece that holds all that is looked for: what asks nothing gets back nothing that fits less."""
NEAR_BEST = 0.5
"""Of the best piece's score: what asks nothing gets back no weaker ones."""
LEAST_ASKED, CLEAR_MATCH = 0.3, 0.5
"""The same for a question, and from which on it gets all the room. Measured on the quality conversations: without the two, small talk that asks
something back costs a tenth more, and finds no more."""
LITTLE_TOKENS, SOME_TOKENS = 300, 600
FRAME_TOKENS = 45
"""What title and acknowledgement take."""
LINE_TOKENS = 3
LEAST_KNOWN = 0.4
"""Of the terms: what was said and holds fewer of them is about something else."""
ELSEWHERE_MOST = 8
"""Pieces of other sessions."""
RANKED_MOST = 300
"""No more pieces than this are looked at: they would not fit."""


class Query(NamedTuple):
    """What is looked for: terms with their weights, whether it is a question, and whether it speaks of what was before."""

    terms: Mapping[str, float]
    asks: bool
    looks_back: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may come back: pieces, tokens, and the least share of the best possible score (0 to 1) for anything to."""

    top_k: int
    max_tokens: int
    min_score: float


def query_of(messages: Sequence[Message]) -> Query:
    """What the last of the user's messages asks for; a short one ("and the other one?") is widened by the one before it, small talk asks nothing."""
    said = [text_of(message).strip() for message in messages if message.role == "user"]
    if not said or is_small_talk(said[-1]):
        return Query({}, asks=False)
    newest = said[-1][-QUERY_CHARS:]
    terms = {term: EXACT_WEIGHT if term.startswith(MARK) else 1.0 for term in query_terms(newest)}
    if len(terms) <= SHORT_TERMS and len(said) > 1:
        terms = {**dict.fromkeys(query_terms(said[-2][-QUERY_CHARS // 4 :]), EARLIER_WEIGHT), **terms}
    looks_back = LOOKS_BACK.search(newest) is not None
    return Query(terms, asks=looks_back or asks(newest), looks_back=looks_back)


def asks(text: str) -> bool:
    """Whether a text is a question for the most part; a remark with a question at its end is not."""
    asking = sum(len(sentence) for sentence in split(text) if sentence.lower().endswith(ASKING))
    return asking * 2 >= len(text)


def gone(transcript: Transcript, tips: Sequence[Tip], forgotten: frozenset[Tip]) -> frozenset[Tip]:
    """The messages of a history that a prompt does not hold as they were said, but for those that nobody is to see again."""
    whole = {entry.tip for entry in transcript.entries if entry.origin == "original"}
    return frozenset(tips) - whole - forgotten


def choose(s: Situation, transcript: Transcript, query: Query, postings: Postings, bounds: Bounds) -> list[Passage]:
    """The passages of what is gone from a prompt that fit the query best, oldest first; [] where nothing fits well enough."""
    at = {tip: n for n, tip in enumerate(s.reconciled.tips)}
    kept_out = s.forgotten | expired(s.reconciled.history, s.reconciled.tips)
    lost = gone(transcript, s.reconciled.tips, kept_out if query.looks_back else kept_out | s.cleared)
    own = {(at[tip], part): score for (tip, part), score in scores(postings, query.terms).items() if tip in at and part >= 0}
    near = with_what_was_before(own)
    shown = "\n".join(text_of(entry.message) for entry in transcript.entries if entry.origin != "original")
    old = (place for place in near if place[0] < len(at) and s.reconciled.tips[place[0]] in lost)
    ranked = nsmallest(RANKED_MOST, old, key=lambda place: (-near[place], place))
    found = [(chunk, near[place]) for place in ranked if (chunk := _chunk(s, place)) and chunk.text not in shown]
    room = min(bounds.max_tokens, s.budget.limit - transcript.tokens - FRAME_TOKENS)
    best = found[0][1] / (most(postings, query.terms) or 1.0) if found else 0.0
    if not found or best < bounds.min_score:
        return []
    if best < (LEAST_ASKED if query.asks else LEAST_MATCH) or not (query.asks or _is_known(query, postings)):
        return []
    if not query.asks:
        found = [one for one in found if one[1] >= NEAR_BEST * found[0][1]]
        room = min(room, LITTLE_TOKENS, s.budget.trigger - transcript.tokens - FRAME_TOKENS)
    elif best < CLEAR_MATCH:
        room = min(room, SOME_TOKENS)
    chosen = fill([chunk for chunk, _ in found], lambda chunk: s.count_text(chunk.text) + LINE_TOKENS, room, bounds.top_k)
    chosen.sort(key=lambda chunk: (at[chunk.tip], chunk.part))
    return [Passage((chunk.tip, chunk.part), chunk.role, chunk.text) for chunk in chosen]


def _is_known(query: Query, postings: Postings) -> bool:
    """Whether what was said holds enough of the terms to be about the same."""
    return len(postings.by_term) >= LEAST_KNOWN * len(query.terms)


def _chunk(s: Situation, place: tuple[int, int]) -> Chunk | None:
    at, part = place
    chunks = chunks_at(s.reconciled.history[at], s.reconciled.tips[at], s.memo)
    return chunks[part] if part < len(chunks) else None


def chunks_at(message: Message, tip: Tip, memo: Memo) -> tuple[Chunk, ...]:
    """The chunks of a message, worked out once."""
    return tuple(chunk._replace(tip=tip) for chunk in memo("chunks", message, lambda: chunks_of(message, "")))


def with_what_was_before(own: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """The scores of pieces by message and part, each with its share of that of the part before it and of the best of the messages before."""
    best: dict[int, float] = {}
    for (at, _), score in own.items():
        best[at] = max(best.get(at, 0.0), score)
    places = own.keys() | {(at + ahead, 0) for at in best for ahead in (1, 2)}
    return {(at, part): _with_before(own, best, at, part) for at, part in places}


def _with_before(own: Mapping[tuple[int, int], float], best: Mapping[int, float], at: int, part: int) -> float:
    before = (own.get((at, part - 1), 0.0) if part else best.get(at - 1, 0.0), best.get(at - (1 if part else 2), 0.0))
    return BESIDE[0] * own.get((at, part), 0.0) + BESIDE[1] * before[0] + BESIDE[2] * before[1]


def fill(ranked: Sequence[T], cost: Callable[[T], int], most_tokens: int, top_k: int) -> list[T]:
    """The first of a ranking that fit together, at most `top_k`; one that is too long is passed over."""
    chosen: list[T] = []
    for one in ranked:
        tokens = cost(one)
        if tokens <= most_tokens:
            chosen.append(one)
            most_tokens -= tokens
            if len(chosen) == top_k:
                break
    return chosen


def merged(one: Postings, other: Postings) -> Postings:
    """The postings of two parts of a session that have no piece in common."""
    pieces = one.pieces + other.pieces
    length = one.average_length * one.pieces + other.average_length * other.pieces
    by_term = {term: (*one.by_term.get(term, ()), *other.by_term.get(term, ())) for term in one.by_term.keys() | other.by_term.keys()}
    return Postings(by_term, pieces, length / max(pieces, 1))


class Elsewhere(NamedTuple):
    """What the terms are found in, in another session."""

    key: SessionKey
    postings: Postings


def elsewhere(found: Sequence[Elsewhere], query: Query, bounds: Bounds) -> list[tuple[SessionKey, list[Place]]]:
    """The places in other sessions that fit the query clearly, the best first, at most a few; summaries count as what they tell of."""
    ranked: list[tuple[float, SessionKey, Place]] = []
    for key, postings in found:
        whole = most(postings, query.terms) if _is_known(query, postings) else 0.0
        if whole:
            ranked += [(score / whole, key, place) for place, score in scores(postings, query.terms).items() if score >= CLEAR_MATCH * whole]
    ranked.sort(key=lambda one: (-one[0], one[1], one[2]))
    chosen = [one for one in ranked if one[0] >= max(bounds.min_score, NEAR_BEST * ranked[0][0])][: min(ELSEWHERE_MOST, bounds.top_k)]
    by_key: dict[SessionKey, list[Place]] = {}
    for _, key, place in chosen:
        by_key.setdefault(key, []).append(place)
    return list(by_key.items())
