"""What the program does by itself from time to time: each round is a task like any other, and nothing is running between two."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ctxproxy.proxy.tasks import Tasks

Work = Callable[[], Coroutine[Any, Any, Any]]


class Timers:
    """Starts work again and again until it is closed."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    def start(self, name: str, work: Work, wait_s: Callable[[], float]) -> None:
        """Begin `work` each time that `wait_s()` seconds have gone by; it is asked anew for each round."""
        self._waiting[name] = asyncio.get_running_loop().call_later(wait_s(), self._fire, name, work, wait_s)

    def _fire(self, name: str, work: Work, wait_s: Callable[[], float]) -> None:
        self._tasks.start(work(), name)
        self.start(name, work, wait_s)

    def close(self) -> None:
        """Begin nothing more."""
        for handle in self._waiting.values():
            handle.cancel()
