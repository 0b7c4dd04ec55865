"""A conversation in pieces that can be found: a short message whole, a long one in parts at its lines and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ctxproxy.core.frames import is_filler, is_frame
from ctxproxy.core.markers import is_marker
from ctxproxy.core.messages import Message, Tip, text_of, tool_calls
from ctxproxy.core.records import SessionKey
from ctxproxy.core.sentences import units

CHUNK_CHARS = 350
"""Of a part of a long message, about 90 tokens of English. Measured on the quality conversations: longer parts (600) find less at small budgets,
shorter ones (200) no more."""
MOST_CHARS = 70_000
"""Of one text, its beginning and its end: about 200 pieces. What is longer is a file, and found by its name."""
CALL_CHARS = 1200
"""Of a call's arguments: more is content that was written, which the result or a file holds."""


class Chunk(NamedTuple):
    """A piece of a message's text: `part` counts from 0 within the message."""

    tip: Tip
    part: int
    text: str
    role: str


class Indexed(NamedTuple):
    """A chunk with what the index keeps beside its text: its terms, the turn that it is of (1 is the first), when it was said."""

    chunk: Chunk
    terms: Mapping[str, int]
    turn: int
    created: float


class StoredVector(NamedTuple):
    """What a piece means, as its embedder packed it; numbers grow in the order of writing, and none is used twice."""

    number: int
    place: tuple[Tip, int]
    vector: bytes


class Piece(NamedTuple):
    """A chunk that was found, with the session that it is of."""

    key: SessionKey
    chunk: Chunk
    created: float


def chunks_of(message: Message, tip: Tip) -> tuple[Chunk, ...]:
    """The pieces of a message, in order; () for texts of ours and for a message that holds none."""
    if is_frame(message) or is_filler(message):
        return ()
    text = text_of(message)
    said = "" if is_marker(text) else text
    calls = (f"{call.name} {call.arguments[:CALL_CHARS]}" for call in tool_calls(message))
    texts = [piece for one in (said, *calls) for piece in parts_of(one)]
    return tuple(Chunk(tip, n, piece, message.role) for n, piece in enumerate(texts))


def parts_of(text: str) -> list[str]:
    """A text whole if it is short, else in parts of at most about `CHUNK_CHARS`, none within a sentence that fits; of a very long one both ends."""
    text = text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS // 2]}\n{text[-MOST_CHARS // 2 :]}"
    text = text.strip()
    if len(text) <= CHUNK_CHARS:
        return [text] if text else []
    parts: list[str] = []
    held: list[str] = []
    size = 0
    for unit in units(text, indented=True):
        if held and size + len(unit) > CHUNK_CHARS:
            parts.append("\n".join(held))
            held, size = [], 0
        held.append(unit)
        size += len(unit) + 1
    return [*parts, "\n".join(held)] if held else parts
