"""Each row of the tables decides a recorded body of its own."""

from __future__ import annotations

import pytest

from ctxproxy.core.overflow import classify
from ctxproxy.core.overflow_signs import CODES, OVERFLOWS
from ctxproxy.core.overflow_vetoes import CAPS, FIELD_CODES, VETOES
from ctxproxy.core.overflow_wording import Sign
from tests.core.overflow_samples import ROW_SAMPLES

ROWS = (*VETOES, *CAPS, *OVERFLOWS, *CODES, *FIELD_CODES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_row_has_a_sample_that_it_decides(row: Sign) -> None:
    status, body = ROW_SAMPLES[row.name]
    verdict = classify(status, body.encode())
    assert verdict.sign == row.name
    assert verdict.kind == row.kind


def test_names_of_rows_are_unique_and_no_sample_is_left_over() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert {name for name in ROW_SAMPLES if not name.startswith("status-")} == set(names)


@pytest.mark.parametrize("name", ["status-413-empty", "status-413", "status-429"])
def test_a_status_alone_decides_where_nothing_is_said(name: str) -> None:
    status, body = ROW_SAMPLES[name]
    assert classify(status, body.encode()).sign == name
