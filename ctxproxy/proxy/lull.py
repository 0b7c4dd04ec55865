"""What is done behind the answers waits for a moment without requests: many turns are then read and written in one go, and no answer competes.

It is done piece by piece, one at a time in the whole program, so that a request that comes meanwhile meets one piece at most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

QUIET_S = 0.02
"""Without a request on its way for so long, there is a lull."""
PATIENT_LOOKS, HURRIED_LOOKS = 500, 50
"""Where there is no lull for so long (10 s of a program that runs), a piece of the work is done each second beside the requests."""


class Lull:
    """Told of each request by whoever serves it; whoever works behind the answers asks for each `piece`: some ten milliseconds of a
    thread, or a compaction worked out ahead, a quarter of a second and more for thousands of messages.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._serving = 0
        self._quiet_since = clock()
        self._turn = asyncio.Lock()
        self._go = asyncio.Event()
        self._looks_left = PATIENT_LOOKS
        self._is_open = False

    def request(self) -> Lull:
        """To be held while a request is on its way."""
        return self

    def __enter__(self) -> None:
        self._serving += 1

    def __exit__(self, *_: object) -> None:
        self._serving -= 1
        if not self._serving:
            self._quiet_since = self._clock()

    @asynccontextmanager
    async def piece(self) -> AsyncIterator[None]:
        """A piece of work, begun in its turn and in a lull."""
        async with self._turn:
            await self._come()
            yield

    def open(self) -> None:
        """Have nobody wait any more: the program ends."""
        self._is_open = True
        self._go.set()

    async def _come(self) -> None:
        self._go.clear()
        while not (self._is_open or self.is_now() or self._looks_left <= 0):
            self._looks_left -= 1
            try:
                async with asyncio.timeout(QUIET_S):
                    await self._go.wait()
                return
            except TimeoutError:
                continue
        self._looks_left = PATIENT_LOOKS if self.is_now() else HURRIED_LOOKS

    def is_now(self) -> bool:
        """No request is on its way, nor was a moment ago."""
        return not self._serving and self._clock() - self._quiet_since >= QUIET_S
