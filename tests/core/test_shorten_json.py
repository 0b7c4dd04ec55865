"""Cutting JSON so that it stays JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.core.shorten import shorten
from ctxproxy.core.shorten_json import shorten_json
from tests.core.histories import deep_json_texts

ROW = {"id": 1, "name": 'row with a quoted " name, and {braces}'}


def short(value: object, room: int, banner: str = "", **dumps: object) -> str:
    out = shorten_json(json.dumps(value, **dumps), room, "en", shorten, banner)  # type: ignore[arg-type]
    assert out is not None
    json.loads(out)
    return out


def test_arrays_lose_items_in_the_middle_and_tell_how_many() -> None:
    value = json.loads(short([ROW] * 400, 700))
    kept = [item for item in value if item == ROW]
    assert [item for item in value if item != ROW] == [f"[{400 - len(kept)} of 400 items omitted]"]
    assert value[0] == value[-1] == ROW


def test_items_that_tell_of_a_failure_are_kept() -> None:
    items: list[object] = [{"n": n, "status": "ok"} for n in range(200)]
    items[100] = {"n": 100, "status": "failed"}
    assert items[100] in json.loads(short(items, 600))


def test_objects_keep_small_members_and_cut_the_long_one() -> None:
    value = json.loads(short({"log": "word " * 500, "exit": 1, "ok": False, "next": None}, 300))
    assert (value["exit"], value["ok"], value["next"]) == (1, False, None)
    assert "characters omitted" in value["log"]


def test_objects_with_too_many_members_lose_some_and_tell_how_many() -> None:
    value = json.loads(short({f"key{n}": n for n in range(500)}, 300))
    assert value["[omitted]"] == f"[{500 - (len(value) - 1)} of 500 keys omitted]"
    assert (value["key0"], value["key499"]) == (0, 499)


def test_repeated_keys_stay_apart() -> None:
    text = '{"first":"ALPHA",' + '"key":"value value value",' * 3000 + '"last":"OMEGA"}'
    out = shorten_json(text, 800, "en", shorten)
    assert out is not None
    assert out.startswith('{"first":"ALPHA","key":"value value value","key":')
    assert out.endswith('"last":"OMEGA"}')


@pytest.mark.parametrize("number", ["1.10", "1e400", "12345678901234567890123", "NaN", "-0"])
def test_numbers_keep_their_spelling(number: str) -> None:
    out = shorten_json(f'{{"n":{number},"text":"{"word " * 200}"}}', 300, "en", shorten)
    assert out is not None
    assert f'"n":{number},' in out


def test_blanks_and_escapes_are_those_of_the_original() -> None:
    value = {"text": "字" * 500, "n": 1}
    assert ', "n": 1}' in short(value, 300, ensure_ascii=False)
    assert "字" in short(value, 300, ensure_ascii=False)
    assert "\\u5b57" in short(value, 900)
    assert ',"n":1}' in short(value, 300, separators=(",", ":"), ensure_ascii=False)


def test_our_notices_are_readable_where_the_original_escapes() -> None:
    out = shorten_json(json.dumps(["字"] * 500), 300, "zh", shorten, "[已压缩: x]")
    assert out is not None
    assert "\\u5b57" in out
    assert "[此处省略" in out
    assert "[已压缩: x]" in out


def test_the_banner_is_a_member_or_an_item() -> None:
    assert json.loads(short({"a": "x " * 300}, 300, "BANNER"))["[note]"] == "BANNER"
    assert json.loads(short(["x " * 300], 300, "BANNER"))[0] == "BANNER"


def test_nested_values_are_cut_where_they_are_long() -> None:
    value = json.loads(short({"a": {"b": [{"c": "word " * 500}]}, "d": 1}, 300))
    assert value["d"] == 1
    assert "characters omitted" in value["a"]["b"][0]["c"]


@pytest.mark.parametrize("text", ["not json", '"a string"', "12", "[" * 100_000, '{"a": 1', "[1]]"])
def test_what_is_no_object_or_array_is_refused(text: str) -> None:
    assert shorten_json(text, 5, "en", shorten) is None


def test_what_cannot_get_that_short_is_refused() -> None:
    assert shorten_json(json.dumps({"key": "word " * 100}), 10, "en", shorten) is None
    assert shorten_json(json.dumps({"key" * 30: "word"}), 20, "en", shorten) is None


def test_an_item_that_cannot_be_cut_is_left_out_with_a_notice() -> None:
    assert shorten_json(json.dumps([10**200]), 50, "en", shorten) == '["[1 of 1 items omitted]"]'


@settings(max_examples=60, deadline=None)
@given(deep_json_texts, st.integers(100, 2000))
def test_the_outcome_is_json_in_its_room_or_none(text: str, room: int) -> None:
    out = shorten_json(text, room, "zh", shorten)
    if out is not None:
        json.loads(out)
        assert len(out) <= room * 5 // 4
