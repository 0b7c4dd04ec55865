"""Which pieces of what a prompt holds no more the newest request gets back: what it asks for, how well each fits, a choice that fits.

A piece counts with what was said right before it: "it is 6929" is found by the "phone" of the question that it answers. A question gets
all the room that there is; what asks nothing gets little, and only what fits it well. (Measured on the quality conversations: room by how
well the best piece fits a question costs less, a twentieth, and finds less, English questions that ask in other words than the answer's.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeVar

from ctxproxy.core.chunks import Chunk, chunks_of
from ctxproxy.core.forgetting import expired
from ctxproxy.core.fusion import NOT_COMPARED, Nearness, Ranking, Spot, fused
from ctxproxy.core.memo import Memo, Reading
from ctxproxy.core.messages import Message, Tip, text_of
from ctxproxy.core.passages import ASKING, is_small_talk
from ctxproxy.core.recalled import Passage
from ctxproxy.core.records import SessionKey
from ctxproxy.core.search_terms import MARK, query_terms
from ctxproxy.core.sentences import split
from ctxproxy.core.situation import Situation
from ctxproxy.core.text_index import Place, Postings, most, scores
from ctxproxy.core.transcript import Transcript

T = TypeVar("T")
CHUNKS = Reading("chunks", 4.0)
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
CLEAR_MATCH = 0.5
"""Of that score: what is found in another session fits no less."""
MOST_TERMS = 60
"""Of a longer text that asks nothing no piece holds so many that it would fit (of 276 such texts of the quality data, none got anything); of one that
asks, the last ones and exact values are looked for."""
LITTLE_TOKENS = 300
FRAME_TOKENS = 45
"""What title and acknowledgement take."""
LINE_TOKENS = 3
LEAST_KNOWN = 0.4
"""Of the terms: what was said and holds fewer of them is about something else."""
ELSEWHERE_MOST = 8
"""Pieces of other sessions."""
NAMED_MOST = 10
"""Pieces that hold an exact value: a name that many hold tells none of them from the others."""
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
    asking = looks_back or asks(newest)
    return Query(_last(terms) if asking else terms, asks=asking, looks_back=looks_back)


def _last(terms: Mapping[str, float]) -> Mapping[str, float]:
    """The last terms, and exact values wherever they stand."""
    late = set(list(terms)[-MOST_TERMS:])
    return {term: weight for term, weight in terms.items() if term in late or term.startswith(MARK)}


def is_long_remark(query: Query) -> bool:
    """Whether it asks nothing, and says too much for words of the past to fit it."""
    return not query.asks and len(query.terms) > MOST_TERMS


def sense_of(messages: Sequence[Message]) -> str:
    """The text whose meaning is compared: the end of the last of the user's messages. The one before would drown a short one in its own meaning."""
    return next((text_of(message).strip()[-QUERY_CHARS:] for message in reversed(messages) if message.role == "user"), "")


def asks(text: str) -> bool:
    """Whether a text is a question for the most part; a remark with a question at its end is not."""
    asking = sum(len(sentence) for sentence in split(text) if sentence.lower().endswith(ASKING))
    return asking * 2 >= len(text)


def gone(transcript: Transcript, tips: Sequence[Tip], forgotten: frozenset[Tip]) -> frozenset[Tip]:
    """The messages of a history that a prompt does not hold as they were said, but for those that nobody is to see again."""
    whole = {entry.tip for entry in transcript.entries if entry.origin == "original"}
    return frozenset(tips) - whole - forgotten


def choose(
    s: Situation, transcript: Transcript, query: Query, postings: Postings, bounds: Bounds, nearness: Nearness = NOT_COMPARED
) -> list[Passage]:
    """The passages of what is gone from a prompt that fit the query best, oldest first; [] where nothing fits well enough."""
    at = {tip: n for n, tip in enumerate(s.reconciled.tips)}
    kept_out = s.forgotten | expired(s.reconciled.history, s.reconciled.tips)
    lost = {at[tip] for tip in gone(transcript, s.reconciled.tips, kept_out if query.looks_back else kept_out | s.cleared)}
    ranking = _ranking(query, postings, nearness, at, lost)
    shown = "\n".join(text_of(entry.message) for entry in transcript.entries if entry.origin != "original")
    unseen = cache(lambda spot: chunk if (chunk := _chunk(s, spot)) and chunk.text not in shown else None)
    best = next((fit for fit, spot in ranking.by_fit() if unseen(spot)), None)
    if best is None or best < bounds.min_score:
        return []
    room, least = min(bounds.max_tokens, s.budget.with_recalled - transcript.tokens - FRAME_TOKENS), -1.0
    if not query.asks:
        if best < LEAST_MATCH or not _is_known(query, postings):
            return []
        room, least = min(room, LITTLE_TOKENS, s.budget.trigger - transcript.tokens - FRAME_TOKENS), NEAR_BEST * best
    fitting = (chunk for spot in ranking.order if ranking.fit(spot) >= least and (chunk := unseen(spot)))
    chosen = fill(fitting, lambda chunk: s.count_text(chunk.text) + LINE_TOKENS, room, bounds.top_k)
    chosen.sort(key=lambda chunk: (at[chunk.tip], chunk.part))
    return [Passage((chunk.tip, chunk.part), chunk.role, chunk.text) for chunk in chosen]


