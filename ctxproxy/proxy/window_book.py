"""What is believed of each model's window and how its counts compare with ours: in memory, written through to the store."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ctxproxy.core import windows
from ctxproxy.core.calibration import Calibration, observe
from ctxproxy.core.effects import PutWindow
from ctxproxy.core.records import WindowBelief
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store

log = logging.getLogger("ctxproxy")


class WindowBook:
    """Beliefs by (upstream origin, model); `load` reads what an earlier run has learned."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._beliefs: dict[tuple[str, str], WindowBelief] = {}
        self._calibrations: dict[tuple[str, str], Calibration] = {}
        self._listed: dict[str, float] = {}

    async def load(self) -> None:
        """Take over what the store knows; an unreachable store leaves the book empty."""
        try:
            self._beliefs = {(b.upstream, b.model): b for b in await self._store.windows()}
        except StoreUnavailable as error:
            log.warning("windows learned earlier could not be read: %s", error.message)
