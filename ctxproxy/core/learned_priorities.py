"""Priorities that are learned (001-80): what each kind of message in a prompt came to be quoted by the answer, and the weights that fit that.

Logged are counts by features, no text. Rules and the user's wishes are obeyed rather than quoted, so their weights are never lowered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import exp
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ctxproxy.core.messages import text_of
from ctxproxy.core.priorities import BONUSES, KEYWORDS, SCORES, Bonus, Features, Kind, features, score
from ctxproxy.core.quoting import heard, quotes, telling
from ctxproxy.core.transcript import Transcript

LEARNED: tuple[Kind, ...] = ("key_result", "reasoning", "user", "result", "assistant", "small_talk")
"""The classes between which there is a choice; the others stay by their place."""
NEVER_LOWERED: tuple[str, ...] = ("user", "preference", "rule")
NEWEST = 5
"""Groups that `priority_window` keeps anyway (`min_recent`): whether they are quoted decides nothing."""
FIFTHS = 5
MOST_GROUPS = 200
"""Of one prompt: of more, every second, third … is looked at."""
POINT = 0.4
"""What one point of a score adds to the logarithm of the odds of being quoted, as the defaults are read."""
PRIOR = 20.0
"""How firmly a weight stays with its default: about a hundred outcomes move it."""
LEAST = 50
"""Groups that were quoted, and as many that were not: fewer teach nothing."""
SWEEPS, CLOSE = 400, 1e-6
LONGEST_STEP = 2.0
SCORE_BOUNDS, BONUS_BOUNDS = (0.5, 8.9), (-2.0, 2.5)
"""Below a summary and above what the client lets go, whatever was learned."""


class Cell(NamedTuple):
    """Features that groups have in common."""

    kind: Kind
    wish: Literal["", "preference", "rule"]
    has_keyword: bool
    fifth: int
    """Of the prompt: 0 is its oldest."""

    @property
    def features(self) -> Features:
        return Features(self.kind, self.wish, self.has_keyword, (self.fifth + 0.5) / FIFTHS)


class Tally(NamedTuple):
    """How many groups were in prompts, and how many of them their answers quoted."""

    seen: int
    quoted: int


Tallies: TypeAlias = Mapping[Cell, Tally]


class Learned(NamedTuple):
    """Weights as `priority_window` takes them, what they were learned from, and how well each set orders that: the share of pairs of a
    quoted and an unquoted group in which the quoted one is worth more.
    """

    scores: Mapping[Kind, float]
    bonuses: Mapping[Bonus, float]
    total: Tally
    before: float
    after: float


def outcomes(transcript: Transcript, goal_tokens: int, answer: str, keywords: Collection[str] = KEYWORDS) -> dict[Cell, Tally]:
    """What an answer made of the older groups that were in its prompt as they were said."""
    found: dict[Cell, Tally] = {}
    older = list(zip(transcript.groups[:-NEWEST], features(transcript, goal_tokens, keywords), strict=False))
    looked_at = [(one, transcript.entries[group.start : group.end]) for group, one in older[:: len(older) // MOST_GROUPS + 1]]
    texts = ["\n".join(text_of(entry.message) for entry in entries) for _, entries in looked_at]
    said = telling(heard(answer, text_of(transcript.entries[transcript.last_user].message)), texts)
    for (one, entries), text in zip(looked_at, texts, strict=True):
        if one.kind in LEARNED and all(entry.origin == "original" for entry in entries):
            quoted = quotes(said, text)
            cell = Cell(one.kind, one.wish, one.has_keyword, int(one.recency * FIFTHS))
            found = added(found, {cell: Tally(1, int(quoted))})
    return found


def added(one: Tallies, other: Tallies) -> dict[Cell, Tally]:
    """Both counts together."""
    found = dict(one)
    for cell, tally in other.items():
        had = found.get(cell, Tally(0, 0))
        found[cell] = Tally(had.seen + tally.seen, had.quoted + tally.quoted)
    return found


def as_line(tallies: Tallies) -> bytes:
    """Counts as a line of the log."""
    return msgspec.json.encode([(*cell, *tally) for cell, tally in tallies.items()]) + b"\n"


def read_lines(lines: Iterable[bytes]) -> dict[Cell, Tally]:
    """The counts of a log together; a line that was cut short is passed over."""
    found: dict[Cell, Tally] = {}
    for line in lines:
        try:
            rows = msgspec.json.decode(line, type=list[tuple[Kind, Literal["", "preference", "rule"], bool, int, int, int]])
        except (msgspec.ValidationError, msgspec.DecodeError):
            continue
        found = added(found, {Cell(*row[:4]): Tally(*row[4:]) for row in rows})
    return found


def fit(tallies: Tallies) -> Learned | None:
    """The weights that tell best what is quoted, near their defaults where little is known; None where there is too little to learn from."""
    total = Tally(sum(one.seen for one in tallies.values()), sum(one.quoted for one in tallies.values()))
    if total.quoted < LEAST or total.seen - total.quoted < LEAST:
        return None
    found = _fitted(tallies)
    scores: dict[Kind, float] = {kind: _bounded(kind, found[kind], SCORES[kind], SCORE_BOUNDS) for kind in LEARNED}
    bonuses: dict[Bonus, float] = {name: _bounded(name, found[name], default, BONUS_BOUNDS) for name, default in BONUSES.items()}
    return Learned(scores, bonuses, total, _agreement(tallies, SCORES, BONUSES), _agreement(tallies, scores, bonuses))


def _bounded(name: str, weight: float, default: float, bounds: tuple[float, float]) -> float:
    points = weight / POINT
    return round(max(bounds[0], min(bounds[1], max(points, default) if name in NEVER_LOWERED else points)), 2)


def _fitted(tallies: Tallies) -> dict[str, float]:
    """Logistic regression towards the defaults, one weight after the other until none moves any more."""
    middle: dict[str, float] = {"": 0.0}
    middle |= {kind: SCORES[kind] * POINT for kind in LEARNED} | {name: bonus * POINT for name, bonus in BONUSES.items()}
    weights = dict(middle)
    cells = [(_parts(cell), tally) for cell, tally in tallies.items()]
    sums = [sum(weights[name] * share for name, share in parts.items()) for parts, _ in cells]
    moved, sweeps = LONGEST_STEP, 0
    while moved >= CLOSE and sweeps < SWEEPS:
        moved, sweeps = 0.0, sweeps + 1
        for name, weight in weights.items():
            step = _step(name, weight - middle[name], cells, sums)
            weights[name] = weight + step
            sums = [had + step * parts.get(name, 0.0) for had, (parts, _) in zip(sums, cells, strict=True)]
            moved = max(moved, abs(step))
    return weights


def _parts(cell: Cell) -> dict[str, float]:
    """The weights that a cell's score is made of, and with what share; "" is the same for all."""
    parts: dict[str, float] = {"": 1.0, cell.kind: 1.0, "recency": cell.features.recency}
    if cell.has_keyword:
        parts["keyword"] = 1.0
    if cell.wish:
        parts[cell.wish] = 1.0
    return parts


def _step(name: str, away: float, cells: Sequence[tuple[Mapping[str, float], Tally]], sums: Sequence[float]) -> float:
    """Newton's step for one weight, which is so far away from its default; what is the same for all has none to stay with."""
    curve = PRIOR if name else CLOSE
    slope = -curve * away
    for (parts, tally), total in zip(cells, sums, strict=True):
        share = parts.get(name, 0.0)
        odds = 1 / (1 + exp(-max(-30.0, min(30.0, total))))
        slope += share * (tally.quoted - tally.seen * odds)
        curve += share * share * tally.seen * odds * (1 - odds)
    return max(-LONGEST_STEP, min(LONGEST_STEP, slope / curve))


def _agreement(tallies: Tallies, scores: Mapping[Kind, float], bonuses: Mapping[Bonus, float]) -> float:
    worth = [(score(cell.features, scores, bonuses), tally) for cell, tally in tallies.items()]
    right = pairs = 0.0
    for high, quoted in worth:
        for low, other in worth:
            count = quoted.quoted * (other.seen - other.quoted)
            pairs += count
            right += count * (1.0 if high > low else 0.5 if high == low else 0.0)
    return right / pairs
