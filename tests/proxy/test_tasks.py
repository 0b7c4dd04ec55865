"""Background work at the end of the program."""

from __future__ import annotations

import asyncio

from ctxproxy.proxy.tasks import Tasks


async def test_what_the_last_work_has_begun_is_waited_for_as_well() -> None:
    tasks, done = Tasks(), list[str]()

    async def second() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        done.append("second")

    async def first() -> None:
        await asyncio.sleep(0)
        tasks.start(second(), "second")

    tasks.start(first(), "first")
    await tasks.close(60.0)
    assert done == ["second"]


async def test_what_does_not_end_in_time_is_cancelled() -> None:
    tasks = Tasks()
    work = tasks.start(asyncio.Event().wait(), "for ever")
    await tasks.close(0.01)
    assert work.cancelled()
