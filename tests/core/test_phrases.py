"""A phrase is found wherever it was said, however it was written, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxproxy.core.messages import Message, make
from ctxproxy.core.phrases import AROUND_CHARS, MOST_CHARS, SENTENCE_CHARS, phrase_of, said_in
from tests.core.histories import PNG, call, result, user

EMOJI_ESCAPED = "\\ud83d\\ude00"
DEEP = json.dumps({"log": json.dumps({"text": "路径\n配置"})})


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("Staging DB", "the staging db is down"),
        ("port 5433", "the port\n\t  5433 is open"),
        ("  port   5433 ", "port 5433"),
        ("靠窗的座位", "我要靠窗的\n座位"),
        ("靠窗 的座位", "我要靠窗的座位"),
        ("用户API", "先调用 用户 API 再说"),
        ("用户 api", "用户API"),
        ("café", "cafe\u0301 au lait"),
        ("cafe\u0301", "Café au lait"),
        ("a+b (c)", "so A+B (C) it is"),
        ("half \ud83c", "half \ud83c of it"),
    ],
)
def test_it_is_found_whatever_the_case_the_blanks_and_the_form(phrase: str, text: str) -> None:
    assert phrase_of(phrase).in_text(text)


@pytest.mark.parametrize(
    ("phrase", "text"),
    [("port5433", "port 5433"), ("port 5433", "port5433"), ("a.b", "axb"), ("靠窗的座位", "靠窗座位"), ("b\\n", "b and n"), ("data", "")],
)
def test_other_texts_do_not_hold_it(phrase: str, text: str) -> None:
    assert not phrase_of(phrase).in_text(text)


@pytest.mark.parametrize(
    ("phrase", "message", "place", "sentence"),
    [
        ("ticket", user("The ticket."), "content", "The ticket."),
        ("ticket", user([{"type": "text", "text": "no"}, {"type": "text", "text": "a ticket"}]), "content[1].text", "a ticket"),
        ("b.py", call("c", path="src/b.py"), "tool_calls[0].function.arguments.path", "src/b.py"),
        ("B.TXT", call("c", path="C:\\new\\b.txt"), "tool_calls[0].function.arguments.path", "C:\\new\\b.txt"),
        ("路径配置", result("c", DEEP), "content.log.text", "路径\n配置"),
        ("配置", result("c", 'cut off: {"text": "\\u914d\\u7f6e'), "content", 'cut off: {"text": "配置'),
        ("😀", result("c", f"a smile: {EMOJI_ESCAPED}"), "content", "a smile: 😀"),
        ('"port": 5433', result("c", '{"port": 5433}'), "content", '{"port": 5433}'),
        ("port", result("c", '{"port": 5433}'), "content", '{"port": 5433}'),
        ("row", result("c", '["a", {"b": ["the row"]}]'), "content[1].b[0]", "the row"),
        ("{broken", result("c", "{broken"), "content", "{broken"),
        ("contract", user([{"type": "file", "file": {"filename": "contract.pdf"}}]), "content[0].file.filename", "contract.pdf"),
        ("refused", make({"role": "assistant", "content": None, "refusal": "I refused."}), "refusal", "I refused."),
        ("call_77", make({"role": "tool", "tool_call_id": "call_77", "content": ""}), "tool_call_id", "call_77"),
    ],
)
def test_it_is_found_in_every_part_of_a_message(phrase: str, message: Message, place: str, sentence: str) -> None:
    found = phrase_of(phrase).find(message)
    assert found
    assert (found.place, found.sentence) == (place, sentence)
    assert phrase_of(phrase).in_message(message)


@pytest.mark.parametrize(
    ("phrase", "content"),
    [
        ("user", "nothing"),
        ("iVBOR", [{"type": "image_url", "image_url": {"url": PNG}}]),
        ("UklGRg", [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}]),
        ("text", [{"type": "text", "text": "nothing"}]),
    ],
)
def test_what_nobody_said_is_not_looked_at(phrase: str, content: Any) -> None:
    assert phrase_of(phrase).find(user(content)) is None
    assert not phrase_of(phrase).in_message(user(content))


def test_texts_come_in_the_order_of_the_message() -> None:
    message = make({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "c", "n": 1})
    assert list(said_in(message)) == [("content[0].text", "a"), ("content[1].text", "b"), ("name", "c")]


def test_nested_as_deeply_as_json_can_be_it_is_found() -> None:
    value: Any = "the needle"
    for _ in range(900):
        value = [value]
    assert phrase_of("needle").find(make({"role": "user", "content": value}))


LONG = "words that say little, " * 30


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("first line\n  the needle here  \nlast line", "the needle here"),
        (f"{LONG}. The needle is here. {LONG}", "The needle is here."),
        (f"{LONG}。针needle在这里。{LONG}", "针needle在这里。"),
        (f"{LONG}. It ends in needle", "It ends in needle"),
    ],
)
def test_the_sentence_is_given_as_it_was_said(text: str, sentence: str) -> None:
    found = phrase_of("needle").find(user(text))
    assert found
    assert found.sentence == sentence


def test_a_phrase_over_two_sentences_gives_both() -> None:
    found = phrase_of("is here. And").find(user(f"{LONG}. The needle is here. And there it is. {LONG}"))
    assert found
    assert found.sentence == "The needle is here. And there it is."


def test_a_sentence_without_end_is_cut_around_the_phrase() -> None:
    found = phrase_of("needle").find(user("x" * 5000 + "needle" + "x" * 5000))
    assert found
    assert "needle" in found.sentence
    assert len(found.sentence) <= SENTENCE_CHARS
    spread = phrase_of("a b").find(user("a" + " " * 3000 + "b"))
    assert spread
    assert spread.sentence == "a"


def test_where_a_sentence_cannot_be_told_its_neighbours_are_given_too() -> None:
    found = phrase_of("needle").find(user(f"{LONG}. One is here, e.g.  the needle. Another one. {LONG}"))
    assert found
    assert found.sentence.endswith("One is here, e.g.  the needle. Another one.")


def test_only_so_many_layers_of_escapes_are_taken_off() -> None:
    assert phrase_of('say "it"').in_text('say \\\\\\"it\\\\\\"')
    assert not phrase_of('say "it"').in_text("say " + "\\" * 63 + '"it"')


def test_the_excerpt_shows_what_stands_around_on_one_line() -> None:
    found = phrase_of("needle").find(user("words " * 100 + "\nthe needle\n" + "words " * 100))
    assert found
    assert found.excerpt.startswith("… words")
    assert found.excerpt.endswith("words …")
    assert "the needle words" in found.excerpt
    assert len(found.excerpt) < 4 * AROUND_CHARS
    assert phrase_of("needle").find(user("needle")) == phrase_of("NEEDLE").find(user("needle"))


@pytest.mark.parametrize(("text", "reason"), [("", "empty"), (" \n\t ", "empty"), ("x" * (MOST_CHARS + 1), "longer")])
def test_nothing_can_be_looked_for_with_a_blank_or_a_book(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        phrase_of(text)
