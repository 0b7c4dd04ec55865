"""A running proxy and its client, for the tests in this folder; `conftest.py` gives them as fixtures.

upstream.script = [Answer("hello")]
running = await proxy(upstream, context={"max_tokens": 4000})      # sections of config.yaml as keyword arguments
said = await running.chat("hi", session="s", stream=True)          # said.status, said.text, said.headers, said.body
assert upstream.calls[0].body == said.sent
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from multidict import CIMultiDictProxy

from ctxproxy import wiring
from ctxproxy.config.load import load
from ctxproxy.config.reload import Holder
from ctxproxy.core.messages import read, text_of
from ctxproxy.core.records import Session
from ctxproxy.core.reply import ReplyAssembler, reply_from_body
from ctxproxy.core.sse import SseReader
from ctxproxy.proxy.state import State

MODEL = "tested-model"
PATIENCE_S = 30.0
"""Nothing here may take this long: what does hangs."""
HEAD_BYTES = 1 << 20
CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class Said:
    """An answer as it came, and what was sent for it."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes
    sent: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message, streamed or not."""
        if not self.headers.get("Content-Type", "").startswith("text/event-stream"):
            reply = reply_from_body(self.body)
            return dict(reply.choices[0].message.fields) if reply else {}
        reader, assembler = SseReader(), ReplyAssembler()
        for event in reader.feed(self.body):
            assembler.feed(event.data, event.name)
        return dict(assembler.result().choices[0].message.fields)

    @property
    def text(self) -> str:
        return str(self.message.get("content"))

    @property
    def actions(self) -> dict[str, int]:
        """`X-Context-Actions` taken apart; {} for none."""
        given = self.headers["X-Context-Actions"]
        return {} if given == "none" else {name: int(count or 0) for name, _, count in (one.partition("=") for one in given.split(","))}


class Running:
    """One proxy on a free port of 127.0.0.1, and an HTTP client that adds and decodes nothing."""

    def __init__(self, keys: Mapping[str, Any], folder: Path) -> None:
        self._keys = dict(keys)
        self._folder = folder
        self._open = contextlib.AsyncExitStack()
        self.state: State
        self.url = ""
        self.http: aiohttp.ClientSession
        self.holder: Holder

    async def start(self) -> Running:
        file = self._folder / "config.yaml"
        file.write_text(json.dumps(self._keys), encoding="utf-8")
        self.holder = Holder(load(file, {}, {}), {})
        self.state, self.url = await self._open.enter_async_context(wiring.running_server(self.holder.current))
        self.http = await self._open.enter_async_context(
            aiohttp.ClientSession(auto_decompress=False, max_line_size=HEAD_BYTES, max_field_size=HEAD_BYTES)
        )
        return self

    async def stop(self) -> None:
        await self._open.aclose()
        self._open = contextlib.AsyncExitStack()

    async def restart(self, **changed: Any) -> None:
        """Stop, and start again on the same folder."""
        await self.stop()
        self._keys.update(changed)
        await self.start()

    async def kill(self, **changed: Any) -> None:
        """End as SIGKILL ends a process, so that nothing that is on its way comes to its end, and start again on the same folder."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(wiring, "CLOSE_WITHIN_S", 0.0)
            await self.restart(**changed)

    async def chat(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        session: str | None = None,
        stream: bool = False,
        key: str = "sk-tested",
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Said:
        """Ask for a completion; a text stands for one user message."""
        asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
        body: dict[str, Any] = {"model": MODEL, "messages": asked, **({"stream": True} if stream else {}), **fields}
        named = {"X-Session-Id": session} if session else {}
        return await self.send(json.dumps(body, ensure_ascii=False).encode(), {"Authorization": f"Bearer {key}", **named, **(headers or {})})

    async def send(self, body: bytes, headers: Mapping[str, str] | None = None, path: str = CHAT) -> Said:
        """POST these bytes."""
        async with asyncio.timeout(PATIENCE_S):
            given = {"Content-Type": "application/json", **(headers or {})}
            async with self.http.post(self.url + path, data=body, headers=given) as answer:
                return Said(answer.status, answer.headers, await answer.read(), body)

    async def admin(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """An admin call: status and JSON answer (bytes where it is none)."""
        data = None if body is None else json.dumps(body).encode()
        async with asyncio.timeout(PATIENCE_S), self.http.request(method, f"{self.url}/ctxproxy/api/{path}", data=data, headers=headers) as answer:
            raw = await answer.read()
            return answer.status, json.loads(raw) if answer.content_type == "application/json" else raw

    async def settled(self) -> None:
        """Wait until no work is left behind the answers."""
        async with asyncio.timeout(PATIENCE_S):
            while running := set(self.state.tasks._running):
                self.state.lull._go.set()
                await asyncio.wait(running)

    async def session(self, name: str) -> Session:
        """The one session of this name."""
        await self.settled()
        (found,) = await self.state.store.find(name)
        return found

    async def log(self, name: str, *, tip: str | None = None) -> list[str]:
        """`role: text` of each message on the session's branch (or on another), oldest first."""
        session = await self.session(name)
        rows = await self.state.store.history(session.key, session.tip if tip is None else tip)
        return [f"{row.role}: {text_of(read(row.raw))}{' (partial)' if row.partial else ''}" for row in rows]

    async def branches(self, name: str) -> list[list[str]]:
        """Every branch as `log` has it, the one written last first."""
        session = await self.session(name)
        return [await self.log(name, tip=tip) for tip in await self.state.store.leaves(session.key)]


def path_of(name: str) -> str:
    """A session's id as it stands in an admin path."""
    return f"sessions/{quote(name, safe='')}"
