"""A conversation in pieces that can be found."""

from __future__ import annotations

import pytest

from ctxproxy.core.chunks import CALL_CHARS, CHUNK_CHARS, MOST_CHARS, Chunk, chunks_of, parts_of
from ctxproxy.core.frames import Background, acknowledgement, frame_text
from ctxproxy.core.markers import marker
from ctxproxy.core.messages import Message
from tests.core.histories import FILLER, PNG, assistant, call, result, user

SENTENCE = "The door of the house by the lake is red and nobody knows why it is. "


def test_a_short_message_is_one_piece_without_the_blanks_around_it() -> None:
    assert chunks_of(user("  The door is red.\nThe roof is blue.\n"), "aa") == (Chunk("aa", 0, "The door is red.\nThe roof is blue.", "user"),)


def test_a_long_message_is_parted_between_sentences_and_its_parts_are_counted() -> None:
    chunks = chunks_of(assistant(SENTENCE * 12), "aa")
    assert len(chunks) > 2
    assert [(chunk.tip, chunk.part, chunk.role) for chunk in chunks] == [("aa", n, "assistant") for n in range(len(chunks))]
    assert " ".join(chunk.text for chunk in chunks) == (SENTENCE * 12).strip()
    assert all(len(chunk.text) <= CHUNK_CHARS and chunk.text.endswith(".") for chunk in chunks)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" \n", []),
        ("x" * CHUNK_CHARS, ["x" * CHUNK_CHARS]),
        ("first line\n" + "y" * CHUNK_CHARS + "\nlast line", ["first line", "y" * CHUNK_CHARS, "last line"]),
        ("\n".join(["z" * 100] * 4), ["\n".join(["z" * 100] * 3), "z" * 100]),
    ],
    ids=["nothing", "blanks", "as long as a part", "a line that fills one", "lines that share one"],
)
def test_a_text_is_parted_at_its_lines(text: str, parts: list[str]) -> None:
    assert parts_of(text) == parts


def test_the_parts_of_code_are_indented_as_it_is() -> None:
    code = "".join(f"def step_{n}(value):\n    if value > {n}:\n        return  'a   b'\n" for n in range(20))
    parts = parts_of(code)
    assert len(parts) > 2
    assert "\n".join(parts) == code.rstrip()


def test_a_long_text_of_blanks_and_a_last_line_loses_nothing_but_the_blanks() -> None:
    text = "first\n" + " \n" * CHUNK_CHARS + "last"
    assert parts_of(text) == ["first\nlast"]


def test_no_part_of_an_endless_line_is_much_longer_than_a_part() -> None:
    parts = parts_of("word " * 1000)
    assert sum(part.count("word") for part in parts) == 1000
    assert max(map(len, parts)) <= CHUNK_CHARS


def test_calls_are_pieces_behind_what_was_said_with_the_beginning_of_their_arguments() -> None:
    spoken, called = chunks_of(call("c1", "read", says="I look at it.", path="src/app/main.py"), "aa")
    assert (spoken.text, spoken.part) == ("I look at it.", 0)
    assert (called.text, called.part, called.role) == ('read {"path": "src/app/main.py"}', 1, "assistant")
    written = chunks_of(call("c2", "write", content=FILLER * 100), "bb")
    assert CALL_CHARS - 20 < sum(len(chunk.text) + 1 for chunk in written) < CALL_CHARS + 20


def test_a_result_is_a_piece_like_any_other() -> None:
    assert chunks_of(result("c1", "42 rows"), "aa") == (Chunk("aa", 0, "42 rows", "tool"),)


OURS = [
    (user(frame_text(Background("They spoke."), "en")), "a summary"),
    (user(frame_text(Background("他们谈过。"), "zh")), "a Chinese one"),
    (acknowledgement("en"), "an acknowledgement"),
    (user(marker("a long result", 900, "ab" * 16, "en")), "a marker"),
    (user([{"type": "image_url", "image_url": {"url": PNG}}]), "a picture alone"),
    (assistant(None), "nothing"),
]


@pytest.mark.parametrize(("message", "why"), OURS, ids=[row[1] for row in OURS])
def test_texts_of_ours_and_empty_ones_are_no_pieces(message: Message, why: str) -> None:
    assert chunks_of(message, "aa") == (), why


def test_of_a_very_long_text_both_ends_are_cut_into_parts() -> None:
    text = "\n".join(f"line {n} of a long file" for n in range(10_000))
    parts = parts_of(text)
    assert sum(map(len, parts)) <= MOST_CHARS + 1
    assert parts[0].startswith("line 0 of")
    assert parts[-1].endswith("line 9999 of a long file")