def _ranking(query: Query, postings: Postings, nearness: Nearness, at: Mapping[Tip, int], lost: Collection[int]) -> Ranking:
    """The pieces of lost messages that fit best: by words, by meaning, or by both. What asks nothing gets what its words find."""
    words = _ranked(_spots(scores(postings, query.terms), at), lost)
    whole = most(postings, query.terms) or 1.0
    by_words = Ranking(list(words), {spot: score / whole for spot, score in words.items()})
    cosines = _spots(nearness.cosines, at)
    if not cosines or not (query.asks or nearness.alone):
        return by_words
    by_meaning = Ranking(list(_ranked(cosines, lost)), cosines)
    ranking = by_meaning if nearness.alone else fused(by_words, by_meaning)
    named = _spots(dict.fromkeys(_named(query, postings), 1.0), at)
    return ranking._replace(order=sorted(ranking.order, key=lambda spot: spot not in named))


def _named(query: Query, postings: Postings) -> set[Place]:
    """The pieces that hold an exact value of the request's which few pieces hold: they count before words and meaning (003-57)."""
    exact = (held for term, held in postings.by_term.items() if term.startswith(MARK) and term in query.terms)
    return {posting.place for held in exact if len(held) <= NAMED_MOST for posting in held}


def _spots(scored: Mapping[Place, float], at: Mapping[Tip, int]) -> dict[Spot, float]:
    """Scores of the pieces of this history; summaries are none."""
    return {(at[tip], part): score for (tip, part), score in scored.items() if tip in at and part >= 0}


def _ranked(own: Mapping[Spot, float], lost: Collection[int]) -> dict[Spot, float]:
    """The best of the spots in lost messages, the best first."""
    best = sorted((-score, spot) for spot, score in with_what_was_before(own).items() if spot[0] in lost)[:RANKED_MOST]
    return {spot: -score for score, spot in best}


def _is_known(query: Query, postings: Postings) -> bool:
    """Whether what was said holds enough of the terms to be about the same."""
    return len(postings.by_term) >= LEAST_KNOWN * len(query.terms)


def _chunk(s: Situation, place: Spot) -> Chunk | None:
    at, part = place
    chunks = chunks_at(s.reconciled.history[at], s.reconciled.tips[at], s.memo)
    return chunks[part] if part < len(chunks) else None


def chunks_at(message: Message, tip: Tip, memo: Memo) -> tuple[Chunk, ...]:
    """The chunks of a message, worked out once."""
    [chunks] = memo(CHUNKS, [message], lambda one: chunks_of(one, ""))
    return tuple(chunk._replace(tip=tip) for chunk in chunks)


def with_what_was_before(own: Mapping[Spot, float]) -> dict[Spot, float]:
    """The scores of pieces by message and part, each with its share of that of the part before it and of the best of the messages before."""
    best: dict[int, float] = {}
    for (at, _), score in own.items():
        best[at] = max(best.get(at, 0.0), score)
    found: dict[Spot, float] = {}
    for at, part in own.keys() | {(at + ahead, 0) for at in best for ahead in (1, 2)}:
        before, earlier = (own.get((at, part - 1), 0.0), best.get(at - 1, 0.0)) if part else (best.get(at - 1, 0.0), best.get(at - 2, 0.0))
        found[at, part] = BESIDE[0] * own.get((at, part), 0.0) + BESIDE[1] * before + BESIDE[2] * earlier
    return found


def fill(ranked: Iterable[T], cost: Callable[[T], int], most_tokens: int, top_k: int) -> list[T]:
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
    return Postings(by_term, pieces, length / max(pieces, 1), {**one.quoted, **other.quoted})


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
