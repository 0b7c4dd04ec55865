"""How complex a conversation is, and how many turns stay for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.complexity import complexity, entities, length_variance, topic_shift, window_turns


@pytest.mark.parametrize(("score", "turns"), [(0.0, 3), (0.49, 3), (0.5, 5), (0.65, 5), (0.8, 5), (0.81, 7), (1.0, 7)])
def test_the_bounds_of_the_window_belong_to_the_middle(score: float, turns: int) -> None:
    assert window_turns(score) == turns


def test_exact_values_make_it_complex() -> None:
    assert entities(["hello there", "how are you"]) == 0.0
    assert entities(["Order W-4711 to src/main.py"]) == 0.5
    assert entities(["W-4711 W-4712 W-4713 W-4714 W-4715"]) == 1.0


def test_lengths_that_differ_make_it_complex() -> None:
    assert length_variance(["four", "four"]) == 0.0
    assert length_variance(["", ""]) == 0.0
    assert length_variance(["a", "abc"]) == 0.5
    assert length_variance(["", "", "", "long " * 99]) == 1.0


def test_a_topic_that_changes_makes_it_complex() -> None:
    assert topic_shift(["paint the boat", "paint the boat please"]) == 0.0
    assert topic_shift(["paint the boat", "bake some bread"]) == 1.0
    assert topic_shift(["paint the boat", "sell the boat"]) == pytest.approx(1 / 3)
    assert topic_shift(["我想订机票", "订机票去上海"]) < 1.0
    assert topic_shift(["paint", "42"]) == topic_shift([]) == 0.0


def test_the_measures_count_four_three_and_three_tenths() -> None:
    assert complexity(["W-4711 W-4712 W-4713 W-4714"]) == pytest.approx(0.4)
    assert complexity(["a", "abc"]) == pytest.approx(0.15)
    assert complexity(["paint the boat!", "bake some bread"]) == pytest.approx(0.3)
    assert complexity([]) == 0.0


@given(st.lists(st.text(), max_size=7))
def test_it_lies_between_nothing_and_one(texts: list[str]) -> None:
    assert 0.0 <= complexity(texts) <= 1.0
