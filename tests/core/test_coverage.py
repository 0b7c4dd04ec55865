"""The piece that adds most for its price comes first, and it never takes long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from ctxproxy.core.coverage import COVERED, MOST_RECOUNTS, best_first


class Watched:
    """A bag that notes when it is weighed."""

    def __init__(self, words: Sequence[str], weighed: list[str]) -> None:
        self._words = words
        self._weighed = weighed

    def __iter__(self) -> Iterator[str]:
        self._weighed.append(self._words[0])
        return iter(self._words)


def test_what_is_said_already_counts_little_and_what_costs_less_comes_first() -> None:
    bags = [("a", "b"), ("a",), ("c",), ("d",)]
    weights = {"a": 4.0, "b": 2.0, "c": 3.0, "d": 2.0}
    assert list(best_first(bags, weights, [1.0, 1.0, 1.0, 1.0])) == [0, 2, 3, 1]
    assert list(best_first([("a",), ("a", "c"), ("d",)], {"a": 4.0, "c": 0.1, "d": 4.0 * COVERED}, [1.0, 1.0, 1.0])) == [1, 0, 2]
    assert list(best_first([("c",), ("d",)], {"c": 3.0, "d": 2.0}, [2.0, 1.0])) == [1, 0]


def test_what_is_worth_nothing_never_comes() -> None:
    assert list(best_first([("a",), (), ("b",)], {"a": 0.0, "b": 1.0}, [1.0, 1.0, 1.0])) == [2]


def test_the_same_words_again_and_again_are_not_weighed_again_and_again() -> None:
    words = tuple("abcdefgh")
    weighed: list[str] = []
    bags = [Watched(words[n % 8 :] + words[: n % 8], weighed) for n in range(400)]
    weights = {word: float(n) for n, word in enumerate(words, 1)}
    found = list(best_first(bags, weights, [1.0 + n / 400 for n in range(400)]))
    assert sorted(found) == list(range(400))
    assert found[0] == 0
    assert len(weighed) <= len(bags) * (MOST_RECOUNTS + 3)


@pytest.mark.parametrize("slack", [1.0, 1.3, 5.0])
def test_what_each_is_worth_at_most_changes_no_order_and_spares_weighing(slack: float) -> None:
    names = "abcdefghijklmnopqrstuvwxyz"
    bags = [tuple(dict.fromkeys(names[n * step % 26] for step in range(1, 2 + n % 5))) for n in range(300)]
    weights, prices = {name: 1.0 + at * at % 7 for at, name in enumerate(names)}, [1.0 + n * n % 11 for n in range(300)]
    most = [slack * (1 + n % 3) * sum(weights[word] for word in bag) / price for n, (bag, price) in enumerate(zip(bags, prices, strict=True))]
    assert list(best_first(bags, weights, prices, most)) == list(best_first(bags, weights, prices))
    weighed: list[str] = []
    assert next(best_first([Watched(bag, weighed) for bag in bags], weights, prices, most)) == next(best_first(bags, weights, prices))
    assert len(weighed) < len(bags)


def test_what_was_said_so_often_that_it_counts_nothing_comes_no_more() -> None:
    found = list(best_first([("a",)] * 600, {"a": 1.0}, [1.0] * 600))
    assert 400 < len(found) < 600
    assert len(set(found)) == len(found)
