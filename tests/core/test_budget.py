from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.budget import budget, reachable, reserve_tokens, share, tightened
from ctxproxy.core.policy import Policy

RESERVES = [
    # reserve_tokens, window, max_output, reserve
    ("auto", 128_000, None, 4_096),
    ("auto", 8_192, None, 2_048),  # a quarter of a small window
    ("auto", 128_000, 16_000, 16_000),  # what the request asks for
    ("auto", 8_192, 8_000, 4_096),  # never over half
    ("auto", 128_000, 0, 4_096),  # no number of tokens that a reply can have
    ("auto", 128_000, -1, 4_096),  # llama.cpp's "no bound"
    (1_000, 128_000, 16_000, 1_000),  # configured
    (0, 128_000, 16_000, 0),
    (100_000, 128_000, None, 64_000),
]


@pytest.mark.parametrize(("configured", "window", "max_output", "reserve"), RESERVES)
def test_the_reserve_is_what_is_asked_for_but_never_over_half_the_window(configured, window, max_output, reserve):
    assert reserve_tokens(Policy(reserve_tokens=configured), window, max_output) == reserve


PROMPTS = [
    # max_tokens, pre_rot, window, max_output, prompt budget
    ("auto", 150_000, 128_000, None, 123_904),
    ("auto", 150_000, 1_000_000, None, 150_000),  # before quality falls off
    (600, 150_000, 128_000, None, 600),
    (200_000, 150_000, 1_000_000, None, 200_000),  # explicit: not bound by pre_rot
    (200_000, 150_000, 128_000, 8_000, 120_000),  # explicit, yet the window is what it is
]


@pytest.mark.parametrize(("max_tokens", "pre_rot", "window", "max_output", "prompt"), PROMPTS)
def test_the_prompt_budget_is_the_smaller_of_what_is_wanted_and_what_the_window_leaves(max_tokens, pre_rot, window, max_output, prompt):
    assert budget(Policy(max_tokens=max_tokens, pre_rot_tokens=pre_rot), window, max_output, 0).prompt_tokens == prompt


def test_shares_are_of_what_the_fixed_part_leaves():
    one = budget(Policy(max_tokens=10_000), 128_000, None, 2_000)
    assert (one.window, one.reserve, one.prompt_tokens, one.fixed, one.limit) == (128_000, 4_096, 10_000, 2_000, 8_000)
    assert (one.trigger, one.summarize, one.target, one.background) == (6_400, 7_600, 4_400, 5_600)


@pytest.mark.parametrize(("max_output", "target"), [(None, 550), (450, 550), (600, 400), (750, 250), (751, 550), (5_000, 550)])
def test_compaction_leaves_room_for_the_output_too_where_enough_is_left_beside_it(max_output, target):
    assert budget(Policy(max_tokens=1_000), 128_000, max_output, 0).target == target


@pytest.mark.parametrize(("window", "max_output", "tokens"), [(1_000, None, 750), (1_000, 600, 400), (1_000, 900, 500), (128_000, 600, 1_000)])
def test_what_is_recalled_leaves_the_output_its_place_in_the_window_unless_that_is_most_of_it(window, max_output, tokens):
    assert budget(Policy(max_tokens=1_000), window, max_output, 0).with_recalled == tokens


def test_a_fixed_part_over_the_budget_leaves_nothing_and_never_less():
    one = budget(Policy(max_tokens=1_000), 128_000, None, 5_000)
    assert (one.limit, one.trigger, one.summarize, one.target, one.background) == (0, 0, 0, 0, 0)
    assert one.prompt_tokens == 1_000


def test_target_and_background_never_lie_above_the_trigger():
    one = budget(Policy(max_tokens=1_000, compact_at=0.4, target=0.9), 128_000, None, 0)
    assert one.trigger == one.target == one.background == 400


def test_binary_fractions_are_forgiven():
    assert share(100, 0.29) == 29
    assert share(1_000, 0.55) == 550
    assert share(99, 0.5) == 49


@pytest.mark.parametrize(
    ("kept", "target", "why"),
    [
        (0, 5_500, "nothing has to stay"),
        (2_000, 2_000 + 4_400, "the target's share of all else"),
        (7_000, 7_000 + 1_650, "though what has to stay is over the target itself"),
        (10_000, 5_500, "what has to stay fills the limit: there is nothing to reach"),
        (12_000, 5_500, "or is over it"),
    ],
)
def test_the_target_leaves_its_share_beside_what_has_to_stay(kept, target, why):
    assert reachable(budget(Policy(max_tokens=10_000), 128_000, None, 0), kept) == target, why


@given(st.integers(0, 100_000), st.integers(0, 100_000))
def test_a_reachable_target_is_never_under_the_target_nor_over_the_limit(limit, kept):
    one = budget(Policy(max_tokens=limit or 1), 1_000_000, None, 0)
    assert one.target <= reachable(one, kept) <= one.limit


def test_a_tightened_budget_keeps_its_proportions():
    old = budget(Policy(max_tokens=10_000), 128_000, None, 2_000)
    new = tightened(old, 6_000)
    assert (new.prompt_tokens, new.limit, new.trigger, new.summarize, new.target, new.background) == (6_000, 4_000, 3_200, 3_800, 2_200, 2_800)
    assert (new.window, new.reserve, new.fixed) == (old.window, old.reserve, old.fixed)


def test_a_budget_is_never_widened_by_tightening():
    old = budget(Policy(max_tokens=10_000), 128_000, None, 2_000)
    assert tightened(old, 50_000) == old


def test_tightening_below_the_fixed_part_leaves_nothing():
    old = budget(Policy(max_tokens=10_000), 128_000, None, 2_000)
    assert tightened(old, 1_500).limit == tightened(old, -5).limit == 0
    assert tightened(tightened(old, 0), 0).trigger == 0


@given(
    st.integers(0, 20_000_000),
    st.one_of(st.none(), st.integers(-5, 10_000_000)),
    st.integers(0, 1_000_000),
    st.one_of(st.just("auto"), st.integers(1, 10_000_000)),
    st.one_of(st.just("auto"), st.integers(0, 10_000_000)),
    st.integers(-10, 10_000_000),
)
def test_a_budget_fits_its_window_and_is_in_order(window, max_output, fixed, max_tokens, reserve, tight):
    old = budget(Policy(max_tokens=max_tokens, reserve_tokens=reserve), window, max_output, fixed)
    for one in (old, tightened(old, tight)):
        assert 0 <= one.target <= one.background <= one.trigger <= one.summarize <= one.limit <= one.prompt_tokens
        assert one.prompt_tokens + one.reserve <= window
        assert 0 <= one.with_recalled <= one.limit
        assert one.limit == 0 or one.limit + one.fixed == one.prompt_tokens
    assert tightened(old, tight).limit <= old.limit
