"""What passes from one session to the next, and over a restart, as values."""

from __future__ import annotations

from dataclasses import dataclass

from ctxproxy.core.messages import Tip


@dataclass(frozen=True, slots=True)
class Digest:
    """What was said in a session, in short, where no summary tells it."""

    tip: Tip
    """Where the conversation stood."""
    text: str
    messages: int
    """How many messages the session had then, over all branches."""
    created: float


@dataclass(frozen=True, slots=True)
class Preload:
    """What a session began with: the messages that stand before its history, byte for byte, for good."""

    messages: tuple[bytes, ...]
    items: int
    """How many sessions and pieces they tell of."""
    created: float


@dataclass(frozen=True, slots=True)
class Restore:
    """Where a client that sends only what is new went on after a restart: of all up to `tip` only the newest `turns` are sent, in short."""

    tip: Tip
    turns: int
