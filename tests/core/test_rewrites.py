"""Smaller versions of one message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.core import rewrites
from ctxproxy.core.messages import Message, make, text_of, tool_calls, with_fields
from ctxproxy.core.rewrites import any_media
from ctxproxy.core.transcript import Entry
from tests.core.histories import FILLER, PNG, arguments, assistant, call, count, result, tool_call, user

LONG = FILLER * 50
TIP = "ab" * 16
MARK = f"[COMPACTED: t · {{}} tokens · {TIP[:16]}]"
IMAGE = {"type": "image_url", "image_url": {"url": PNG}}


def entry(message: Message) -> Entry:
    return Entry(message, count(message), TIP)


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def test_a_string_becomes_the_marker_and_other_fields_stay() -> None:
    old = entry(result("c", LONG, x_unknown=1))
    new = rewrites.marked(old, "t", "en")
    assert dict(new.fields) == {"role": "tool", "tool_call_id": "c", "content": MARK.format(old.tokens), "x_unknown": 1}


def test_of_parts_the_long_texts_become_one_marker_and_the_rest_stays() -> None:
    cached = text(LONG, cache_control={"type": "ephemeral"})
    thinking = {"type": "thinking", "thinking": LONG, "signature": "S"}
    old = entry(user([thinking, text("exit code 1"), text(LONG), IMAGE, text(LONG), cached, "odd"]))
    mark = MARK.format(old.tokens)
    assert rewrites.marked(old, "t", "en").content == [thinking, text("exit code 1"), text(mark), IMAGE, {**cached, "text": mark}, "odd"]


@pytest.mark.parametrize("content", [None, "", 5])
def test_without_text_nothing_changes(content: Any) -> None:
    old = entry(assistant(content))
    assert rewrites.marked(old, "t", "en") is old.message
    assert rewrites.shortened(old, "t", 10, "en") is old.message


def test_a_shortened_string_stays_a_string_under_its_marker() -> None:
    old = entry(result("c", "first line\n" + LONG + "\nlast line"))
    new = rewrites.shortened(old, "t", 400, "en")
    assert new.content.startswith(MARK.format(old.tokens) + "\nfirst line\n")
    assert new.content.endswith("\nlast line")
    assert rewrites.shortened(old, "t", 10**6, "en") is old.message


def test_shortened_parts_stay_parts_and_short_ones_stay_whole() -> None:
    new = rewrites.shortened(entry(result("l", [text("log start " + LONG + " LOG-END"), text("exit code 1", x=1), IMAGE])), "t", 400, "en")
    assert [part["type"] for part in new.content] == ["text", "text", "image_url"]
    assert new.content[1:] == [text("exit code 1", x=1), IMAGE]
    assert len(new.content[0]["text"]) < 500


def test_a_gist_is_the_marker_and_the_lines_that_say_most() -> None:
    lines = [f"{FILLER}{n % 3}" for n in range(60)]
    lines[30:30] = ["E4711 in src/ship.py"]
    old = entry(result("c", "\n".join(lines), x_unknown=1))
    new = rewrites.gist(old, "t", 40, "en")
    mark, *kept = new.content.split("\n")
    assert mark == MARK.format(old.tokens)
    assert "E4711 in src/ship.py" in kept
    assert set(kept) <= set(lines)
    assert count(new) <= 40 + 30
    assert new.fields["x_unknown"] == 1


def test_where_nothing_says_anything_a_gist_is_the_marker_alone() -> None:
    old = entry(result("c", ". . . . " * 200))
    assert rewrites.gist(old, "t", 40, "en").content == MARK.format(old.tokens)
    assert rewrites.gist(entry(result("c", "")), "t", 40, "en").content == MARK.format(4)


def test_a_gist_of_parts_is_head_and_tail_of_them() -> None:
    new = rewrites.gist(entry(result("l", [text("log start " + LONG + " LOG-END"), text("exit code 1"), IMAGE])), "t", 100, "en")
    assert [part["type"] for part in new.content] == ["text", "text", "image_url"]
    assert new.content[0]["text"].endswith("LOG-END")
    assert len(new.content[0]["text"]) < 500


@pytest.mark.parametrize("room", [1000, 200, 60, 1])
def test_a_fitted_message_has_at_most_its_tokens_or_a_lone_notice(room: int) -> None:
    old = entry(result("c", LONG * 4))
    new = rewrites.fitted(old, "t", room, count, "en")
    assert count(new) <= max(room, 40)


def test_a_message_that_fits_is_the_same_object() -> None:
    old = entry(result("c", "short"))
    assert rewrites.fitted(old, "t", 100, count, "en") is old.message


def test_thinking_goes_whole_or_not_at_all() -> None:
    blocks = [{"type": "thinking", "thinking": "x", "signature": "S"}, {"type": "redacted_thinking", "data": "D"}]
    assert rewrites.without_thinking(assistant([*blocks, text("answer"), "odd"])).content == [text("answer"), "odd"]
    for message in (assistant(blocks), assistant("plain"), assistant([text("answer")])):
        assert rewrites.without_thinking(message) is message


def test_media_become_notes_and_texts_stay() -> None:
    old = entry(user([text("see"), IMAGE, {**IMAGE, "cache_control": {"type": "ephemeral"}}]))
    assert rewrites.has_media(old.message)
    assert not rewrites.has_media(user("text"))
    note = f"[COMPACTED: earlier image image/png · {old.tokens} tokens · {TIP[:16]}]"
    assert rewrites.without_media(old, "en").content == [text("see"), text(note), text(note, cache_control={"type": "ephemeral"})]


def test_long_arguments_are_cut_inside_their_json() -> None:
    message = call("c", "write", path="a.py", text=LONG, extra={"index": 0})
    short = rewrites.with_short_arguments(message, 400, "en")
    value = json.loads(tool_calls(short)[0].arguments)
    assert value["path"] == "a.py"
    assert "characters omitted" in value["text"]
    assert short.fields["tool_calls"][0]["index"] == 0


@pytest.mark.parametrize(
    "message",
    [
        assistant("no calls"),
        call("c", path="short"),
        call("c", text=LONG, extra={"extra_content": {"google": {"thought_signature": "SIG"}}}),
        assistant(None, tool_calls=["odd", {"id": "x"}, {"id": "y", "function": {"name": "f"}}]),
    ],
)
def test_short_signed_and_odd_calls_stay_the_same_object(message: Message) -> None:
    assert rewrites.with_short_arguments(message, 400, "en") is message


@pytest.mark.parametrize(
    ("given_text", "outcome"),
    [
        ("not json " * 100, '{"omitted":"[900 of 900 characters omitted]"}'),
        ("[" + "1," * 500 + "1]", '{"omitted":"[1003 of 1003 characters omitted]"}'),
        ('{"a":' + "x" * 600, '{"omitted":"[605 of 605 characters omitted]"}'),
        ('{"a":\n' + " " * 600 + "1}", '{"a":1}'),
        (json.dumps({"k" * 900: 1}), '{"[omitted]": "[1 of 1 keys omitted]"}'),
        ('{"a": 1}', '{"a": 1}'),
    ],
)
def test_arguments_are_json_again_whatever_they_were(given_text: str, outcome: str) -> None:
    assert rewrites.short_arguments(given_text, 400, "en") == outcome


@settings(max_examples=60, deadline=None)
@given(arguments, st.integers(100, 1500))
def test_short_arguments_are_in_their_room_and_valid_json(given_text: str, room: int) -> None:
    short = rewrites.short_arguments(given_text, room, "en")
    assert len(short) <= room
    if short != given_text:
        assert isinstance(json.loads(short), dict)


def test_a_call_that_would_not_get_shorter_stays() -> None:
    message = assistant(None, tool_calls=[tool_call("c", "f", "x" * 30)])
    assert rewrites.with_short_arguments(message, 10, "en") is message
    assert text_of(with_fields(message, content="a")) == "a"


def test_media_are_found_in_any_message_of_many() -> None:
    text, parts = make({"role": "user", "content": "an image_url"}), make({"role": "user", "content": [{"type": "text", "text": "a"}]})
    image = make({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}]})
    assert any_media([text, parts, image])
    assert not any_media([text, parts])
