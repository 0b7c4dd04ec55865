"""What is still to be made of something that is stored, in every store: kept until it is made, gone with what it is of."""

from __future__ import annotations

import pytest

from ctxproxy.core.dues import Due, DueNote, DueOf, DuePoints
from ctxproxy.core.effects import DropDue, Forget, OpenSession, PutDue
from ctxproxy.core.points import Point
from tests.contract.conftest import Handles
from tests.contract.samples import KEY, OTHER, begun, chain

ROWS = chain("a", "b", "c")
POINT = Point("decision", "w\ud83cay", "by train \0 €", ROWS[1].tip, 1.5, 2.5, "summary")
NOTE = DueNote((ROWS[0].tip, ROWS[1].tip), "by hand", "ann\ud83c", 2.5)
POINTS = DuePoints(ROWS[1].tip, (POINT,))


async def due(stores: Handles) -> list[Due]:
    return [one.due for one in await stores.read.dues(99)]


async def test_a_due_comes_back_as_it_was_put_until_it_is_dropped(stores: Handles) -> None:
    await stores.write.apply([*begun(KEY, ROWS), PutDue(KEY, NOTE), PutDue(KEY, POINTS)])
    assert await stores.read.dues(99) == [DueOf(KEY, NOTE), DueOf(KEY, POINTS)]
    assert await stores.read.dues(1) == [DueOf(KEY, NOTE)]
    await stores.write.apply([DropDue(KEY, "note", ROWS[1].tip), DropDue(KEY, "note", ROWS[2].tip)])
    assert await due(stores) == [POINTS]


async def test_of_a_kind_there_is_one_for_each_tip(stores: Handles) -> None:
    later = DueNote((ROWS[1].tip,), "trimmed", "", 3.0)
    await stores.write.apply([*begun(KEY, ROWS), PutDue(KEY, NOTE), PutDue(KEY, later)])
    assert await due(stores) == [later]


async def test_without_its_session_nothing_is_due(stores: Handles) -> None:
    await stores.write.apply([PutDue(OTHER, NOTE), *begun(KEY, ROWS), PutDue(KEY, NOTE)])
    assert await due(stores) == [NOTE]
    await stores.write.erase(KEY)
    await stores.write.apply([OpenSession(KEY, 5.0)])
    assert await due(stores) == []


@pytest.mark.parametrize(("forgotten", "left"), [(0, []), (1, []), (2, [NOTE, POINTS])])
async def test_what_may_tell_of_a_forgotten_message_is_not_due_any_more(stores: Handles, forgotten: int, left: list[Due]) -> None:
    await stores.write.apply([*begun(KEY, ROWS), PutDue(KEY, NOTE), PutDue(KEY, POINTS)])
    await stores.write.apply([Forget(KEY, ROWS[forgotten].tip)])
    assert await due(stores) == left
