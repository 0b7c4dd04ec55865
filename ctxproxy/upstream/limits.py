"""Time limits that are nearly never reached: one timer for all of them, which looks what is due when it fires; a timer for each call costs more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Limits:
    """What is to happen at which time of the loop's clock unless it is lifted before; one limit a holder."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._held: dict[object, tuple[float, Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def set(self, holder: object, at_s: float, then: Callable[[], None]) -> None:
        """Set the holder's limit, in place of one that it has."""
        self._held[holder] = (at_s, then)
        if self._timer is None or at_s < self._timer.when():
            self._look_at(at_s)

    def lift(self, holder: object) -> None:
        """Take the holder's limit away, if it has one."""
        self._held.pop(holder, None)

    def close(self) -> None:
        """Take all of them away."""
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _look_at(self, at_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(at_s, self._look)

    def _look(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        due = sorted(((at_s, holder) for holder, (at_s, _) in self._held.items() if at_s <= now_s), key=lambda one: one[0])
        for _, holder in due:
            held = self._held.pop(holder, None)
            if held is not None:  # another one that was due may have lifted it
                held[1]()
        if self._held:
            self._look_at(min(at_s for at_s, _ in self._held.values()))
