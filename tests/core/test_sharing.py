"""Grants and ratings as values."""

from __future__ import annotations

import pytest

from ctxproxy.core.sharing import RatingTotals


@pytest.mark.parametrize(("totals", "mean"), [(RatingTotals(), None), (RatingTotals(2, 7), 3.5), (RatingTotals(3, 10), 3.33)])
def test_the_mean_of_no_ratings_is_none(totals: RatingTotals, mean: float | None) -> None:
    assert totals.mean == mean
