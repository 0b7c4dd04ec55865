"""`ctxproxy serve` with each step of its loop timed; at its end it tells on stderr of those that took more than 10 ms of processor time.

python -m bench.watched --config FILE           # and whatever else `serve` takes
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from ctxproxy.cli.main import main as ctxproxy

TOO_LONG_S = 0.010
SLOW = "took too long: "


def watched(words: Sequence[str]) -> int:
    """Serve, and tell."""
    slow: list[str] = []
    run = asyncio.Handle._run  # noqa: SLF001  no other place sees each step, and debug mode is too slow

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        taken = time.thread_time() - began
        if taken > TOO_LONG_S and not _is_of_the_program(handle):
            slow.append(f"{SLOW}{taken * 1e3:6.1f} ms, {_told(handle)}")

    asyncio.Handle._run = timed  # type: ignore[method-assign]  # noqa: SLF001
    status = ctxproxy(["serve", *words])
    print("\n".join(slow), file=sys.stderr)
    return status


def _is_of_the_program(handle: asyncio.Handle) -> bool:
    """A step of the main task: its start and its end."""
    task = getattr(getattr(handle, "_callback", None), "__self__", None)
    return isinstance(task, asyncio.Task) and "_serve" in getattr(task.get_coro(), "__qualname__", "")


def _told(handle: asyncio.Handle) -> str:
    """What a step was of: a task with the places where it waits now, or a callback."""
    callback = getattr(handle, "_callback", None)
    task = getattr(callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return repr(callback)
    names, waits = [task.get_name()], task.get_coro()
    while waits is not None:
        names.append(getattr(waits, "__qualname__", type(waits).__name__))
        waits = getattr(waits, "cr_await", None)
    return " > ".join(names)


if __name__ == "__main__":
    sys.exit(watched(sys.argv[1:]))
