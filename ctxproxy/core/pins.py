"""Texts that are kept word for word for good: where what was taken out of a prompt held one, a frame at its head holds it from then on."""

from __future__ import annotations

from collections.abc import Sequence

from ctxproxy.core.frames import Background, acknowledgement, frame_text, parse, said
from ctxproxy.core.language import Language
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.transcript import CountMessage, Entry, Transcript, opening

STAGE = "pins"
"""What inserted entries name as their stage."""


def with_pins(transcript: Transcript, pins: Sequence[str], count: CountMessage, language: Language) -> Transcript:
    """The transcript with a frame of the pins that it does not hold; the same one if it holds all."""
    missing = missing_pins([entry.message for entry in transcript.entries], pins) if pins else ()
    if not missing:
        return transcript
    messages = _frame(missing, language)[: 1 + (opening(transcript.entries) == "user")]
    frame = (Entry(m, count(m), origin="inserted", stage=STAGE, reason="pinned texts that no other entry holds") for m in messages)
    return transcript.with_entries((*frame, *transcript.entries))


def missing_pins(messages: Sequence[Message], pins: Sequence[str]) -> tuple[str, ...]:
    """The pins that stand in none of the messages."""
    texts = [text_of(message) for message in messages]
    framed = {pin for text in texts if (found := parse(text)) for pin in found.pins}
    return tuple(pin for pin in pins if pin.strip() not in framed and not any(pin in text for text in texts))


def pins_tokens(pins: Sequence[str], count: CountMessage, language: Language) -> int:
    """What a frame of all of them costs at most."""
    return sum(map(count, _frame(pins, language))) if pins else 0


def _frame(pins: Sequence[str], language: Language) -> tuple[Message, Message]:
    return said("user", frame_text(Background("", pins=tuple(pins)), language)), acknowledgement(language)
