"""Erasing and forgetting, in one place: whatever keeps something of a session joins here, and is asked to let go of it.

The store does its own part in its own transaction, its sub-stores included. What lies beside it is a `Part`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ctxproxy.core.effects import DropPin, Effect, Forget
from ctxproxy.core.messages import Tip
from ctxproxy.core.phrases import said_in
from ctxproxy.core.records import SessionKey, StoredMessage
from ctxproxy.core.wire import from_log
from ctxproxy.ports import Store
from ctxproxy.proxy.erasures import Erasures

PAGE_MESSAGES = 256
T = TypeVar("T")


class Part(Protocol):
    """Something beside the store that keeps texts of sessions; both may be asked twice, and raise what keeps them from it."""

    async def erase(self, keys: Collection[SessionKey], /) -> object:
        """Let go of all that is kept of these sessions."""
        ...

    async def forget(self, key: SessionKey, tips: Collection[Tip], /) -> object:
        """Let go of what was made of a history up to any of these messages."""
        ...


@dataclass(frozen=True, slots=True)
class Eraser:
    """Asks every part, then the store, then every part again: what breaks off between finds the session still there, and what a part was
    just writing goes the second time.
    """

    store: Store
    parts: Sequence[Part] = ()
    erasures: Erasures = field(default_factory=Erasures)
    """Of single sessions: those that are swept away are in no use."""

    async def session(self, key: SessionKey) -> bool:
        """Erase a session so that nothing of it is left in any file; False if it was not there."""
        self.erasures.note(key)
        return await self.around([key], lambda: self.store.erase(key))

    async def around(self, keys: Collection[SessionKey], rows: Callable[[], Awaitable[T]]) -> T:
        """What `rows` gives, which erases these sessions from the store."""
        for part in self.parts:
            await part.erase(keys)
        done = await rows()
        for part in self.parts:
            await part.erase(keys)
        return done

    async def message(self, key: SessionKey, row: StoredMessage, *, erase: bool) -> tuple[int, ...]:
        """Never send a message again, with `erase` also remove its bytes and the pins that repeat it; the numbers of these pins."""
        pins = await self._pins_of(key, row) if erase else ()
        await self._forget(key, [Forget(key, row.tip, erase)], pins)
        return pins

    async def messages(self, key: SessionKey, tips: Collection[Tip], pins: Collection[int]) -> None:
        """Never send these messages again, and let these pins go."""
        await self._forget(key, [Forget(key, tip) for tip in tips], pins)

    async def _forget(self, key: SessionKey, forgets: Sequence[Forget], pins: Collection[int]) -> None:
        effects: list[Effect] = [*forgets, *(DropPin(key, number) for number in pins)]
        after = await _descendants(self.store, key, {one.tip for one in forgets})
        for part in self.parts:
            await part.forget(key, after)
        await self.store.apply(effects)
        for part in self.parts:
            await part.forget(key, after)

    async def _pins_of(self, key: SessionKey, row: StoredMessage) -> tuple[int, ...]:
        texts = [text for _, text in said_in(from_log(row.raw))] if row.raw else []
        return tuple(pin.number for pin in await self.store.pins(key) if any(pin.text in text for text in texts))


async def _descendants(store: Store, key: SessionKey, tips: Collection[Tip]) -> frozenset[Tip]:
    """Messages and all that came after them, on every branch."""
    found, after = set(tips), 0
    while True:
        page = await store.log(key, after, PAGE_MESSAGES)
        found.update(row.tip for row in page.messages if row.parent in found)
        if page.following is None:
            return frozenset(found)
        after = page.following


async def forgotten_meanwhile(store: Store, key: SessionKey, tip: Tip, known: frozenset[Tip]) -> bool:
    """Whether messages of the history up to `tip` were forgotten since it was read, when only `known` were; what was made of them and kept
    since then is taken out of the store again.
    """
    session = await store.session(key)
    new = session.forgotten - known if session else frozenset()
    late = [row for row in await store.history(key, tip) if row.tip in new] if new else []
    if late:
        await store.apply([Forget(key, row.tip, erase=not row.raw) for row in late])
    return bool(late)
