"""The truth table of the trigger language."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctxproxy.core.triggers import Clause, met

TRUTH: list[tuple[list[dict[str, Any]], int, int, bool]] = [
    ([], 10**9, 10**9, False),
    ([{"tokens": 4000}], 3999, 99, False),
    ([{"tokens": 4000}], 4000, 1, True),
    ([{"messages": 10}], 10**9, 9, False),
    ([{"messages": 10}], 1, 10, True),
    ([{"fraction": 0.8}], 7999, 99, False),
    ([{"fraction": 0.8}], 8000, 1, True),
    ([{"tokens": 4000, "messages": 10}], 4000, 9, False),
    ([{"tokens": 4000, "messages": 10}], 3999, 10, False),
    ([{"tokens": 4000, "messages": 10}], 4000, 10, True),
    ([{"tokens": 4000, "messages": 10, "fraction": 0.8}], 7999, 10, False),
    ([{"tokens": 4000, "messages": 10, "fraction": 0.8}], 8000, 10, True),
    ([{"tokens": 4000, "messages": 10}, {"fraction": 0.8}], 8000, 9, True),
    ([{"tokens": 4000, "messages": 10}, {"fraction": 0.8}], 4000, 10, True),
    ([{"tokens": 4000, "messages": 10}, {"fraction": 0.8}], 7999, 9, False),
    ([{"tokens": 9000}, {"messages": 10}], 1, 10, True),
    ([{"fraction": 0.00001}], 0, 0, False),
]


@pytest.mark.parametrize(("when", "tokens", "messages", "holds"), TRUTH)
def test_all_thresholds_of_one_clause_have_to_be_reached(when: list[dict[str, Any]], tokens: int, messages: int, holds: bool) -> None:
    assert met(msgspec.convert(when, tuple[Clause, ...]), tokens, messages, 10_000) is holds


@pytest.mark.parametrize("clause", [{}, {"tokens": 0}, {"fraction": 1.5}, {"turns": 3}])
def test_a_clause_without_a_threshold_is_refused(clause: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(clause, Clause)
