"""What a background holds: a ready summary or a stand-in, the user's words, rules and pins, all within its room."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.core import frames, markers
from ctxproxy.core.backgrounds import Room, background_of, is_spoken
from ctxproxy.core.frames import Background, frame_text
from ctxproxy.core.messages import Message
from ctxproxy.core.records import Summary
from tests.core.histories import FILLER, assistant, call, count_text, histories, result, user

ROOM = Room(400, 200, 200)
READY = Summary("t", "The user wants a boat; it was ordered.", "llm", "m", 2, 10, 0, 0, 0)


def made(
    messages: list[Message], *, newer: list[Message] | None = None, ready: Summary | None = None, pins: tuple[str, ...] = (), room: Room = ROOM
) -> Background:
    return background_of(messages, messages if newer is None else newer, ready, pins, room, count_text, "en")


def test_the_users_words_stay_verbatim_the_first_and_the_newest_before_others() -> None:
    messages = [part for n in range(30) for part in (user(f"Wish {n}: {FILLER}"), assistant(f"Done {n}. {FILLER}"))]
    words = made(messages).words
    assert words[0] == f"Wish 0: {FILLER}"
    assert words[-1] == f"Wish 29: {FILLER}"
    assert 3 < len(words) < 30
    assert list(words[1:]) == [f"Wish {n}: {FILLER}" for n in range(30 - len(words) + 1, 30)] or len(words[1]) < len(words[0])


def test_a_message_at_the_bound_is_shortened_in_the_middle_and_says_so() -> None:
    (word,) = made([user("BEGIN " + FILLER * 100 + "END"), assistant("ok")]).words
    assert word.startswith("BEGIN")
    assert word.endswith("END")
    assert "characters left out" in word


def test_a_goal_too_long_for_its_share_does_not_keep_out_the_newest_words() -> None:
    words = made([user("x" * 4000), assistant("ok"), user("newest"), assistant("ok")], room=Room(60, 30, 30)).words
    assert words == ("newest",)


def test_a_ready_summary_is_used_as_it_is() -> None:
    background = made([user("I want a boat."), assistant("Ordered.")], newer=[], ready=READY)
    assert background.summary == READY.text
    assert background.words == ("I want a boat.",)


def test_a_ready_summary_is_followed_by_what_came_after_it() -> None:
    later = [user("Paint it red, order R-77."), call("c", colour="red"), result("c", "paint job P-88 booked")]
    background = made([user("I want a boat."), assistant("Ordered."), *later], newer=later, ready=READY)
    assert background.summary.startswith(READY.text)
    assert "P-88" in background.summary


def test_an_earlier_background_is_carried_on_whole() -> None:
    old = Background("Decided: use Postgres.", ("I want a shop.",), ("Never use XML.",), ())
    messages = [frames.said("user", frame_text(old, "en")), frames.acknowledgement("en"), user("Add a cart, id C-5."), assistant("Added.")]
    background = made(messages)
    assert "Decided: use Postgres." in background.summary
    assert background.words == ("I want a shop.", "Add a cart, id C-5.")
    assert background.rules == ("Never use XML.",)
    assert "Background" not in background.summary


def test_rules_are_kept_word_for_word_unless_they_stand_there_already() -> None:
    messages = [user(f"{FILLER * 20}. Never push to main. {FILLER * 20}"), assistant("Fine."), user("Do not shout."), assistant("ok")]
    background = made(messages, newer=[], ready=READY)
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
