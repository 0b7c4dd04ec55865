"""Whether an answer makes use of a text that its prompt had."""

from __future__ import annotations

import pytest

from ctxproxy.core.quoting import RUN, TEXT_CHARS, heard, quotes

WORDS = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrst")
QUOTED = [
    ("What is the gate's code?", "It is 7731.", "The old garden gate behind the house by the lake opens with 7731, said Ann to Bob.", "a number"),
    ("Which ticket was it?", "You mean ORD-48213.", "We filed ORD-48213 about the leaking valve of the espresso machine in March.", "an exact value"),
    ("What is my cat called?", "Your cat is called Biscuit.", "My cat is called Biscuit.", "what a short text says"),
    ("Where did we eat?", "In a small place behind the old harbour mill.", f"{'x y z ' * 9} a small place behind the old harbour mill", "a wording"),
    ("我的猫叫什么？", "你的猫叫饼干。", "我的猫叫饼干。", "a short Chinese text"),
    (
        "在哪里吃饭？",
        "就在老城区的码头旁边那家小店。",
        "上周一家人去了很多地方，最后在老城区的码头旁边吃了面条，还买茶叶。",
        "a Chinese wording",
    ),
]
NOT_QUOTED = [
    ("What is the code?", "I do not know.", "The garden gate opens with 7731.", "nothing in common"),
    ("Does the gate open with 7731?", "I cannot say whether 7731 opens it.", "The gate opens with 7731.", "only what was asked"),
    (
        "And now?",
        "We have 20 files.",
        f"The harbour has 20 ships {WORDS}.",
        "a number that stands everywhere",
    ),
    ("Tell me of ships.", "Ships sail.", f"Boats sail {WORDS}.", "one word of a long text"),
    ("And now?", "All right, thank you.", "", "no text"),
    ("And now?", "", "The gate opens with 7731.", "no answer"),
]


@pytest.mark.parametrize(("asked", "answer", "text", "why"), QUOTED, ids=[row[-1] for row in QUOTED])
def test_a_text_is_quoted(asked: str, answer: str, text: str, why: str) -> None:
    assert quotes(heard(answer, asked), text), why


@pytest.mark.parametrize(("asked", "answer", "text", "why"), NOT_QUOTED, ids=[row[-1] for row in NOT_QUOTED])
def test_a_text_is_not_quoted(asked: str, answer: str, text: str, why: str) -> None:
    assert not quotes(heard(answer, asked), text), why


def test_a_wording_of_the_question_is_no_quotation() -> None:
    wording = "a small place behind the old mill"
    text = f"They found {wording} and ate noodles, drank tea, watched boats, met friends, took photos, bought maps and went home."
    assert len(wording.split()) > RUN
    assert not quotes(heard(f"You said {wording} and photos.", f"Where was {wording}?"), text)
    assert quotes(heard(f"You said {wording} and photos.", "Where was it?"), text)


def test_of_a_long_text_both_ends_are_read() -> None:
    middle = "x " * TEXT_CHARS
    assert quotes(heard("It is 7731.", "What is it?"), f"{middle} 7731")
    assert not quotes(heard("It is 7731.", "What is it?"), f"{middle} 7731 {middle}")
