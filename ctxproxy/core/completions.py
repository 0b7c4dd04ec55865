"""Chat completions of our own making, as OpenAI's API has them: whole, and as the events of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctxproxy.core import jsontext

END = b"data: [DONE]\n\n"


def event(value: Mapping[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + jsontext.encode(value) + b"\n\n"


def part(delta: Mapping[str, Any], finish: str | None = None, index: int = 0) -> dict[str, Any]:
    """A choice of a chunk."""
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}


def chunk(frame: Mapping[str, Any], *parts: Mapping[str, Any], **more: Any) -> bytes:
    """A chunk as an event; `frame` holds id, time and model."""
    return event({**frame, "object": "chat.completion.chunk", "choices": list(parts), **more})


def choice(message: Mapping[str, Any], finish: str, index: int = 0) -> dict[str, Any]:
    """A choice of a whole answer."""
    return {"index": index, "message": message, "logprobs": None, "finish_reason": finish}


def whole(frame: Mapping[str, Any], choices: list[dict[str, Any]], usage: Mapping[str, int]) -> dict[str, Any]:
    """A whole answer."""
    return {**frame, "object": "chat.completion", "choices": choices, "usage": usage}


def usage(prompt: int, completion: int) -> dict[str, int]:
    """What was used, in tokens."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def said(frame: Mapping[str, Any], text: str, n: int) -> dict[str, Any]:
    """A whole answer with the same text `n` times, for which no model was asked."""
    return whole(frame, [choice({"role": "assistant", "content": text, "refusal": None}, "stop", at) for at in range(n)], usage(0, 0))


def said_in_parts(frame: Mapping[str, Any], text: str, n: int, *, with_usage: bool) -> Iterator[bytes]:
    """The same as a stream: role, text, finish reason, usage if asked for, [DONE]."""
    none: dict[str, Any] = {"usage": None} if with_usage else {}
    for delta in ({"role": "assistant", "content": "", "refusal": None}, {"content": text}):
        yield from (chunk(frame, part(delta, index=at), **none) for at in range(n))
    yield from (chunk(frame, part({}, "stop", at), **none) for at in range(n))
    if with_usage:
        yield chunk(frame, usage=usage(0, 0))
    yield END
