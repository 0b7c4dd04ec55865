"""JSON as plain lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from ctxproxy.core.flatten import MOST_CHARS, MOST_DEPTH, flattened
from tests.core.histories import json_values, texts

FLATTENED = [
    ({"path": "a.py", "line": 3, "ok": True, "gone": False, "zero": 0}, "path: a.py, line: 3, ok: true, gone: false, zero: 0", "plain values"),
    ({"a": None, "b": "", "c": {}, "d": [], "e": 1}, "e: 1", "empty values are left out"),
    ({"a": {"b": {"c": 1}}, "d": 2}, "d: 2\nb: c: 1", "what lies deeper stands on a line of its own, under the name next above"),
    ({"ids": [1, 2, 3], "tags": ["x", "y"]}, "ids: 1, 2, 3\ntags: x, y", "lists of plain values"),
    ([{"id": 1, "n": "x"}, {"id": 2, "n": "y"}], "id: 1, n: x\nid: 2, n: y", "rows"),
    ({"rows": [{"id": 1}, {"id": 2}]}, "rows: id: 1\nrows: id: 2", "rows have the name of their list"),
    ({"rows": [1, {"id": 2}, [3]]}, "rows: 1\nrows: id: 2\nrows: 3", "what is mixed"),
    (["a", "b"], "a, b", "a list without a name"),
    ({"city": "北京", "odd": "\ud83c"}, "city: 北京, odd: \ud83c", "any script, a lone surrogate too"),
    ({"a": [{}, None]}, "", "nothing but empty values"),
]
AS_IT_IS = [
    ("", "empty"),
    ("plain text", "no JSON"),
    ('"a string"', "neither an object nor an array"),
    ("{}", "an empty object"),
    ("[]", "an empty array"),
    ('{"a": 1', "broken"),
    ("{not json}", "something else in braces"),
    ("[INFO] started", "a line of a log"),
    ("[" * 100_000, "nested without end"),
    ('{"a": "' + "x" * MOST_CHARS + '"}', "too long"),
]


@pytest.mark.parametrize(("value", "lines", "why"), FLATTENED, ids=[row[-1] for row in FLATTENED])
def test_json_becomes_plain_lines(value: Any, lines: str, why: str) -> None:
    assert flattened(json.dumps(value)) == lines, why
    assert flattened("\n " + json.dumps(value, indent=2) + "\n") == lines, why


@pytest.mark.parametrize(("text", "why"), AS_IT_IS, ids=[row[-1] for row in AS_IT_IS])
def test_other_texts_stay_as_they_are(text: str, why: str) -> None:
    assert flattened(text) == text, why


def test_what_lies_too_deep_stays_json() -> None:
    value: Any = {"id": "W-4711"}
    for _ in range(MOST_DEPTH + 1):
        value = {"in": value}
    assert flattened(json.dumps(value)) == 'in: in: {"id":"W-4711"}'
    assert flattened(json.dumps([value])) == 'in: in: {"in":{"id":"W-4711"}}'


@given(json_values)
def test_no_text_of_a_value_is_lost(value: Any) -> None:
    flat = flattened(json.dumps({"value": value}))
    assert [text for text in strings(value) if text not in flat] == []


@given(texts)
def test_any_text_is_taken(text: str) -> None:
    flattened(text)
    flattened("{" + text)


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []
