"""The only place that starts background tasks: each is named, kept until it ends, and its failure is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any

log = logging.getLogger("ctxproxy")


class Tasks:
    """Background work that outlives a request; `close` waits for what still runs, then cancels it."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run `work` beside all else; an error in it goes to the log, never to a caller."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def begin(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any] | None:
        """Run `work` at once until it has to wait for something, and what is left of it beside all else; None if nothing is left.

        What it does first runs within the caller's own task: no time limit may be set there.
        """
        try:
            waited = work.send(None)
        except StopIteration:
            return None
        except Exception as error:  # noqa: BLE001 - as in a task of its own
            _told(name, error)
            return None
        return self.start(_left(work, waited), name)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _told(task.get_name(), error)

    async def close(self, timeout_s: float) -> None:
        """Let running work end within `timeout_s`, then cancel the rest."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while self._running and (left_s := until - loop.time()) > 0:  # what ends may have begun something
            await asyncio.wait(self._running, timeout=left_s)
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)


async def _left(work: Coroutine[Any, Any, Any], waited: object) -> Any:
    return await _resumed(work, waited)


@coroutine
def _resumed(work: Coroutine[Any, Any, Any], waited: object) -> Generator[Any, Any, Any]:
    """Go on with a coroutine that waits for `waited`, as the task that this runs in would."""
    try:
        while True:
            try:
                got = yield waited
            except BaseException as error:  # noqa: BLE001 - the task is cancelled, which is the coroutine's to hear
                waited = work.throw(error)
            else:
                waited = work.send(got)
    except StopIteration as end:
        return end.value


def _told(name: str, error: BaseException) -> None:
    log.error("task %s failed: %s", name, type(error).__name__, exc_info=error if log.isEnabledFor(logging.DEBUG) else None)
