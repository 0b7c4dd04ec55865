"""What is done behind the answers waits for a moment without requests: many turns are then read and written in one go, and no answer competes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIET_S = 0.02
"""Without a request on its way for so long, there is a lull."""
LONGEST_S = 10.0
"""Where there is no lull for so long, the work is done beside the requests."""
MOST_BYTES = 32 * 1024 * 1024
"""Where messages of so many bytes wait, likewise: all that waits is held in memory."""


class Lull:
    """Kept by whoever serves requests; `come` returns at the next lull, at once where nothing is to be waited for any more (`open`)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._serving = 0
        self._quiet_since = clock()
        self._waiting: asyncio.Event | None = None
        self._since = 0.0
        self._held_bytes = 0
        self._is_open = False

    @contextmanager
    def request(self) -> Iterator[None]:
        """A request is on its way."""
        self._serving += 1
        try:
            yield
        finally:
            self._serving -= 1
            if not self._serving:
                self._quiet_since = self._clock()

    async def come(self) -> None:
        """Wait for the next lull."""
        if self._is_open:
            return
        if self._waiting is None:
            self._waiting, self._since = asyncio.Event(), self._clock()
            asyncio.get_running_loop().call_later(QUIET_S, self._look)
        await self._waiting.wait()

    def hold(self, size_bytes: int) -> None:
        """So much is held in memory until the next lull."""
        self._held_bytes += size_bytes
        if self._held_bytes > MOST_BYTES:
            self.hurry()

    def hurry(self) -> None:
        """Have all that wait go on."""
        self._held_bytes = 0
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.set()

    def open(self) -> None:
        """Have nobody wait any more: the program ends."""
        self._is_open = True
        self.hurry()

    def _look(self) -> None:
        if self._waiting is None:
            return
        now = self._clock()
        is_quiet = not self._serving and now - self._quiet_since >= QUIET_S
        if is_quiet or now - self._since >= LONGEST_S:
            self.hurry()
        else:
            asyncio.get_running_loop().call_later(QUIET_S, self._look)
