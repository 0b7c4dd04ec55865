"""Long strings inside a JSON object are cut, and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.shorten_strings import with_short_strings
from tests.core.histories import json_values


def note(chars: int) -> str:
    return f"[{chars}]"


LONG = "word " * 100
CASES = [
    ('{"path": "a.py", "content": "' + LONG + '"}', '{"path": "a.py", "content": "word word word word [500]"}', "the path stays"),
    ('{"n": 1.50, "s": "' + LONG + '", "n": 1e400}', '{"n": 1.50, "s": "word word word word [500]", "n": 1e400}', "numbers and repeated keys stay"),
    ('{"' + "k" * 30 + '" : "' + LONG + '"}', '{"' + "k" * 30 + '" : "word word word word [500]"}', "a key is no value"),
    ('{"a": ["' + LONG + '", {"b": "short"}]}', '{"a": ["word word word word [500]", {"b": "short"}]}', "nested"),
    ('{"s": "x \\"quoted\\" \\\\ ' + LONG + '"}', '{"s": "x \\"quoted\\" \\\\ word [513]"}', "escapes"),
    ('{"字": "' + "汉" * 200 + '"}', '{"字": "' + "汉" * 20 + ' [200]"}', "characters as they were written"),
    ('{"s": "' + "\\u6c49" * 200 + '"}', '{"s": "' + "\\u6c49" * 20 + ' [200]"}', "escapes as they were written"),
    (
        '{"a": "' + "x" * 90 + '", "b": "' + LONG + '"}',
        '{"a": "' + "x" * 90 + '", "b": "word word word word [500]"}',
        "the longest first, no more than need be",
    ),
]


@pytest.mark.parametrize(("text", "short", "why"), CASES, ids=[row[-1] for row in CASES])
def test_the_longest_strings_keep_their_beginning(text: str, short: str, why: str) -> None:
    assert with_short_strings(text, 150, 20, note) == short, why
    json.loads(short)


@pytest.mark.parametrize("text", ["not json", '["list"]', '"string"', json.dumps({"numbers": list(range(200))}), "", '{"a": "b' + LONG])
def test_what_is_no_object_or_has_no_long_string_is_not_for_it(text: str) -> None:
    assert with_short_strings(text, 100, 20, note) is None


def test_nothing_is_kept_of_a_string_if_so_told() -> None:
    assert with_short_strings('{"s": "' + LONG + '"}', 100, 0, note) == '{"s": "[500]"}'


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=5), st.integers(0, 200), st.integers(0, 30))
def test_the_outcome_is_json_with_the_same_keys_and_no_longer_than_asked(value: dict[str, object], most: int, keep: int) -> None:
    text = json.dumps(value)
    short = with_short_strings(text, most, keep, note)
    if short is None:
        assert len(text) > most
    else:
        assert len(short) <= most
        assert json.loads(short).keys() == value.keys()
