"""Time limits: who is not done in time is told, whoever lifts his is not, and one timer is enough for all."""

from __future__ import annotations

import asyncio

from ctxproxy.upstream.limits import Limits


async def test_limits_fall_due_one_by_one_in_whatever_order_they_are_set() -> None:
    loop, limits, due = asyncio.get_running_loop(), Limits(), []
    now_s = loop.time()
    over = asyncio.Event()
    for name, in_s in (("c", 0.03), ("a", 0.01), ("b", 0.02), ("lifted", 0.015)):
        limits.set(name, now_s + in_s, lambda name=name: due.append(name))
    limits.set("over", now_s + 0.04, over.set)
    limits.lift("lifted")
    limits.lift("never set")
    await over.wait()
    assert due == ["a", "b", "c"]


async def test_a_limit_that_is_set_anew_counts_from_then() -> None:
    loop, limits, due = asyncio.get_running_loop(), Limits(), []
    early, late = asyncio.Event(), asyncio.Event()
    limits.set("x", loop.time() + 0.01, lambda: due.append("as first set"))
    limits.set("x", loop.time() + 0.03, lambda: (due.append("anew"), late.set()))
    limits.set("y", loop.time() + 0.02, lambda: (due.append("y"), early.set()))
    await early.wait()
    await late.wait()
    assert due == ["y", "anew"]


async def test_the_timer_that_is_set_looks_for_all_and_goes_with_the_last() -> None:
    loop, limits = asyncio.get_running_loop(), Limits()
    limits.set("x", loop.time() + 0.01, lambda: None)
    timer = limits._timer
    for n in range(100):
        limits.set(n, loop.time() + 60, lambda: None)
        limits.lift(n)
    assert limits._timer is timer
    limits.lift("x")
    await asyncio.sleep(0.02)
    assert limits._timer is None


async def test_closed_limits_do_not_fall_due() -> None:
    loop, limits, due = asyncio.get_running_loop(), Limits(), []
    limits.set("x", loop.time() + 0.01, lambda: due.append("x"))
    limits.close()
    await asyncio.sleep(0.02)
    assert due == []


async def test_of_those_that_are_due_together_one_may_lift_another() -> None:
    loop, limits, due = asyncio.get_running_loop(), Limits(), []
    now_s = loop.time()
    limits.set("b", now_s - 1, lambda: due.append("b"))
    limits.set("a", now_s - 2, lambda: (due.append("a"), limits.lift("b")))
    await asyncio.sleep(0.02)
    assert due == ["a"]
