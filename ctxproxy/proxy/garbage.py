"""The garbage collector's full rounds, which stop the program for a tenth of a second where a thousand streams are open, wait for a lull.

Only objects that refer to each other in a ring wait for them; all else goes at once, as ever. The young are looked at as ever, too.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from ctxproxy.proxy.lull import Lull

LOOK_S = 1.0
"""How often is looked whether there is a lull."""
SOONEST_S, LATEST_S = 10.0, 60.0
"""How long after the last round one is done in a lull, and when one is done beside the requests."""
NEVER = 1 << 30
"""Collections of the middle generation before the oldest's turn."""


class FullRounds:
    """Does them at the right time, from `begin` on."""

    def __init__(self, lull: Lull, clock: Callable[[], float] = time.monotonic) -> None:
        self._lull = lull
        self._clock = clock
        self._last_s = clock()

    def begin(self) -> None:
        """Leave out what the start has made, which stays to the end, and do no full round on the interpreter's own motion."""
        gc.collect()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, NEVER)

    async def look(self) -> None:
        """Do a round if it is time, and if there is anything that a round could find."""
        since_s = self._clock() - self._last_s
        is_time = since_s >= LATEST_S or (since_s >= SOONEST_S and self._lull.is_now())
        if is_time and gc.get_count()[2]:
            gc.collect()
            self._last_s = self._clock()
