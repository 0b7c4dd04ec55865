"""Two rankings made one."""

from __future__ import annotations

from ctxproxy.core.fusion import MEANING_WEIGHT, RANK_CONSTANT, WORDS_WEIGHT, Ranking, Spot, fused

A, B, C, D = (0, 0), (1, 0), (1, 1), (2, 0)


def order(words: list[Spot], meaning: list[Spot]) -> list[Spot]:
    return list(fused(Ranking(words, {}), Ranking(meaning, {})).order)


def test_what_both_rankings_find_stands_before_what_one_finds() -> None:
    assert order([A, B], [C, B]) == [B, A, C]


def test_the_first_by_words_stands_before_the_first_by_meaning() -> None:
    assert WORDS_WEIGHT > MEANING_WEIGHT
    assert order([A], [B]) == [A, B]
    assert order([B], [A]) == [B, A]


def test_a_rank_counts_by_its_reciprocal() -> None:
    near = [(n + 10, 0) for n in range(200)]
    far = order([*near, A], [A])
    place = far.index(A)
    ahead = [
        spot
        for rank, spot in enumerate(near, 1)
        if WORDS_WEIGHT / (RANK_CONSTANT + rank) > WORDS_WEIGHT / (RANK_CONSTANT + 201) + MEANING_WEIGHT / (RANK_CONSTANT + 1)
    ]
    assert place == len(ahead)


def test_equal_ones_stand_in_the_order_of_the_history() -> None:
    assert order([], [D, C, B]) == [D, C, B]
    assert order([D], [D]) == [D]
    assert fused(Ranking([], {}), Ranking([], {})) == Ranking([], {})


def test_a_spot_fits_as_well_as_the_better_ranking_says() -> None:
    assert fused(Ranking([A, C], {A: 0.7, C: 0.2}), Ranking([B, C], {B: 0.9, C: 0.4})).fits == {A: 0.7, B: 0.9, C: 0.4}
