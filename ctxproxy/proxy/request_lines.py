"""The log line of each request, written behind the answers, some together: one at a time it costs three times as much as in a row."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque

HOLD_S = 0.1
"""So long a line may wait; what a killed process can lose of its log."""


class RequestLines:
    """Lines at level INFO that keep their time and their place: whatever else the logger is told is written behind those that came before."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._held: deque[tuple[float, str, tuple[object, ...]]] = deque()
        self._is_writing = False
        log.addFilter(self._written_first)

    def tell(self, text: str, *values: object) -> None:
        """Log a text with values to be put into it, within `HOLD_S`; must be called on a running loop."""
        if not self._log.isEnabledFor(logging.INFO):
            return
        if not self._held:
            asyncio.get_running_loop().call_later(HOLD_S, self.write)
        self._held.append((time.time(), text, values))

    def write(self) -> None:
        """Write what is held."""
        if self._is_writing:
            return
        self._is_writing = True
        try:
            while self._held:
                told_s, text, values = self._held.popleft()
                record = self._log.makeRecord(self._log.name, logging.INFO, "", 0, text, values, None)
                record.created, record.msecs = told_s, told_s % 1 * 1000
                self._log.handle(record)
        finally:
            self._is_writing = False

    def close(self) -> None:
        """Write what is held; nothing is told any more."""
        self.write()
        self._log.removeFilter(self._written_first)

    def _written_first(self, _: logging.LogRecord) -> bool:
        self.write()
        return True
