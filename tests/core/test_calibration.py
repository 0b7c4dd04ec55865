from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.calibration import CAREFUL_FLOOR, HIGHEST, KEPT_REPORTS, LOWEST, Calibration, observe


def seen(*reports: tuple[int, int]) -> Calibration:
    return reduce(lambda state, report: observe(state, *report), reports, Calibration())


def growing(ratio: float, turns: int, start: int = 1_000, step: int = 300) -> list[tuple[int, int]]:
    """A conversation that grows by `step` tokens a turn, at an upstream whose tokenizer makes `ratio` times our tokens."""
    return [(start + n * step, round((start + n * step) * ratio)) for n in range(turns)]


IGNORED = [
    (150, 300, "a tiny prompt"),
    (0, 100, "nothing was sent"),
    (5_000, 10, "a mock's constant"),
    (5_000, 0, "no usage in fact"),
    (5_000, -1, "nonsense"),
    (600, 5_000, "the report of the prompt before the compaction (case 109)"),
    (5_000, 1_400, "only what was not cached"),
]


@pytest.mark.parametrize(("counted", "reported", "why"), IGNORED)
def test_a_report_that_can_tell_nothing_leaves_the_state(counted, reported, why):
    state = seen(*growing(1.17, 4))
    assert observe(state, counted, reported) is state, why


def test_without_reports_our_count_holds():
    assert Calibration().factor == 1.0


@pytest.mark.parametrize("ratio", [1.0, 1.17, 1.41, 2.13, 0.95, 0.9])
def test_a_steady_upstream_is_learned(ratio):
    state = seen(*growing(ratio, 6))
    assert state.factor == pytest.approx(ratio, abs=0.006)


def test_three_reports_raise_the_count_and_two_do_not():
    assert seen(*growing(2.13, 2)).factor == 1.0
    assert seen(*growing(2.13, 3)).factor == 2.13


@pytest.mark.parametrize("wild", [0.31, 0.5, 2.0, 3.9])
@pytest.mark.parametrize("before", [0, 1, 2, 6, 9])
def test_a_single_wild_report_does_not_matter(before, wild):
    steady = growing(1.0, before)
    assert seen(*steady, (9_000, round(9_000 * wild))).factor == seen(*steady).factor == 1.0


def test_two_wild_reports_among_steady_ones_do_not_matter():
    assert seen(*growing(1.2, 5), (9_000, 3_000), (10_000, 39_000)).factor == 1.2


def test_counts_shrink_by_fifteen_percent_at_most_until_five_reports_agree():
    assert seen(*growing(0.6, 4)).factor == CAREFUL_FLOOR
    assert seen(*growing(0.6, 5)).factor == 0.6


def test_low_reports_that_do_not_agree_do_not_shrink_further():
    erratic = [(5_000 + 400 * n, round((5_000 + 400 * n) * ratio)) for n, ratio in enumerate((0.8, 0.4, 0.7, 0.35, 0.6, 0.5))]
    assert seen(*erratic).factor == CAREFUL_FLOOR


def test_one_high_report_among_low_ones_stops_the_shrinking():
    low = growing(0.6, 6)
    assert seen(*low, (9_000, 9_000)).factor == CAREFUL_FLOOR


def test_a_truncating_server_that_reports_one_value_teaches_nothing():
    reports = [(10_000 + 300 * n, 8_192 - n % 3) for n in range(20)]
    assert seen(*reports).factor >= CAREFUL_FLOOR
    assert len(seen(*reports).reports) <= 2


def test_a_mock_with_a_plausible_constant_does_not_move_the_count():
    assert seen(*[(counted, 1_000) for counted in (300, 400, 600, 900, 1_200, 2_000, 3_000)]).factor == 1.0


def test_the_same_request_sent_again_is_no_new_evidence():
    assert seen(*[(1_000, 2_130)] * 10).factor == 1.0


def test_an_upstream_that_changes_is_followed():
    before = growing(2.0, 9)
    assert seen(*before).factor == 2.0
    assert seen(*before, *growing(1.0, 9, start=40_000)).factor == 1.0


@given(st.lists(st.tuples(st.integers(0, 300_000), st.integers(-10, 400_000)), max_size=30))
def test_whatever_is_reported_the_state_stays_small_and_the_factor_bounded(reports):
    state = seen(*reports)
    assert len(state.reports) <= KEPT_REPORTS
    assert LOWEST <= state.factor <= HIGHEST
    assert all(one.counted >= 200 for one in state.reports)


@given(st.floats(0.9, 3.8), st.integers(200, 50_000), st.integers(1, 5_000))
def test_any_steady_ratio_is_found_within_nine_turns(ratio, start, step):
    state = seen(*growing(ratio, 9, start, step))
    assert state.factor == pytest.approx(ratio, abs=0.011)
