"""A chunk of a stream as nearly all are: one choice that goes on with a text or with reasoning, read without making anything of the rest.

For every other chunk there is None, and whoever asks reads it whole; what is read here would be read there to the same effect.
"""

from __future__ import annotations

from typing import Literal

import msgspec

LONGEST_BYTES = 4096
"""Of a chunk that is looked at: in a longer one a number may be that the whole reader refuses (its limit is 4,300 digits)."""
_REFUSED = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class PlainDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """At least one text, and the other fields say nothing."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    role: str | None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    audio: None = None


class PlainChoice(msgspec.Struct, gc=False):
    """A choice with neither an error nor usage; what it has besides tells nothing of the answer."""

    delta: PlainDelta
    index: int = 0
    finish_reason: str | None = None
    error: None = None
    usage: None = None


class PlainChunk(msgspec.Struct, gc=False):
    """One choice, and neither an error nor usage anywhere."""

    choices: tuple[PlainChoice]
    model: str | None = None
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    type: None = None
    error: None = None
    usage: None = None
    x_groq: None = None


_DECODER = msgspec.json.Decoder(PlainChunk)


def plain_chunk(data: bytes) -> PlainChunk | None:
    """What an event's data says if that is a plain chunk."""
    if len(data) > LONGEST_BYTES:
        return None
    try:
        if not data.isascii():
            data.decode()  # the decoder does not look at the characters of what it skips
        chunk = _DECODER.decode(data)
    except _REFUSED:
        return None
    delta = chunk.choices[0].delta
    if delta.reasoning_content is None and delta.reasoning is None:
        return None if delta.content is None else chunk
    return chunk if delta.reasoning_content is None or delta.reasoning is None else None  # which of both comes first is told by the JSON alone
