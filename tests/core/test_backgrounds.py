"""What a background holds: a ready summary, the user's words, rules and pins, passages and exact values, all within its room."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.core import frames, markers
from ctxproxy.core.backgrounds import FRAME_TOKENS, SUMMARY_SHARE, Room, Source, background_of, filled, is_spoken
from ctxproxy.core.frames import Background, frame_text
from ctxproxy.core.language import language_of
from ctxproxy.core.messages import Message, make, text_of, tool_calls
from ctxproxy.core.records import Summary
from tests.core.histories import FILLER, assistant, call, count_text, histories, result, user
from tests.shared_dir import shared

ROOM = Room(400, 200, 200)
READY = Summary("t", "The user wants a boat; it was ordered.", "llm", "m", 2, 10, 0, 0, 0)


def made(
    messages: list[Message], *, newer: list[Message] | None = None, ready: Summary | None = None, pins: tuple[str, ...] = (), room: Room = ROOM
) -> Background:
    return background_of(Source(messages, messages if newer is None else newer, ready), pins, room, count_text, "en")


def test_the_users_words_stay_verbatim_the_first_and_the_newest_before_others() -> None:
    messages = [part for n in range(30) for part in (user(f"Wish {n}: {FILLER}"), assistant(f"Done {n}. {FILLER}"))]
    words = made(messages, room=Room(2000, 100, 0)).words
    assert words[0] == f"Wish 0: {FILLER}"
    assert words[-1] == f"Wish 29: {FILLER}"
    assert 3 < len(words) < 30
    assert list(words[1:]) == [f"Wish {n}: {FILLER}" for n in range(30 - len(words) + 1, 30)] or len(words[1]) < len(words[0])


def test_words_take_no_more_than_their_own_room_and_a_tenth_of_the_whole() -> None:
    messages = [part for n in range(30) for part in (user(f"Wish {n}: {FILLER}"), assistant("ok"))]
    for room, most in ((Room(2000, 50, 0), 50), (Room(300, 2000, 0), 30)):
        assert 0 < sum(count_text(word) + 2 for word in made(messages, room=room).words) <= most


def test_a_message_at_the_bound_is_shortened_in_the_middle_and_says_so() -> None:
    (word,) = made([user("BEGIN " + FILLER * 100 + "END"), assistant("ok")], room=Room(2000, 200, 200)).words
    assert word.startswith("BEGIN")
    assert word.endswith("END")
    assert "characters left out" in word


def test_a_goal_too_long_for_its_share_does_not_keep_out_the_newest_words() -> None:
    words = made([user("x" * 4000), assistant("ok"), user("newest"), assistant("ok")], room=Room(300, 30, 30)).words
    assert words == ("newest",)


def test_a_ready_summary_is_used_as_it_is_if_there_is_room_for_it() -> None:
    told = Summary("t", f"{FILLER * 20}. Order R-77 was cancelled. {FILLER * 20}", "llm", "m", 2, 10, 0, 0, 0)
    squeezed = made([user("hi")], newer=[], ready=told, room=Room(300, 20, 40)).summary
    assert "R-77" in squeezed
    assert count_text(squeezed) <= 40
    background = made([user("I want a boat."), assistant("Ordered.")], newer=[], ready=READY)
    assert background.summary == READY.text
    assert background.words == ("I want a boat.",)


def test_beside_a_ready_summary_stands_what_came_after_it() -> None:
    later = [user("Paint it red, order R-77."), call("c", colour="red"), result("c", "paint job P-88 booked")]
    background = made([user("I want a boat of ash, B-1."), assistant("Ordered at pier-2."), *later], newer=later, ready=READY)
    assert background.summary == READY.text
    assert "P-88" in background.passages
    assert "pier-2" not in background.passages


def test_passages_are_of_the_whole_conversation_and_say_nothing_that_stands_beside_them() -> None:
    messages = [
        user("Ship order W-4711 to Berlin."),
        assistant(f"{FILLER * 9}. The invoice is INV-22. {FILLER * 9}"),
        user(FILLER),
        assistant(FILLER),
    ]
    background = made(messages, room=Room(200, 200, 100))
    assert "INV-22" in background.passages
    assert "W-4711" in "".join(background.words)
    assert "W-4711" not in background.passages


def test_values_that_stand_nowhere_else_are_listed_where_tools_are_called() -> None:
    lines = [result("c", "\n".join(f"{n} plain line of a log without weight at src/mod_{n}/file_{n}.py" for n in range(300)))]
    background = made([user("Look."), call("c", path="a.py"), *lines, assistant("Done.")], room=Room(400, 50, 0))
    assert len(background.values) > 3
    assert not any(value.lower() in background.passages.lower() for value in background.values)
    spoken = made([user("Look."), assistant(text_of(lines[0])), user("Done?"), assistant("Done.")], room=Room(400, 50, 0))
    assert spoken.values == (), "2 % of so little is no room"


def test_without_room_for_passages_there_are_none() -> None:
    assert made([user("Order W-4711."), assistant("It is INV-22.")], room=Room(30, 0, 0)).passages == ""


def test_an_earlier_background_is_carried_on_whole() -> None:
    old = Background("Decided: use Postgres.", ("I want a shop.",), ("Never use XML.",), (), "User: Host is db-7.", ("K-99", "C-5"))
    messages = [frames.said("user", frame_text(old, "en")), frames.acknowledgement("en"), user("Add a cart, id C-5."), assistant("Added.")]
    background = made(messages, room=Room(1200, 200, 200))
    assert background.summary == "Decided: use Postgres."
    assert background.words == ("I want a shop.", "Add a cart, id C-5.")
    assert "db-7" in background.passages
    assert background.values == ("K-99",), "the other stands in the user's words"


def test_rules_in_force_are_held_word_for_word_unless_they_stand_there_already() -> None:
    messages = [user(f"{FILLER * 20}. Never push to main. {FILLER * 20}"), assistant("Fine."), user("Do not shout."), assistant("ok")]
    rules = ["Never push to main.", "Do not shout."]
    background = background_of(Source(messages, [], READY), (), ROOM, count_text, "en", rules)
    assert background.rules == ("Never push to main.",)
    assert "Do not shout." in background.words


def test_pins_come_first_whatever_the_room() -> None:
    background = made([user("hello there friend"), assistant("hi")], pins=("PIN " * 200,), room=Room(50, 20, 20))
    assert background.pins == ("PIN " * 200,)
    assert background.words == ()


@pytest.mark.parametrize(
    ("message", "spoken"),
    [
        (user("real words"), True),
        (assistant("not the user"), False),
        (user(frame_text(Background("x"), "en")), False),
        (frames.gap("user", "en"), False),
        (user(markers.marker("topic", 5, "0" * 32, "en")), False),
    ],
)
def test_only_the_users_own_words_are_spoken(message: Message, spoken: bool) -> None:
    assert is_spoken(message) is spoken


@settings(deadline=None, max_examples=60)
@given(histories(), st.integers(0, 600), st.booleans())
def test_the_room_holds(messages: list[Message], total: int, ready: bool) -> None:
    room = Room(total, total // 3, total // 2)
    background = made(messages, newer=[] if ready else None, ready=READY if ready else None, room=room)
    assert count_text(frame_text(background, "en")) <= total + 60


@pytest.mark.parametrize(
    ("staying", "total", "why"),
    [
        (200, 550 - 200 - FRAME_TOKENS, "all that the rest leaves of the target"),
        (500, 250 - FRAME_TOKENS, "a quarter of the limit, where the rest leaves less of the target"),
        (900, 100 - FRAME_TOKENS, "what fits, where that is less still"),
        (1200, -FRAME_TOKENS, "nothing, where the rest is over the limit"),
    ],
)
def test_a_frame_fills_what_the_rest_leaves(staying: int, total: int, why: str) -> None:
    room = filled(Room(9, 80, 70), 550, 1000, staying)
    assert (room.total, room.words) == (total, 80), why
    assert room.summary == min(70, int(SUMMARY_SHARE * total))


@pytest.mark.parametrize("family", ["swe", "tau1", "tau2", "zhmem"])
def test_more_of_what_is_asked_for_later_stands_in_it_than_in_head_or_tail(family: str) -> None:
    """Literal evidence at a tenth of the size."""
    kept = {"background": 0.0, "head": 0.0, "tail": 0.0}
    for line in shared(f"quality/data/dev/{family}.jsonl").read_text(encoding="utf-8").splitlines()[:2]:
        told = json.loads(line)
        messages = tuple(make(m) for m in told["messages"] if m["role"] != "system")
        whole = "\n".join(text_of(m) + " ".join(c.arguments for c in tool_calls(m)) for m in messages)
        language = language_of(messages)
        room = Room(count_text(whole) // 10, 0, 0)
        made = frame_text(background_of(Source(messages, messages), (), room, count_text, language), language)
        texts = {"background": made, "head": whole[: len(whole) // 10], "tail": whole[-len(whole) // 10 :]}
        evidence = {one["text"] for probe in told["probes"] for one in probe["evidence"]}
        for name, text in texts.items():
            kept[name] += sum(one in text for one in evidence) / len(evidence)
    assert kept["background"] > max(kept["head"], kept["tail"])
