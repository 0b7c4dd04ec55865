"""Work behind the answers waits for a moment without requests and never too long."""

from __future__ import annotations

import asyncio

import pytest

from ctxproxy.proxy import lull
from ctxproxy.proxy.lull import Lull
from tests.proxy.conftest import StartProxy
from tests.scripted_upstream import ScriptedUpstream


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock, with looks at it that follow each other at once."""
    asked = Clock()
    monkeypatch.setattr(lull, "QUIET_S", 0.001)
    return asked


async def piece(quiet: Lull) -> None:
    """A piece of work that is done as soon as it is begun."""
    async with quiet.piece():
        return


async def is_waiting(work: asyncio.Task[None]) -> bool:
    """Whether it still waits after some looks at the clock."""
    done, _ = await asyncio.wait([work], timeout=0.02)
    return not done


async def test_while_a_request_is_on_its_way_nobody_begins(clock: Clock) -> None:
    quiet = Lull(clock)
    with quiet.request():
        clock.now_s += 1
        work = asyncio.create_task(piece(quiet))
        assert await is_waiting(work)
    assert await is_waiting(work)  # it has only just ended
    clock.now_s += 1
    await work


async def test_what_has_waited_for_long_begins_beside_the_requests(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lull, "PATIENT_LOOKS", 100)
    quiet = Lull(clock)
    with quiet.request():
        work = asyncio.create_task(piece(quiet))
        assert await is_waiting(work)
        await work


async def test_in_a_lull_the_next_piece_is_begun_at_once(clock: Clock) -> None:
    quiet = Lull(clock)
    clock.now_s += 1
    work = asyncio.create_task(piece(quiet))
    await asyncio.sleep(0)
    assert work.done()


async def test_pieces_are_done_one_at_a_time_and_the_next_waits_for_a_lull_of_its_own(clock: Clock) -> None:
    quiet, going = Lull(clock), asyncio.Event()

    async def long() -> None:
        async with quiet.piece():
            await going.wait()

    clock.now_s += 1
    first, second = asyncio.create_task(long()), asyncio.create_task(piece(quiet))
    assert await is_waiting(second)
    with quiet.request():
        going.set()
        await first
        assert await is_waiting(second)
        quiet._go.set()
        await second


async def test_at_the_end_nobody_waits_any_more(clock: Clock) -> None:
    quiet = Lull(clock)
    with quiet.request():
        work = asyncio.create_task(piece(quiet))
        assert await is_waiting(work)
        quiet.open()
        await work
        await piece(quiet)


async def test_the_turns_of_a_busy_time_are_read_in_one_go(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, memory={"facts": True})
    batches: list[int] = []
    put = running.state.store.facts.put

    async def counted(*values: object) -> bool:
        batches.append(1)
        return await put(*values)  # type: ignore[arg-type]

    running.state.store.facts.put = counted  # type: ignore[method-assign, assignment]
    with running.state.lull.request():
        for text in ("My name is Ann.", "My dog is called Zebulon.", "My job is pilot."):
            assert (await running.chat(text, session="s", headers={"X-Context-Mode": "append"})).text == "ok"
        assert batches == []
    await running.settled()
    assert batches == [1]
    session = await running.session("s")
    assert [one.point.value for one in await running.state.store.facts.of(session.key)] == ["Ann", "Zebulon", "pilot"]
