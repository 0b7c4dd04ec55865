from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.arms import arm_of
from ctxproxy.core.records import SessionKey

HALVES = (("a", 50.0), ("b", 50.0))


def keys(count: int) -> list[SessionKey]:
    return [SessionKey(f"{n % 7:032x}", f"session-{n}") for n in range(count)]


def shares(arms: tuple[tuple[str, float], ...], experiment: str = "one") -> dict[str, float]:
    drawn = Counter(arm_of(experiment, key, arms) for key in keys(10_000))
    return {name: 100 * number / 10_000 for name, number in drawn.items()}


@pytest.mark.parametrize(
    "arms",
    [
        HALVES,
        (("a", 10.0), ("b", 90.0)),
        (("a", 33.3), ("b", 33.3), ("c", 33.4)),
        (("a", 5.0), ("b", 5.0)),
        (("only", 100.0),),
    ],
)
def test_each_arm_gets_its_share_of_ten_thousand_sessions_within_three_points(arms: tuple[tuple[str, float], ...]) -> None:
    drawn = shares(arms)
    rest = 100 - sum(share for _, share in arms)
    expected = {**dict(arms), **({"": rest} if rest > 1e-9 else {})}
    assert drawn.keys() == expected.keys()
    assert all(abs(drawn[name] - share) <= 3 for name, share in expected.items())


def test_a_session_keeps_the_arm_that_it_has_today() -> None:
    assert [arm_of("one", key, HALVES) for key in keys(12)] == ["a", "a", "b", "b", "b", "b", "a", "b", "b", "b", "b", "b"]


def test_without_arms_there_is_none() -> None:
    assert arm_of("one", keys(1)[0], ()) == ""


def test_another_experiment_draws_anew_and_independently() -> None:
    both = Counter((arm_of("one", key, HALVES), arm_of("two", key, HALVES)) for key in keys(10_000))
    assert all(abs(number - 2_500) <= 300 for number in both.values())
    assert len(both) == 4


def test_two_tenants_sessions_of_one_name_are_drawn_apart() -> None:
    drawn = {arm_of("one", SessionKey(f"{n:032x}", "same"), HALVES) for n in range(20)}
    assert drawn == {"a", "b"}


@given(name=st.text(max_size=20), tenant=st.text(max_size=8), experiment=st.text(max_size=8), share=st.floats(0.1, 60.0), more=st.floats(0.0, 20.0))
def test_a_new_last_arm_or_one_that_grows_takes_sessions_only_from_the_rest(
    name: str, tenant: str, experiment: str, share: float, more: float
) -> None:
    key = SessionKey(tenant, name)
    before = arm_of(experiment, key, (("a", 20.0), ("b", share)))
    after = arm_of(experiment, key, (("a", 20.0), ("b", share + more), ("c", 0.1)))
    assert after == before or before == ""
