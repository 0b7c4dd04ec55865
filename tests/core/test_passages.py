"""Messages as pieces: each unit once, with its words, its price and its speaker."""

from __future__ import annotations

import pytest

from ctxproxy.core.messages import make
from ctxproxy.core.passages import ASKING_FACTOR, GOAL_FACTOR, ROLE_FACTORS, Said, Speaker, estimate, is_small_talk, lines_of, pieces_of, readable
from tests.core.histories import assistant, call, result, user


def test_each_unit_is_there_once_with_the_words_that_say_something() -> None:
    pieces = pieces_of([user("Ship W-4711 to the port.\nok\nship w-4711 to the port."), assistant("The port: Berlin, W-4711")], "en", 400)
    assert pieces.texts == ["Ship W-4711 to the port.", "The port: Berlin, W-4711"]
    assert pieces.bags == [("Ship", "W-4711", "port"), ("port", "Berlin", "W-4711")]
    assert pieces.bags[0][1] is pieces.bags[1][2]
    assert pieces.owners == [0, 1]


def test_of_a_message_that_is_known_in_part_the_rest_stays() -> None:
    messages = [user("alpha one\nbeta two"), user("BETA TWO\ngamma three"), user("alpha one"), user("thanks")]
    assert pieces_of(messages, "en", 400).texts == ["alpha one", "beta two", "gamma three"]
    assert pieces_of(messages, "en", 400, known=["beta two"]).texts == ["alpha one", "gamma three"]


def test_the_goal_counts_most_a_result_least_and_a_question_less() -> None:
    texts = ["Fix the lamp.", "Lamp is fixed.", "Is it lit yet?"]
    messages = [user(texts[0]), assistant(texts[1]), user(texts[2]), call("c", "look"), result("c", "lux: 300")]
    pieces = pieces_of(messages, "en", 400)
    assert pieces.texts == [*texts, "Called look {}", "lux: 300"]
    costs = [(estimate(text) + 2) ** 0.9 for text in pieces.texts]
    own = [ROLE_FACTORS["user"] * GOAL_FACTOR, ROLE_FACTORS["assistant"], ROLE_FACTORS["user"] * ASKING_FACTOR, 1.0, ROLE_FACTORS["tool"]]
    assert pieces.prices == pytest.approx([cost / factor for cost, factor in zip(costs, own, strict=True)])


def test_a_call_is_told_in_short_and_chinese_by_its_characters() -> None:
    pieces = pieces_of([call("c", "read_file", path="a-1.txt"), user("订单A-101发货")], "zh", 400)
    assert pieces.texts == ["调用 read_file path: a-1.txt", "订单A-101发货"]
    assert pieces.bags[1] == ("A-101", "订", "单", "发", "货")


@pytest.mark.parametrize(
    ("message", "speaker"),
    [
        (user("q"), Speaker("User: ", prose=True)),
        (assistant("a"), Speaker("Assistant: ", prose=True)),
        (make({"role": "", "content": "p"}), Speaker("", prose=True)),
        (result("c", "r"), Speaker("Tool read_file: ")),
        (result("gone", "r"), Speaker("Tool: ")),
        (make({"role": "function", "name": "old", "content": "r"}), Speaker("Tool old: ")),
    ],
)
def test_a_speaker_is_named_by_role_and_tool(message: object, speaker: Speaker) -> None:
    assert pieces_of([call("c", "read_file"), message], "en", 400).speaker(1) == speaker  # type: ignore[list-item]


def test_lines_of_no_message_stand_as_they_are() -> None:
    pieces = lines_of(["one alpha", "one alpha"], [3, 4], prose=True)
    assert (pieces.texts, pieces.owners, pieces.speaker(3)) == (["one alpha", "one alpha"], [3, 4], Speaker("", prose=True))
    assert pieces.prices[0] == pytest.approx((estimate("one alpha") + 2) ** 0.9)


def test_encoded_data_is_not_read() -> None:
    assert readable("key " + "A" * 300 + " end") == "key   end"
    assert readable("A" * 150) == "A" * 150


@pytest.mark.parametrize(("text", "expected"), [("OK!", True), ("好的。", True), ("Thank you.", True), ("ok then", False), ("", False)])
def test_politeness_is_no_message(text: str, *, expected: bool) -> None:
    assert is_small_talk(text) is expected


def test_what_a_message_says_is_held_in_columns_of_one_length() -> None:
    read: list[Said] = []

    def memo(_: object, messages: object, make: object) -> list[Said]:
        made = [make(message) for message in messages]  # type: ignore[operator, attr-defined]
        read.extend(made)
        return made

    pieces_of([user("alpha one\nbeta two"), user("ok")], "en", 400, memo=memo)  # type: ignore[arg-type]
    assert [[len(column) for column in said] for said in read] == [[2] * 5, [0] * 5, [2] * 5]
