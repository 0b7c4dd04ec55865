"""The full rounds of the garbage collector wait for a lull, but not for ever."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from ctxproxy.proxy.garbage import LATEST_S, NEVER, SOONEST_S, FullRounds
from ctxproxy.proxy.lull import QUIET_S, Lull
from tests.proxy.test_lull import Clock


class Ring:
    """What only the collector can free."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def _collector() -> Iterator[None]:
    """Nothing is collected but by the code under test, and all is as before in the end."""
    thresholds = gc.get_threshold()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def ring() -> weakref.ref[Ring]:
    return weakref.ref(Ring())


@pytest.mark.usefixtures("_collector")
async def test_a_full_round_waits_for_a_lull_and_not_for_ever() -> None:
    clock = Clock()
    lull = Lull(clock)
    rounds = FullRounds(lull, clock)
    rounds.begin()
    gc.collect(1)  # as the collector does it by itself: there has been work
    with lull.request():
        left = ring()
        clock.now_s += SOONEST_S
        await rounds.look()
        assert left() is not None
        clock.now_s += LATEST_S
        await rounds.look()
        assert left() is None
    gc.collect(1)
    again = ring()
    clock.now_s += SOONEST_S / 2
    await rounds.look()
    assert again() is not None
    clock.now_s += SOONEST_S / 2 + QUIET_S
    await rounds.look()
    assert again() is None


@pytest.mark.usefixtures("_collector")
async def test_where_nothing_was_done_there_is_no_round() -> None:
    clock = Clock()
    rounds = FullRounds(Lull(clock), clock)
    rounds.begin()
    left = ring()
    clock.now_s += 2 * LATEST_S
    await rounds.look()
    assert left() is not None
    gc.collect()


@pytest.mark.usefixtures("_collector")
async def test_what_the_start_has_made_is_left_out_and_the_young_are_looked_at_as_ever() -> None:
    young, middle, _ = gc.get_threshold()
    FullRounds(Lull()).begin()
    assert gc.get_threshold() == (young, middle, NEVER)
    assert gc.get_freeze_count() > 1000
