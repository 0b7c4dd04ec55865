"""The replies of a scripted upstream, and the JSON values that OpenAI's API is made of; see `scripted_upstream`."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ctxproxy.core.messages import read
from ctxproxy.core.validity import violations


class CutMark:
    """Where a stream breaks off."""


CUT = CutMark()
Part: TypeAlias = str | dict[str, Any] | bytes | asyncio.Event | CutMark
HeaderPairs: TypeAlias = Sequence[tuple[str, str]]


@dataclass(eq=False)
class Received:
    """A call as it came; `path` with the query as on the wire, `body` still encoded."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    connection: int = 0
    """Names the TCP connection it came on."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.json["messages"]
        return messages

    def header(self, name: str) -> str | None:
        """The first value of a header, None if it did not come."""
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)


@dataclass(frozen=True)
class Json:
    status: int
    body: Any
    headers: HeaderPairs = ()

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body, ensure_ascii=False).encode()


class Sse:
    """A stream; `finish` None and `done` False leave the last events away, `usage` adds OpenAI's last chunk, `encoding` gzip or deflate."""

    def __init__(
        self,
        *parts: Part,
        done: bool = True,
        finish: str | None = "stop",
        usage: Mapping[str, int] | None = None,
        encoding: str | None = None,
        headers: HeaderPairs = (),
        status: int = 200,
    ) -> None:
        self.parts = parts
        self.done = done
        self.finish = finish
        self.usage = usage
        self.encoding = encoding
        self.headers = headers
        self.status = status

    def pieces(self) -> list[bytes | asyncio.Event | CutMark]:
        """What is written one by one."""
        out: list[bytes | asyncio.Event | CutMark] = []
        framed = any(isinstance(part, str) for part in self.parts) or not self.parts
        if framed:
            out.append(event(chunk({"role": "assistant", "content": ""})))
        for part in self.parts:
            match part:
                case str():
                    out.append(event(chunk({"content": part})))
                case dict():
                    out.append(event(part))
                case _:
                    out.append(part)
        if framed and self.finish:
            out.append(event(chunk({}, finish=self.finish)))
        if self.usage:
            out.append(event(chunk(usage=self.usage)))
        return [*out, event("[DONE]")] if self.done else out


@dataclass(frozen=True)
class Answer:
    text: str | None
    tool_calls: Sequence[Mapping[str, Any]] = ()
    headers: HeaderPairs = ()

    def as_asked(self, call: Received) -> Json | Sse:
        """As a stream if the call asks for one, else as JSON; with usage if the call asks for it or needs not to."""
        body = call.json
        usage = {"prompt_tokens": rough_tokens(body), "completion_tokens": len(self.text or "") // 4 + 1}
        usage["total_tokens"] = sum(usage.values())
        if not body.get("stream"):
            return Json(200, completion(self.text, tool_calls=self.tool_calls, usage=usage), self.headers)
        calls = [chunk({"tool_calls": [{"index": n, **one}]}) for n, one in enumerate(self.tool_calls)]
        words = [word + " " for word in (self.text or "").split(" ")]
        words[-1] = words[-1][:-1]
        parts: list[Part] = [chunk({"role": "assistant", "content": ""}), *[chunk({"content": word}) for word in words if word], *calls]
        parts.append(chunk({}, finish="tool_calls" if self.tool_calls else "stop"))
        asked = (body.get("stream_options") or {}).get("include_usage")
        return Sse(*parts, usage=usage if asked else None, headers=self.headers)


@dataclass(frozen=True)
class Overflow:
    limit: int
    requested: int

    def refusal(self) -> Json:
        said = f"This model's maximum context length is {self.limit} tokens. However, your messages resulted in {self.requested} tokens."
        return Json(400, error_body(f"{said} Please reduce the length of the messages.", code="context_length_exceeded", param="messages"))


@dataclass(frozen=True)
class Stall:
    release: asyncio.Event
    then: Reply = Answer("late")


@dataclass(frozen=True)
class Garbage:
    data: bytes


@dataclass(frozen=True)
class Cut:
    data: bytes = b""
    reset: bool = False


@dataclass(frozen=True)
class Hangup:
    reply: Json


Reply: TypeAlias = Json | Sse | Answer | Overflow | Stall | Garbage | Cut | Hangup
Script: TypeAlias = Sequence[Reply] | Reply | Callable[[Received], Reply | Awaitable[Reply]]


class Window:
    """A script: refuses prompts (+ max_tokens) over `limit` tokens and, if `strict`, lists that no strict upstream takes."""

    def __init__(self, limit: int, then: Callable[[Received], Reply] | Reply = Answer("ok"), *, strict: bool = True) -> None:
        self.limit = limit
        self.then = then
        self.strict = strict

    def __call__(self, call: Received) -> Reply:
        wrong = violations([read(json.dumps(m).encode()) for m in call.messages]) if self.strict else []
        if wrong:
            return Json(400, error_body("; ".join(wrong), param="messages"))
        requested = rough_tokens(call.json) + int(call.json.get("max_completion_tokens") or call.json.get("max_tokens") or 0)
        if requested > self.limit:
            return Overflow(self.limit, requested)
        return self.then(call) if callable(self.then) else self.then


def rough_tokens(body: Mapping[str, Any]) -> int:
    """A token for 4 bytes of the messages and tools as JSON text: near enough for English, too many for none."""
    return sum(len(json.dumps(body.get(key) or [], ensure_ascii=False).encode()) for key in ("messages", "tools")) // 4


def tool_call(call_id: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def error_body(message: str, *, code: str | None = None, param: str | None = None, type: str = "invalid_request_error") -> dict[str, Any]:
    """An error in OpenAI's shape."""
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def completion(text: str | None, *, tool_calls: Sequence[Mapping[str, Any]] = (), usage: Mapping[str, int] | None = None) -> dict[str, Any]:
    """A chat completion as OpenAI answers it."""
    message = {"role": "assistant", "content": text, **({"tool_calls": list(tool_calls)} if tool_calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool_calls else "stop"}
    made = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice]}
    return {**made, "usage": dict(usage)} if usage else made


def chunk(delta: Mapping[str, Any] | None = None, *, finish: str | None = None, usage: Mapping[str, int] | None = None) -> dict[str, Any]:
    """A chunk of a stream as OpenAI sends it; without a delta and finish reason, one with no choices."""
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": dict(delta or {}), "finish_reason": finish}]
    made = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices}
    return {**made, "usage": dict(usage)} if usage else made


def event(value: Any) -> bytes:
    """A server-sent event with this JSON value, or with this text."""
    return b"data: " + (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode() + b"\n\n"


def gzipped(value: Any) -> Json:
    """A JSON answer that comes compressed."""
    return Json(200, gzip.compress(json.dumps(value).encode()), [("Content-Type", "application/json"), ("Content-Encoding", "gzip")])
