"""An answer as nearly all are: one choice that has ended well, read in one go without making anything of the rest.

For every other answer there is None, and whoever asks reads it whole, for an overflow and for the reply; what is read here would be found there
to be no overflow, and would give the same reply (but for numbers of thousands of digits, which the whole reader refuses).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ctxproxy.core.messages import read
from ctxproxy.core.reply import Choice, Reply, Usage

LONGEST_BYTES = 65_536
"""Of a longer answer the reading is a small part of what it cost."""
_REFUSED = (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError)


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: None = None
    cached_tokens: None = None


class _Choice(msgspec.Struct, gc=False):
    """Neither an error nor usage in it."""

    message: msgspec.Raw
    finish_reason: Literal["stop", "length", "tool_calls"]
    index: int = 0
    error: None = None
    usage: None = None


class _Answer(msgspec.Struct, gc=False):
    """Nothing in it that some server tells of an error in."""

    choices: tuple[_Choice]
    model: str | None = None
    usage: _Usage | None = None
    object: Literal["chat.completion"] = "chat.completion"
    type: None = None
    typed: None = msgspec.field(name="__type", default=None)
    error: None = None
    errors: None = None
    response: None = None
    base_resp: None = None
    x_groq: None = None


_DECODER = msgspec.json.Decoder(_Answer)


def plain_answer(body: bytes) -> Reply | None:
    """What the body of a good status says if that is a plain answer."""
    if len(body) > LONGEST_BYTES:
        return None
    try:
        if not body.isascii():
            body.decode()  # the decoder does not look at the characters of what it skips
        answer = _DECODER.decode(body)
        usage, choice = answer.usage, answer.choices[0]
        if usage is not None and usage.completion_tokens <= 0:
            return None
        message = read(bytes(choice.message))
    except _REFUSED:
        return None
    return Reply((Choice(choice.index, message, choice.finish_reason),), _usage(usage), True, None, answer.model or "")


def _usage(told: _Usage | None) -> Usage | None:
    if told is None:
        return None
    return Usage(told.prompt_tokens, told.completion_tokens, told.prompt_tokens_details.cached_tokens if told.prompt_tokens_details else None)
