"""The only place that starts background tasks: each is named, kept until it ends, and its failure is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("ctxproxy")


class Tasks:
    """Background work that outlives a request; `close` waits for what still runs, then cancels it."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs."""
        return not self._running

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run `work` beside all else; an error in it goes to the log, never to a caller."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task %s failed: %s", task.get_name(), type(error).__name__, exc_info=error if log.isEnabledFor(logging.DEBUG) else None)

    async def close(self, timeout_s: float) -> None:
        """Let running work end within `timeout_s`, then cancel the rest."""
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)
