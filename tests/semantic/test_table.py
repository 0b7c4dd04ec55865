"""Vectors in bytes, and the nearest of many."""

from __future__ import annotations

import math
import random

import pytest

from ctxproxy.core.text_index import Place

pytest.importorskip("wordllama", reason="the extra semantic is not installed; CTXPROXY_TEST_SERVICES=required installs it")

from ctxproxy.embedders.table import Table, packed


def directions(count: int, dimensions: int = 8) -> list[list[float]]:
    chance = random.Random(7)
    return [[chance.uniform(-1, 1) for _ in range(dimensions)] for _ in range(count)]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


def place(n: int) -> Place:
    return (f"{n:032x}", 0)


def test_the_nearest_are_found_with_their_cosines() -> None:
    asked, *rows = directions(3001, 64)
    table = Table()
    vectors = packed(rows)
    for at in range(0, len(rows), 700):
        table.add({place(n): vectors[n] for n in range(at, min(at + 700, len(rows)))})
    found = table.nearest(packed([asked])[0], 5)
    best = sorted(range(len(rows)), key=lambda n: -cosine(asked, rows[n]))[:5]
    assert found.keys() == {place(n) for n in best}
    assert all(found[place(n)] == pytest.approx(cosine(asked, rows[n]), abs=0.01) for n in best)
    assert len(table) == 3000
    assert table.size_bytes > 3000 * 64


def test_what_is_opposite_or_of_another_length_is_not_near() -> None:
    table = Table()
    assert table.nearest(b"\x01\x02", 5) == {}
    one, against, other = packed([[1.0, 0.5], [-1.0, -0.5]]) + packed([[1.0, 0.5, 0.0]])
    table.add({place(1): one, place(2): against, place(3): other})
    assert table.nearest(one, 5) == {place(1): pytest.approx(1.0)}
    assert table.nearest(other, 5) == {}
    table.add({place(2): one})
    assert table.nearest(one, 5).keys() == {place(1), place(2)}, "a newer vector counts"


def test_a_row_without_a_direction_is_empty() -> None:
    assert packed([[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [0.5, -1.0]]) == [b"", b"", b"", bytes([64, 129])]
    assert packed([]) == []
