"""A summary without a model: the sentences that say most with least, in their own words and order.

Sentences are chosen greedily by what they add: rare words, names, numbers, paths and words of decision count, words that are already
there count little (budgeted maximum coverage, lazily evaluated). Deterministic, and about as fast as one pass over the text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from math import log

from ctxproxy.core.coverage import best_first
from ctxproxy.core.language import Language
from ctxproxy.core.memo import Memo, no_memo
from ctxproxy.core.messages import Message
from ctxproxy.core.passages import Bag, Pieces, Speaker, estimate, factor_of, lines_of, pieces_of, readable
from ctxproxy.core.sentences import UNIT_CHARS, units

CountText = Callable[[str], int]

ENOUGH = 0.02
"""Of the room: what may be left unused; to count a long text takes as long as to choose it."""
COUNTED_TOKENS = 4000
"""In a larger room each piece is counted: estimates are up to half off for code, and to rank and render so many in vain takes longer."""
JOIN_TOKENS = 1
"""A piece takes with what stands between it and the one before, about."""
MIN_UNIT_CHARS = 60
FEW = 0.1
"""Tokens for each piece there is: in more room than that so many are chosen that nearly all have to be weighed."""
ROUNDING = 1 + 1e-9
"""Sums of products come out differently in another order."""


def extract(
    messages: Sequence[Message],
    max_tokens: int,
    count_text: CountText,
    language: Language,
    known: Collection[str] = frozenset(),
    memo: Memo = no_memo,
) -> str:
    """The best sentences of the messages, but those that are `known`, in at most `max_tokens`, one line a speaker; "" if none has weight."""
    return _fitted(pieces_of(messages, language, _unit_chars(max_tokens), known, memo), max_tokens, count_text)


def best_of(text: str, max_tokens: int, count_text: CountText) -> str:
    """The best lines of a text that is no prose, JSON as plain lines, in at most `max_tokens`, in order."""
    lines = list(dict.fromkeys(units(readable(text), _unit_chars(max_tokens))))
    return _fitted(lines_of(lines, [0] * len(lines), prose=False), max_tokens, count_text)


def squeeze(text: str, max_tokens: int, count_text: CountText) -> str:
    """A text in at most `max_tokens`: whole if it fits, else its best lines and sentences in order."""
    if count_text(text) <= max_tokens:
        return text
    lines = [(number, sentence) for number, line in enumerate(text.splitlines()) for sentence in units(line, _unit_chars(max_tokens))]
    return _fitted(lines_of([line for _, line in lines], [number for number, _ in lines], prose=True), max_tokens, count_text)


def _unit_chars(max_tokens: int) -> int:
    """Pieces no longer than about a quarter of a small summary."""
    return min(UNIT_CHARS, max(MIN_UNIT_CHARS, max_tokens))


def _ranked(pieces: Pieces, max_tokens: int) -> Iterator[int]:
    """The indexes of pieces in the order in which they are worth their cost."""
    weights = _Weights(pieces.bags)
    if max_tokens > FEW * len(pieces.texts):
        return best_first(pieces.bags, weights.told(), pieces.prices)
    rarest = weights.of_rarest * ROUNDING
    return best_first(pieces.bags, weights, pieces.prices, [one * rarest for one in pieces.factors])


class _Weights(dict[str, float]):
    """What the words of pieces count, worked out when somebody asks: the rarer and the more telling, the more."""

    def __init__(self, bags: Sequence[Bag]) -> None:
        self._times = Counter(chain.from_iterable(bags))
        self._rarities = {seen: log((len(bags) + 1) / (seen + 0.5)) for seen in {1, *self._times.values()}}
        self.of_rarest = self._rarities[1]

    def told(self) -> dict[str, float]:
        """What all of them count."""
        return {word: self._rarities[seen] * factor_of(word) for word, seen in self._times.items()}

    def __missing__(self, word: str) -> float:
        weight = self[word] = self._rarities[self._times[word]] * factor_of(word)
        return weight


def _fitted(pieces: Pieces, max_tokens: int, count_text: CountText) -> str:
    """The longest beginning of the ranking that fits, or one nearly as long, in the original order; each try tells how long the next is."""
    counted = max_tokens > COUNTED_TOKENS
    ranking = _Ranking(pieces, max_tokens, (lambda text: count_text(text) + JOIN_TOKENS) if counted else estimate)
    aim = max_tokens * (1 - ENOUGH / (4 if counted else 2))
    least, over, best, room = 0, len(pieces.texts) + 1, "", aim
    while over - least > 1:
        order = ranking.first(room, least + 1, over - 1)
        if len(order) == least:
            break
        text = _rendered(pieces, sorted(order))
        if (size := count_text(text)) <= max_tokens:
            least, best = len(order), text
        else:
            over = len(order)
        if 0 <= max_tokens - size <= ENOUGH * max_tokens:
            break
        room = ranking.sums[len(order)] * aim / max(size, 1)
    return best


class _Ranking:
    """The ranking as far as it was asked for; `sums[n]` is what the first n pieces take, by `cost`."""

    def __init__(self, pieces: Pieces, max_tokens: int, cost: Callable[[str], float]) -> None:
        self._cost = cost
        self._texts = pieces.texts
        self._more = _ranked(pieces, max_tokens)
        self._order: list[int] = []
        self.sums = [0.0]

    def first(self, room: float, least: int, most: int) -> list[int]:
        """The best pieces that take at most `room`, but at least and at most so many; fewer where no more are of weight."""
        while len(self._order) < least or (len(self._order) < most and self.sums[-1] <= room):
            best = next(self._more, None)
            if best is None:
                break
            self._order.append(best)
            self.sums.append(self.sums[-1] + self._cost(self._texts[best]))
        return self._order[: min(max(bisect_right(self.sums, room) - 1, least), most)]


def _rendered(pieces: Pieces, places: Sequence[int]) -> str:
    """One line for each speaker; what was left out between two sentences is shown as "…", lines of a result stay lines."""
    out: list[str] = []
    before, owner, last = -2, -1, Speaker("", prose=True)
    for at in places:
        one = pieces.owners[at]
        speaker = last if one == owner else pieces.speaker(one)
        if one != owner and (speaker.label != last.label or not speaker.prose or not speaker.label):
            out.append(("\n" if out else "") + speaker.label)
        elif not speaker.prose:
            out.append("\n")
        else:
            out.append(" " if at == before + 1 else " … ")
        out.append(pieces.texts[at])
        before, owner, last = at, one, speaker
    return "".join(out)
