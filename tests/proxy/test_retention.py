"""Sessions that nobody used for `sessions.retention_days` go, with all that was kept of them; the others stay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ctxproxy.core.effects import Choose, OpenSession
from ctxproxy.proxy.retention import BATCH, DAY_S, Sweeper, awake
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.proxy.timers import Timers
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin_changes import holding
from tests.proxy.test_background import talk
from tests.proxy.test_memory_files import DROPPING, folder_of, written
from tests.scripted_upstream import ScriptedUpstream

SQLITE = {"url": "sqlite:///s.db"}
NOW = 1_800_000_000.0


async def aged(running: Running, **days: float) -> Sweeper:
    """A sweeper, after these sessions were last used so many days ago."""
    await running.settled()
    running.state.clock = lambda: NOW
    for name, age in days.items():
        key = (await running.session(name)).key
        await running.state.store.apply([OpenSession(key, NOW - age * DAY_S)])
    return Sweeper(running.state)


async def names(running: Running) -> set[str]:
    page = await running.state.store.sessions(1000, None, "")
    return {session.key.name for session in page.sessions}


async def test_000_30_31_days_gone_29_days_stay_kept_ones_stay(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    running = await proxy(upstream, store=SQLITE, context=DROPPING)
    for name in ("old", "young", "kept"):
        await running.chat([{"role": "user", "content": f"zebra {name}"}, *talk(40)], session=name)
    await running.settled()
    await running.state.store.apply([Choose((await running.session("kept")).key, kept=True)])
    sweeper = await aged(running, old=31, young=29, kept=400)
    caplog.set_level("INFO")
    assert await sweeper.sweep() == 1
    assert await names(running) == {"young", "kept"}
    assert [file.parent.name for file in written(folder_of(running))] == ["kept", "young"]
    assert holding(Path(running.holder.current().data_dir), "zebra old") == []
    assert "erased 1 sessions that were not used for 30 days" in caplog.text
    assert "ctxproxy_sessions_expired_total 1.0" in running.state.metrics.text().decode()
    assert await sweeper.sweep() == 0


async def test_with_null_nothing_is_ever_erased(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, sessions={"retention_days": None})
    await running.chat("hi", session="s")
    assert await (await aged(running, s=4000)).sweep() == 0


async def test_many_are_erased_in_batches_and_the_program_sweeps_when_it_starts(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store=SQLITE, sessions={"retention_days": 1})
    await running.chat("hi", session="first")
    tenant = (await running.session("first")).key.tenant
    old = [OpenSession((await running.session("first")).key._replace(name=f"s{n}", tenant=tenant), 1.0) for n in range(2 * BATCH + 1)]
    await running.state.store.apply(old)
    assert len(await names(running)) == 2 * BATCH + 2
    await running.restart()
    await running.settled()
    assert await names(running) == {"first"}


async def test_the_file_is_compacted_at_most_once_a_day(proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    running = await proxy(upstream)
    compacted: list[float] = []

    async def compact() -> None:
        compacted.append(running.state.clock())

    monkeypatch.setattr(running.state.store.retention, "compact", compact)
    for name in ("a", "b", "c"):
        await running.chat("hi", session=name)
    sweeper = await aged(running, a=31, b=30 - 1 / 24, c=29)
    for hours in (0, 2, 4, 26, 28):
        running.state.clock = lambda hours=hours: NOW + hours * 3600  # type: ignore[misc]
        await sweeper.sweep()
    assert compacted == [NOW, NOW + 26 * 3600]


async def test_a_session_whose_request_has_just_come_is_never_erased(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("one", session="s")
    sweeper = await aged(running, s=31)
    store = running.state.store
    before = await running.session("s")
    seen = await awake(running.state, running.holder.current(), before)
    assert seen == before
    assert await sweeper.sweep() == 0
    await aged(running, s=31)
    assert await sweeper.sweep() == 1
    gone = await awake(running.state, running.holder.current(), before)  # erased at the very moment: it begins anew
    assert gone and gone.messages == 0
    assert await store.session(before.key) is not None


@pytest.mark.parametrize("age", [0.5, 31])
async def test_an_old_session_goes_on_where_it_was(proxy: StartProxy, upstream: ScriptedUpstream, age: float) -> None:
    running = await proxy(upstream, store=SQLITE)
    append = {"X-Context-Mode": "append"}
    await running.chat("one", session="s", headers=append)
    sweeper = await aged(running, s=age)
    said, _ = await asyncio.gather(running.chat("two", session="s", headers=append), sweeper.sweep())
    assert said.status == 200
    await running.settled()
    assert (await running.log("s"))[-2:] == ["user: two", "assistant: ok"]


async def test_memory_files_that_cannot_be_erased_keep_their_session(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream)
    await running.chat("hi", session="s")
    sweeper = await aged(running, s=31)

    async def refused(_: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(running.state.notes.files, "erase", refused)
    assert await sweeper.sweep() == 0
    assert await names(running) == {"s"}
    assert "could not be erased: Read-only file system" in caplog.text


async def test_a_store_that_does_not_answer_is_told(proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture) -> None:
    running = await proxy(upstream)
    sweeper = await aged(running)
    await running.state.store.close()
    assert await sweeper.sweep() == 0
    assert "sessions that are not used any more could not be erased" in caplog.text


async def test_a_timer_begins_work_again_and_again_until_it_is_closed() -> None:
    tasks, rounds, done = Tasks(), [0.0, 0.0, 0.0], asyncio.Event()
    timers, begun = Timers(tasks), []

    async def work() -> None:
        begun.append(1)
        if not rounds:
            timers.close()
            done.set()

    timers.start("work", work, lambda: rounds.pop() if rounds else 1e6)
    async with asyncio.timeout(30):
        await done.wait()
    assert len(begun) == 2, "the third was called off"
