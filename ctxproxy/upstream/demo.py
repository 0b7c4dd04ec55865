"""The built-in upstream "demo": OpenAI's API over `DemoModel`, without any network."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from ctxproxy.core import completions, jsontext
from ctxproxy.ports import Call, Headers
from ctxproxy.upstream.demo_model import DemoModel, Reply
from ctxproxy.upstream.demo_rules import CountText, Refused

WINDOWS = {"demo": 8192, "demo-small": 2048}
CHUNK_DELAY_S = 0.002
THREAD_BYTES = 16_384
"""From this size on a body is answered in a thread, so that the loop goes on."""
SILENT = "demo-small"
"""The model whose window is listed nowhere, as with many servers: it has to be learned from its refusal."""
CREATED = 1_700_000_000
_PIECE = re.compile(r"\s*[\u3000-\u9fff\uff00-\uffef]{1,4}|\s*(?:[^\s\u3000-\u9fff\uff00-\uffef]+\s*){1,3}|\s+")
"""What one chunk of a stream carries: three words or four Chinese characters."""
_SSE = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))


class DemoUpstream:
    """An upstream with the models of `windows` (name → tokens), the first of which answers to any other name as well."""

    def __init__(
        self,
        *,
        count_tokens: CountText,
        windows: Mapping[str, int] = WINDOWS,
        delay_s: float = CHUNK_DELAY_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._model = DemoModel(count_tokens, windows)
        self._windows = dict(windows)
        self._delay_s = delay_s
        self._clock = clock

    async def send(self, call: Call) -> DemoResponse:
        """The answer of `GET /v1/models`, `GET /v1/models/{name}` or `POST /v1/chat/completions`; 404 for any other path."""
        body = call.body if isinstance(call.body, bytes | None) else b"".join([part async for part in call.body])
        path = unquote(urlsplit(call.url).path).rstrip("/")
        if path.endswith("/chat/completions"):
            return await self._chat(call.method, body or b"")
        if call.method in ("GET", "HEAD") and (answer := self._models(path)) is not None:
            return _json(200, answer, empty=call.method == "HEAD")
        return _refused(Refused(404, f"Unknown request URL: {call.method} {path}. It is not one of the demo model's.", code="unknown_url"))

    async def close(self) -> None:
        """Nothing is open."""

    async def _chat(self, method: str, raw: bytes) -> DemoResponse:
        if method != "POST":
            said = f"Not allowed to {method} on /v1/chat/completions. (HINT: Perhaps you meant to use a different HTTP method?)"
            return _refused(Refused(405, said, code="method_not_supported"))
        try:
            body = jsontext.decode(raw)
        except ValueError:
            return _refused(Refused(400, "We could not parse the JSON body of your request."))
        reply = await asyncio.to_thread(self._model.reply, body) if len(raw) > THREAD_BYTES else self._model.reply(body)
        if isinstance(reply, Refused):
            return _refused(reply)
        frame = {"id": f"chatcmpl-{hashlib.blake2b(raw, digest_size=14).hexdigest()}", "created": int(self._clock()), "model": body["model"]}
        if not body.get("stream"):
            return _json(200, _whole(frame, reply))
        options = body.get("stream_options")
        with_usage = isinstance(options, dict) and options.get("include_usage") is True
        return DemoResponse(200, _SSE, list(_events(frame, reply, with_usage=with_usage)), self._delay_s)

    def _models(self, path: str) -> dict[str, Any] | None:
        rows = {name: _row(name, window) for name, window in self._windows.items()}
        if path.endswith("/models"):
            return {"object": "list", "data": list(rows.values())}
        head, _, name = path.rpartition("/")
        return rows.get(name) if head.endswith("/models") else None


class DemoResponse:
    """An answer of the built-in model: its parts come one by one, `delay_s` apart."""

    def __init__(self, status: int, headers: Headers, parts: list[bytes], delay_s: float = 0.0) -> None:
        self._status = status
        self._headers = headers
        self._parts = parts
        self._delay_s = delay_s
        self._closed = False

    @property
    def status(self) -> int:
        return self._status

    @property
    def reason(self) -> str:
        return {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}[self._status]

    @property
    def headers(self) -> Headers:
        return self._headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's parts; none after `close`."""
        for at, part in enumerate(self._parts):
            if at and self._delay_s:
                await asyncio.sleep(self._delay_s)
            if self._closed:
                return
            yield part

    async def close(self) -> None:
        """Stop answering."""
        self._closed = True


def _events(frame: Mapping[str, Any], reply: Reply, *, with_usage: bool) -> Iterator[bytes]:
    """The stream as OpenAI sends it: role, pieces, finish reason, usage if asked for, [DONE]."""
    usage: dict[str, Any] = {"usage": None} if with_usage else {}
    for delta in _deltas(reply):
        yield completions.chunk(frame, completions.part(delta), **usage)
    yield completions.chunk(frame, completions.part({}, reply.finish), **usage)
    if with_usage:
        yield completions.chunk(frame, usage=completions.usage(reply.prompt_tokens, reply.completion_tokens))
    yield completions.END


def _deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None if reply.calls else "", "refusal": None}
    for index, call in enumerate(reply.calls):
        yield {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}]}
        for piece in _PIECE.findall(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
    for piece in _PIECE.findall(reply.text or ""):
        yield {"content": piece}


def _whole(frame: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in reply.calls]
    used = completions.usage(reply.prompt_tokens, reply.completion_tokens)
    return completions.whole(frame, [completions.choice(message, reply.finish)], used)


def _row(name: str, window: int) -> dict[str, Any]:
    told = {} if name == SILENT else {"context_length": window}
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "ctxproxy", **told}


def _refused(refused: Refused) -> DemoResponse:
    return _json(refused.status, refused.as_body())


def _json(status: int, value: Mapping[str, Any], *, empty: bool = False) -> DemoResponse:
    raw = jsontext.encode(value)
    headers = (("content-type", "application/json"), ("content-length", str(len(raw))))
    return DemoResponse(status, headers, [] if empty else [raw])
