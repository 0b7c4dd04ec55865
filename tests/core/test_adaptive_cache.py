"""The cache that keeps what is used lately and often, within its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.adaptive_cache import MOST_USES, AdaptiveCache


def cache(max_bytes: int) -> AdaptiveCache[str, str]:
    return AdaptiveCache(max_bytes, len)


def test_what_was_put_is_there_and_what_was_not_is_not() -> None:
    kept = cache(10)
    kept.put("a", "xyz")
    assert (kept.get("a"), kept.get("b"), len(kept), kept.size_bytes) == ("xyz", None, 1, 3)
    kept.put("a", "z")
    assert (kept.get("a"), len(kept), kept.size_bytes) == ("z", 1, 1)
    kept.drop("a")
    kept.drop("a")
    assert (kept.get("a"), len(kept), kept.size_bytes) == (None, 0, 0)


def test_the_weight_is_seven_tenths_recency_and_three_tenths_frequency() -> None:
    kept = cache(100)
    for key in "abc":
        kept.put(key, key)
    for _ in range(3):
        kept.get("b")
    assert kept.weights() == pytest.approx({"a": 0.3 * 1 / 4, "b": 0.7 + 0.3, "c": 0.7 * 2 / 5 + 0.3 * 1 / 4})
    assert cache(1).weights() == {}


def test_what_was_used_often_outlives_what_came_a_little_later() -> None:
    kept = cache(4)
    kept.put("first", "x")
    kept.put("hot", "x")
    for _ in range(9):
        kept.get("hot")
    kept.put("cold", "x")
    kept.put("last", "x")
    kept.get("first")
    kept.put("new", "x")
    assert (kept.get("cold"), kept.get("hot")) == (None, "x")


def test_what_was_not_used_for_long_goes_however_often_it_once_was() -> None:
    kept = cache(3)
    kept.put("hot", "x")
    for _ in range(9):
        kept.get("hot")
    for n in range(12):
        kept.put(f"n{n % 4}", "x")
    assert kept.get("hot") is None


def test_of_values_used_alike_the_oldest_goes_first() -> None:
    kept = cache(3)
    for key in "abcd":
        kept.put(key, "x")
    assert [kept.get(key) for key in "abcd"] == [None, "x", "x", "x"]


def test_as_many_go_as_have_to_and_a_value_too_large_is_not_kept_at_all() -> None:
    kept = cache(6)
    for key in "abc":
        kept.put(key, "xx")
    kept.put("d", "xxxx")
    assert (kept.get("c"), kept.get("d"), len(kept)) == ("xx", "xxxx", 2)
    kept.put("d", "x" * 7)
    assert (kept.get("d"), kept.size_bytes) == (None, 2)


def test_the_value_that_room_is_made_for_stays() -> None:
    kept = cache(4)
    kept.put("small", "x")
    kept.put("often", "xx")
    for _ in range(20):
        kept.get("often")
    kept.put("small", "xxx")
    assert (kept.get("small"), kept.get("often")) == ("xxx", None)


def test_uses_are_halved_so_that_nothing_stays_hot_for_ever() -> None:
    kept = cache(10)
    kept.put("a", "x")
    kept.put("b", "x")
    for _ in range(MOST_USES * 2):
        kept.get("a")
    for _ in range(MOST_USES - 20):
        kept.get("b")
    assert kept.weights()["b"] > kept.weights()["a"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["get", "put", "drop"]), st.integers(0, 12)), max_size=60))
def test_it_never_holds_more_than_it_may_nor_anything_else_than_was_put(steps: list[tuple[str, str, int]]) -> None:
    kept, model = cache(20), dict[str, str]()
    for key, step, size in steps:
        if step == "put":
            model[key] = key * size
            kept.put(key, key * size)
            assert kept.get(key) == model[key]
        elif step == "drop":
            kept.drop(key)
            assert kept.get(key) is None
        else:
            assert kept.get(key) in (None, model.get(key))
        assert kept.size_bytes <= 20
        weights = kept.weights()
        assert all(0 <= weight <= 1 for weight in weights.values())
        assert kept.size_bytes == sum(len(model[key]) for key in weights)
