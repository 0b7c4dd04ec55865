"""Erasing what was not used for long, in dictionaries: `ports.Retention`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from ctxproxy.core.records import Owned, Session, SessionKey

Unpinned = Callable[[], Iterable[Session]]
"""The sessions without a pin, in the order in which they were made."""


class MemoryRetention:
    """Over what the store keeps; both functions raise StoreUnavailable once it is closed."""

    def __init__(self, unpinned: Unpinned, erase: Callable[[SessionKey], Awaitable[bool]]) -> None:
        self._unpinned = unpinned
        self._erase = erase

    async def unused(self, before: float, limit: int) -> list[Owned]:
        return [Owned(session.key, session.user) for session in self._found(before)[:limit]]

    async def erase(self, key: SessionKey, before: float) -> bool:
        return any(session.key == key for session in self._found(before)) and await self._erase(key)

    async def compact(self) -> None:
        self._found(0.0)

    def _found(self, before: float) -> list[Session]:
        found = [session for session in self._unpinned() if session.last_used < before and not session.kept]
        return sorted(found, key=lambda session: session.last_used)
