"""Texts that are kept word for word for good."""

from __future__ import annotations

from ctxproxy.core.messages import make, text_of
from ctxproxy.core.pins import STAGE, missing_pins, pins_tokens, with_pins
from tests.core.histories import assistant, count, transcript, user

PINS = ["Never touch the production database.", "Ticket ABC-77\nis the one that counts"]


def test_what_a_message_holds_needs_no_frame() -> None:
    base = transcript([user("Mind this: Never touch the production database."), assistant(f"noted: {PINS[1]}"), user("go on")])
    assert with_pins(base, PINS, count, "en") is base
    assert with_pins(base, [], count, "en") is base


def test_pins_that_are_gone_stand_in_a_frame_at_the_head() -> None:
    base = transcript([user(PINS[0]), assistant("ok"), user("go on")])
    held = with_pins(base, PINS, count, "en")
    frame, acknowledgement, *rest = held.entries
    assert rest == list(base.entries)
    assert (frame.message.role, acknowledgement.message.role) == ("user", "assistant")
    assert {(e.origin, e.stage, e.tip, e.covers, e.pinned) for e in (frame, acknowledgement)} == {("inserted", STAGE, "", (), False)}
    assert frame.tokens == count(frame.message)
    assert "Ticket ABC-77" in text_of(frame.message)
    assert PINS[0] not in text_of(frame.message)
    assert with_pins(held, PINS, count, "en") is held


def test_no_acknowledgement_stands_before_an_assistant_message_or_nothing() -> None:
    assert [e.message.role for e in with_pins(transcript([assistant("hi"), user("go on")]), PINS, count, "zh").entries] == [
        "user",
        "assistant",
        "user",
    ]
    behind_system = [make({"role": "system", "content": "be brief"}), user("go on")]  # a system message does not part two of the user's
    assert [e.message.role for e in with_pins(transcript(behind_system), PINS, count, "en").entries] == ["user", "assistant", "system", "user"]
    assert [e.message.role for e in with_pins(transcript([]), PINS, count, "en").entries] == ["user"]


def test_a_pin_in_another_frame_counts_as_held() -> None:
    frame = with_pins(transcript([]), PINS, count, "zh").entries[0].message
    assert missing_pins([frame], PINS) == ()
    assert missing_pins([], PINS) == tuple(PINS)


def test_the_cost_of_a_frame_is_known_before_it_is_made() -> None:
    base = transcript([user("go on")])
    assert with_pins(base, PINS, count, "en").tokens - base.tokens == pins_tokens(PINS, count, "en")
    assert pins_tokens([], count, "en") == 0
