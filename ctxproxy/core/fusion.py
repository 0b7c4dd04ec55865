"""Pieces of text ranked by words and by meaning, and both rankings made one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ctxproxy.core.text_index import Place

Spot: TypeAlias = tuple[int, int]
"""Which message of a history, which part of it."""
RANK_CONSTANT = 60
"""Of reciprocal rank fusion, as its authors have it (Cormack, Clarke and Büttcher, SIGIR 2009)."""
WORDS_WEIGHT, MEANING_WEIGHT = 1.0, 0.5
"""A rank by words beside one by meaning. Measured on the quality conversations: an equal share finds less, and 0.3 to 0.5 are alike."""


class Nearness(NamedTuple):
    """How near pieces are in meaning to what is asked for (cosine, -1 to 1), those that are nearest; `alone`: words do not count beside it."""

    cosines: Mapping[Place, float]
    alone: bool = False


NOT_COMPARED = Nearness({})


class Ranking(NamedTuple):
    """Spots, the best first, and how well each fits (1: as well as one piece can)."""

    order: Sequence[Spot]
    fits: Mapping[Spot, float]

    def fit(self, spot: Spot) -> float:
        """How well a spot fits; 0 for one that nothing is known of."""
        return self.fits.get(spot, 0.0)

    def by_fit(self) -> list[tuple[float, Spot]]:
        """How well each spot fits, with the spot; what fits best first."""
        return sorted(((self.fit(spot), spot) for spot in self.order), reverse=True)


def fused(words: Ranking, meaning: Ranking) -> Ranking:
    """Both rankings as one, by the sum of reciprocal ranks; a spot fits as well as the better of them says."""
    totals: dict[Spot, float] = defaultdict(float)
    for weight, ranking in ((WORDS_WEIGHT, words), (MEANING_WEIGHT, meaning)):
        for rank, spot in enumerate(ranking.order, 1):
            totals[spot] += weight / (RANK_CONSTANT + rank)
    fits = {spot: max(words.fits.get(spot, 0.0), meaning.fits.get(spot, 0.0)) for spot in totals}
    return Ranking(sorted(totals, key=lambda spot: (-totals[spot], spot)), fits)
