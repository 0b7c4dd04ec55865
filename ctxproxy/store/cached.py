"""Histories that are remembered from one request of a session to its next: what is read again is only what came since.

A client that sends only what is new needs its whole stored history each time. A chain of messages never changes, but for two things, which
raise the session's revision in the database: an erased message, and a partial one that became whole. The revision is read together with what
came since, in one statement, so that a remembered history is right also where other processes write, erase or begin a session anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ctxproxy.core.adaptive_cache import AdaptiveCache
from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.records import SessionKey, StoredMessage

MESSAGE_BYTES, READ_FACTOR = 1200, 2
"""What a message takes in memory, about: its text as it is stored and once more as it was read, and so much beside."""


class Since(NamedTuple):
    """A session's revision, and the messages that lead to a tip, oldest first: from behind a known one if that is on the way, else from the root."""

    revision: int
    messages: list[StoredMessage]


Read: TypeAlias = Callable[[Tip], Awaitable[Since | None]]
"""Reads the messages to the tip that is asked for since a known one; None without the session."""


@dataclass(frozen=True, slots=True)
class _Held:
    revision: int
    messages: tuple[StoredMessage, ...]

    @property
    def tip(self) -> Tip:
        return self.messages[-1].tip


class Histories:
    """The last history read of each session, in at most `max_bytes`; what is used lately and often stays (`core/adaptive_cache.py`)."""

    def __init__(self, max_bytes: int) -> None:
        self._held: AdaptiveCache[SessionKey, _Held] = AdaptiveCache(max_bytes, _size_of)
        self._dropped = 0

    async def of(self, key: SessionKey, tip: Tip, read: Read) -> list[StoredMessage]:
        """The messages from the root to `tip`, oldest first; [] for the root, an unknown tip, or without the session."""
        held, dropped = self._held.get(key), self._dropped
        since = await read(held.tip if held else ROOT)
        front = held.messages if held and since and _goes_on(held, since, tip) else ()
        if front and held and since and since.revision != held.revision:
            front, since = (), await read(ROOT)
        if since is None:
            self._held.drop(key)
            return []
        messages = (*front, *since.messages)
        if messages and dropped == self._dropped and not (held and _is_part(messages, held)):
            self._held.put(key, _Held(since.revision, messages))
        return list(messages)

    def drop(self, key: SessionKey) -> None:
        """Let go of what is remembered of a session, and of what is being read of it."""
        self._dropped += 1
        self._held.drop(key)


def _goes_on(held: _Held, since: Since, tip: Tip) -> bool:
    """Whether what was read begins where the history that is held ends."""
    return since.messages[0].parent == held.tip if since.messages else tip == held.tip


def _is_part(messages: tuple[StoredMessage, ...], held: _Held) -> bool:
    """Whether a history is shorter than the one that is held and on its way: then that one is worth more."""
    return len(messages) < len(held.messages) and held.messages[len(messages) - 1].tip == messages[-1].tip


def _size_of(held: _Held) -> int:
    return sum(READ_FACTOR * len(message.raw) + MESSAGE_BYTES for message in held.messages)
