"""The piece that adds most for its price comes first, and it never takes long."""

from __future__ import annotations

from ctxproxy.core.coverage import COVERED, MOST_RECOUNTS, best_first


class Counted(dict[str, float]):
    """Weights that count how often one is looked at."""

    looked = 0

    def __getitem__(self, word: str) -> float:
        self.looked += 1
        return super().__getitem__(word)


def test_what_is_said_already_counts_little_and_what_costs_less_comes_first() -> None:
    bags = [("a", "b"), ("a",), ("c",), ("d",)]
    weights = {"a": 4.0, "b": 2.0, "c": 3.0, "d": 2.0}
    assert list(best_first(bags, weights, [1.0, 1.0, 1.0, 1.0])) == [0, 2, 3, 1]
    assert weights["a"] == 4.0 * COVERED * COVERED
    assert list(best_first([("c",), ("d",)], {"c": 3.0, "d": 2.0}, [2.0, 1.0])) == [1, 0]


def test_what_is_worth_nothing_never_comes() -> None:
    assert list(best_first([("a",), (), ("b",)], {"a": 0.0, "b": 1.0}, [1.0, 1.0, 1.0])) == [2]


def test_the_same_words_again_and_again_are_not_weighed_again_and_again() -> None:
    words = tuple("abcdefgh")
    bags = [words[n % 8 :] + words[: n % 8] for n in range(400)]
    weights = Counted(zip(words, range(1, 9), strict=True))
    found = list(best_first(bags, weights, [1.0 + n / 400 for n in range(400)]))
    assert sorted(found) == list(range(400))
    assert found[0] == 0
    assert weights.looked <= len(bags) * len(words) * (MOST_RECOUNTS + 3)


def test_what_was_said_so_often_that_it_counts_nothing_comes_no_more() -> None:
    found = list(best_first([("a",)] * 600, {"a": 1.0}, [1.0] * 600))
    assert 400 < len(found) < 600
    assert len(set(found)) == len(found)
