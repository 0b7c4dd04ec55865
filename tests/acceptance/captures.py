"""Recorded requests of real clients (`shared/captures`): what each client sent, in the order of its turns, and which turn goes on from which."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.scripted_replies import Answer

CHAT = "/v1/chat/completions"
MADE_BY_THE_SENDER = {"host", "content-length", "connection"}
"""Headers that belong to one connection, not to the request (RFC 9110 §7.6.1)."""
STAND_INS = {"x-stainless-retry-count": "0", "x-stainless-read-timeout": "600"}
"""Values for recorded headers whose values were taken out, where "recorded" would not be a legal one."""


@dataclass(frozen=True)
class Capture:
    """One recorded request."""

    client: str
    number: int
    method: str
    path: str
    names: tuple[tuple[str, str], ...]
    body: Mapping[str, Any] | None

    @property
    def is_chat(self) -> bool:
        return self.path == CHAT

    @property
    def raw(self) -> bytes:
        """The body as the client's JSON encoder may have written it."""
        return json.dumps(self.body, ensure_ascii=False).encode() if self.body is not None else b""

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body["messages"] if self.body else []
        return found

    @property
    def history(self) -> list[dict[str, Any]]:
        """The messages without the leading system ones."""
        start = next((n for n, m in enumerate(self.messages) if m["role"] not in ("system", "developer")), len(self.messages))
        return self.messages[start:]

    def headers(self, session_header: str, session: str) -> dict[str, str]:
        """The headers as the client sent them, the session's with this value."""
        kept = {name: value for name, value in self.names if name.lower() not in MADE_BY_THE_SENDER}
        values = {name: STAND_INS.get(name.lower(), "recorded") if value == "(value)" else value for name, value in kept.items()}
        return {name: session if name.lower() == session_header.lower() else value for name, value in values.items()}

    def names_a_session(self, session_header: str) -> bool:
        return any(name.lower() == session_header.lower() for name, _ in self.names)

    def continues(self, earlier: Capture) -> bool:
        """Whether this turn re-sends another's messages, in whatever form, an answer behind them, and more."""
        before, now = earlier.history, self.history
        return (
            len(now) > len(before) + 1
            and [_told(m) for m in now[: len(before)]] == [_told(m) for m in before]
            and now[len(before)]["role"] == "assistant"
            and bool(before)
        )


def _told(message: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    """Who says what: all that a client keeps of a message whatever form it writes it in."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    calls = tuple(call["id"] for call in message.get("tool_calls") or ())
    return message["role"], "".join(part["text"] if "text" in part else json.dumps(part) for part in parts), calls


def clients(folder: Path) -> dict[str, list[Capture]]:
    """Every client's requests, in order."""
    found: dict[str, list[Capture]] = {}
    for file in sorted(folder.glob("*/*.json")):
        held = json.loads(file.read_text(encoding="utf-8"))
        names = tuple((name, value) for name, value in held["header_names"])
        one = Capture(held["client"], int(file.stem), held["method"], held["path"] + held["query"], names, held["body"])
        found.setdefault(one.client, []).append(one)
    return found


def answer_to(turn: Capture, all_of_client: list[Capture]) -> Answer:
    """What the upstream answered, as the client's next turn tells it; something of its own where the client did not go on."""
    follower = next((later for later in all_of_client if later.number > turn.number and later.is_chat and later.continues(turn)), None)
    if follower is None:
        return Answer(f"answer to {turn.client} {turn.number}")
    said = follower.history[len(turn.history)]
    return Answer(_told(said)[1] or None, tool_calls=said.get("tool_calls") or ())


def messages_said(conversations: list[list[Capture]]) -> int:
    """How many messages conversations have, those of a common beginning counted once, with the last answer of each."""
    beginnings = {tuple(map(_told, one[-1].history[:length])) for one in conversations for length in range(1, len(one[-1].history) + 1)}
    return len(beginnings) + len(conversations)


def threads(turns: list[Capture]) -> Iterator[list[Capture]]:
    """The turns that make one conversation each."""
    open_threads: list[list[Capture]] = []
    for turn in turns:
        before = next((thread for thread in open_threads if turn.continues(thread[-1])), None)
        if before is None:
            open_threads.append([turn])
        else:
            before.append(turn)
    yield from open_threads
