"""`extract`, `best_of` and `squeeze`: the sentences of weight, in order, within the size, each with its speaker."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.core.extractive import best_of, extract, squeeze
from ctxproxy.core.language import language_of
from ctxproxy.core.messages import Message, make, text_of, tool_calls
from tests.core.histories import FILLER, assistant, call, count_text, histories, result, user
from tests.shared_dir import shared


def test_ids_numbers_paths_and_decisions_stay_and_small_talk_goes() -> None:
    messages = [
        user("Hello!"),
        assistant("Hi there, how are you doing today my friend?"),
        user("Order W-4711 must reach Berlin before 2024-05-01."),
        assistant("Ok"),
        *(part for n in range(20) for part in (user(FILLER + str(n % 2)), assistant("thanks"))),
        assistant("We decided to use src/ship.py because the old one failed with E1234."),
    ]
    text = extract(messages, 60, count_text, "en")
    assert "Order W-4711 must reach Berlin before 2024-05-01." in text
    assert "src/ship.py" in text
    assert "Ok" not in text.split("\n")
    assert "Hello!" not in text


def test_every_speaker_is_named_and_order_is_kept() -> None:
    messages = [
        user("Read alpha-1.txt."),
        call("c1", "read_file", path="alpha-1.txt"),
        result("c1", "first beta-22 line\nsecond gamma-33 line"),
        assistant("It says delta-4."),
    ]
    assert extract(messages, 200, count_text, "en").split("\n") == [
        "User: Read alpha-1.txt.",
        "Assistant: Called read_file path: alpha-1.txt",
        "Tool read_file: first beta-22 line",
        "second gamma-33 line",
        "Assistant: It says delta-4.",
    ]


def test_a_chinese_summary_names_speakers_in_chinese() -> None:
    messages = [user("订单A-101什么时候发货？"), call("c", "look_up", id="A-101"), result("c", "状态：已出库"), assistant("已经出库，地址不能再改。")]
    text = extract(messages, 200, count_text, "zh")
    assert text.startswith("用户：订单A-101什么时候发货？\n助手：调用 look_up")
    assert "工具 look_up：状态：已出库" in text


def test_a_result_without_its_call_is_a_tools() -> None:
    assert extract([user("Go 1-a."), result("gone", "value 77-x")], 100, count_text, "en").endswith("Tool: value 77-x")
    named = make({"role": "function", "name": "old_style", "content": "value 88-x"})
    assert extract([user("Go 1-a."), named], 100, count_text, "en").endswith("Tool old_style: value 88-x")


def test_what_is_left_out_between_two_sentences_is_shown() -> None:
    talk = "And so it was that all of it was just as it had been before then. " * 6
    message = user(f"Alpha-1 begins with BUG-11. {talk} Omega-2 ends with BUG-22.")
    text = extract([message, *(user(talk + str(n)) for n in range(4))], 30, count_text, "en")
    assert text.startswith("User: Alpha-1 begins")
    assert " … " in text
    assert "Omega-2 ends with BUG-22." in text


def test_repeated_sentences_are_said_once() -> None:
    text = extract([user("Never deploy on Friday 13-x."), assistant("Fine."), user("Never deploy on Friday 13-x.")], 100, count_text, "en")
    assert text.count("Friday") == 1


@pytest.mark.parametrize("messages", [[], [user("ok"), assistant("Thanks!")], [user("")], [user("... ?!")], [user("A" * 5000)]])
def test_nothing_of_weight_gives_nothing(messages: list[Message]) -> None:
    assert extract(messages, 50, count_text, "en") == ""


def test_what_is_known_is_not_said_again() -> None:
    messages = [user("Order W-4711."), assistant("It goes to Berlin-3.")]
    assert extract(messages, 100, count_text, "en", known=["Order W-4711."]) == "Assistant: It goes to Berlin-3."


def test_json_is_told_as_plain_lines() -> None:
    rows = result("c", '{"order": {"id": "W-4711", "city": "Berlin"}, "ok": true}')
    assert extract([user("Go 1-a."), rows], 100, count_text, "en").split("\n")[1:] == ["Tool: ok: true", "order: id: W-4711, city: Berlin"]


def test_the_best_lines_of_a_log_stay_each_once_and_in_order() -> None:
    lines = [f"{FILLER}{n % 3}" for n in range(60)]
    lines[20:20], lines[50:50] = ["E4711 in src/ship.py"], ["exit code 137"]
    text = best_of("\n".join(lines), 30, count_text)
    assert count_text(text) <= 30
    assert [line for line in text.split("\n") if FILLER not in line] == ["E4711 in src/ship.py", "exit code 137"]
    assert len(set(text.split("\n"))) == len(text.split("\n"))
    assert best_of('{"a": {"b": "W-4711"}}', 30, count_text) == "a: b: W-4711"
    assert best_of("", 30, count_text) == best_of("\n".join(lines), 0, count_text) == ""


def test_a_large_room_is_filled_at_the_first_try_whatever_a_word_takes() -> None:
    """Each piece is counted: by estimate, which is far off here, several lengths would have to be tried."""
    lines = [" ".join(f"w{(n * 7919 + at * 31) % 977}" for at in range(40)) for n in range(300)]
    tried: list[str] = []

    def count(text: str) -> int:
        tried.extend([text] if "\n" in text else [])
        return 3 * len(text.split())

    text = best_of("\n".join(lines), 10_000, count)
    assert tried == [text]
    assert 0.98 * 10_000 <= count(text) <= 10_000


def test_no_room_gives_nothing() -> None:
    assert extract([user("Order W-4711.")], 0, count_text, "en") == ""


def test_a_text_that_fits_is_not_touched_and_a_long_one_keeps_its_best_lines() -> None:
    assert squeeze("as it is\n", 100, count_text) == "as it is\n"
    text = "\n".join([*(f"{FILLER}{n % 3}" for n in range(40)), "Path src/deep/file.py holds KEY-99.", *(f"{FILLER}{n % 3}" for n in range(40))])
    assert "Path src/deep/file.py holds KEY-99." in squeeze(text, 30, count_text)


@settings(deadline=None, max_examples=60)
@given(histories(), st.integers(0, 400), st.sampled_from(["en", "zh"]))
def test_the_size_holds_and_the_same_input_gives_the_same_text(messages: list[Message], size: int, language: str) -> None:
    text = extract(messages, size, count_text, language)  # type: ignore[arg-type]
    assert count_text(text) <= size
    assert text == extract(messages, size, count_text, language)  # type: ignore[arg-type]
    assert count_text(squeeze(text, size // 2, count_text)) <= size // 2
    whole = "\n".join(map(text_of, messages))
    assert count_text(best_of(whole, size, count_text)) <= size


@pytest.mark.parametrize("family", ["tau1", "zhmem"])
def test_more_of_what_is_asked_for_later_is_kept_than_by_head_or_tail(family: str) -> None:
    """Literal evidence at a tenth of the size."""
    kept = {"extract": 0.0, "head": 0.0, "tail": 0.0}
    for line in shared(f"quality/data/dev/{family}.jsonl").read_text(encoding="utf-8").splitlines()[:2]:
        talk = json.loads(line)
        messages = [make(m) for m in talk["messages"] if m["role"] != "system"]
        whole = "\n".join(text_of(m) + " ".join(c.arguments for c in tool_calls(m)) for m in messages)
        size = count_text(whole) // 10
        chars = len(whole) // 10
        texts = {"extract": extract(messages, size, count_text, language_of(messages)), "head": whole[:chars], "tail": whole[-chars:]}
        wanted = {evidence["text"] for probe in talk["probes"] for evidence in probe["evidence"]}
        for name, text in texts.items():
            kept[name] += sum(one in text for one in wanted) / len(wanted)
    assert kept["extract"] > max(kept["head"], kept["tail"])
