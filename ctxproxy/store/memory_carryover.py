"""What passes from one session to the next, in dictionaries: `ports.Carryover`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from ctxproxy.core.carryover import Digest, Preload, Restore
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.records import SessionKey


@dataclass(slots=True)
class KeptCarryover:
    """All of it that is kept of one session."""

    digest: Digest | None = None
    preload: Preload | None = None
    sources: frozenset[SessionKey] = frozenset()
    """The sessions that the preload tells of."""
    restore: Restore | None = None

    def copy(self) -> KeptCarryover:
        return replace(self)

    def forget(self, key: SessionKey) -> None:
        """Drop the preload if it tells of a session that is erased, or that something was erased of."""
        if key in self.sources:
            self.preload, self.sources = None, frozenset()


Of = Callable[[SessionKey], KeptCarryover | None]


class MemoryCarryover:
    """Over what the store keeps of each session; `of` raises StoreUnavailable once it is closed."""

    def __init__(self, of: Of, begin: Callable[[OpenSession], None], drop_told: Callable[[SessionKey], None]) -> None:
        self._of = of
        self._begin = begin
        self._drop_told = drop_told

    async def digest(self, key: SessionKey) -> Digest | None:
        kept = self._of(key)
        return kept.digest if kept else None

    async def put_digest(self, key: SessionKey, digest: Digest) -> None:
        if kept := self._of(key):
            kept.digest = digest

    async def preload(self, key: SessionKey) -> Preload | None:
        kept = self._of(key)
        return kept.preload if kept else None

    async def begin(self, opened: OpenSession, preload: Preload, sources: Collection[SessionKey]) -> Preload | None:
        there = all(self._of(key) is not None for key in sources)
        self._begin(opened)
        kept = self._of(opened.key)
        if kept and kept.preload is None and there:
            kept.preload, kept.sources = preload, frozenset(sources)
        return kept.preload if kept else None

    async def copy_preload(self, key: SessionKey, to: SessionKey) -> None:
        kept, copied = self._of(key), self._of(to)
        if kept and copied and copied.preload is None:
            copied.preload, copied.sources = kept.preload, kept.sources

    async def drop_preload(self, key: SessionKey) -> None:
        if kept := self._of(key):
            kept.preload, kept.sources = None, frozenset()

    async def drop_told(self, key: SessionKey) -> None:
        self._drop_told(key)

    async def restore(self, key: SessionKey) -> Restore | None:
        kept = self._of(key)
        return kept.restore if kept else None

    async def put_restore(self, key: SessionKey, restore: Restore) -> None:
        if kept := self._of(key):
            kept.restore = restore
