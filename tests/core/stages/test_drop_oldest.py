"""Leaving out the oldest."""

from __future__ import annotations

import pytest

from ctxproxy.core.markers import acknowledgement
from ctxproxy.core.messages import Directives, Message, make
from ctxproxy.core.pairing import alternates
from ctxproxy.core.stages.base import Context
from ctxproxy.core.stages.drop_oldest import DropOldest
from tests.core.histories import FILLER, assistant, call, context, long_turn, result, talk, transcript, user
from tests.core.stages.tables import rewrite, texts

STAGE = DropOldest()
NOTE = acknowledgement("en")[:2]
SYSTEM = make({"role": "system", "content": "note " + FILLER})

LEAVES_ALONE = [
    ([user("now")], context(), (), "only the last user message"),
    ([user("now"), call("c"), result("c", FILLER)], context(), (), "the pending exchange"),
    ([user("now"), assistant('{"haiku": "')], context(), (), "a prefill and its request"),
    (talk(1), context(), (0, 1), "all pinned"),
    (talk(3), context(10_000), (), "it fits"),
]


@pytest.mark.parametrize(("messages", "told", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], told: Context, pinned: tuple[int, ...], why: str) -> None:
    assert [e.message for e in rewrite(STAGE, messages, told, pinned)] == messages, why


def room_for(left: int, limit: int = 10_000) -> Context:
    """Room for so many of the 64-token messages of `talk`."""
    return context(left * 65, limit)


REWRITES = [
    (talk(5), room_for(8), ["q0", NOTE, "q2", "a2", "q3", "a3", "q4", "a4", "la"], "the goal stays, whole turns go"),
    (talk(5), room_for(2), ["q0", NOTE, "la"], "all turns but the goal and the question"),
    (talk(5), context(0, 70), ["la"], "the goal goes when it does not fit beside the question"),
    (talk(5), context(200, 220), ["q4", "a4", "la"], "a goal over its share goes with its turn"),
    ([assistant("hi " + FILLER * 9), *talk(2)], context(), ["la"], "a greeting goes, the user comes first"),
    ([SYSTEM, *talk(2)], context(), ["la"], "a system message that has come to stand first is no goal"),
]


@pytest.mark.parametrize(("messages", "told", "left", "why"), REWRITES, ids=[row[-1] for row in REWRITES])
def test_rewrites(messages: list[Message], told: Context, left: list[str], why: str) -> None:
    assert texts(rewrite(STAGE, messages, told), 2) == left, why


def test_rewrites_a_turn_with_a_pin_around_it() -> None:
    messages = [*talk(1)[:2], user("r"), call("c"), result("c", FILLER * 3), assistant("PIN"), *talk(1)]
    left = rewrite(STAGE, messages, context(), pinned=[5])
    assert "PIN" in texts(left)
    assert alternates(entry.message for entry in left)


def test_rewrites_the_question_of_a_turn_with_a_pin_where_nothing_else_is_enough() -> None:
    messages = [user("paste " + FILLER * 99), call("c"), result("c", "PIN"), assistant("so"), *talk(1)]
    assert texts(rewrite(STAGE, messages, context(0, 1100), pinned=[2]))[0].startswith("paste")
    roomless = rewrite(STAGE, [*talk(1)[:2], *messages], context(0, 150), pinned=[4])
    assert [entry.message.role for entry in roomless] == ["user", "assistant", "tool", "user"]
    assert roomless[0].tokens < 30


def test_rewrites_one_long_turn_group_by_group_oldest_first() -> None:
    messages = long_turn(300)
    left = rewrite(STAGE, messages, context(transcript(messages).tokens // 2))
    assert len(left) % 2 == 1
    assert [e.message for e in left[1:]] == messages[-(len(left) - 1) :]
    assert left[0].message == messages[0]


def test_rewrites_what_the_client_marked_before_anything_else() -> None:
    messages = talk(4)
    marked = user("q2 " + FILLER * 6, Directives(drop_first=True))
    answer = Message(messages[3].raw, messages[3].fields, Directives(drop_first=True))
    left = rewrite(STAGE, [*messages[:3], answer, marked, *messages[5:]], room_for(7))
    assert texts(left, 2) == ["q0", "a0", "q1", NOTE, "q3", "a3", "la"]


def test_rewrites_a_goal_that_the_client_marked() -> None:
    left = rewrite(STAGE, [user("goal " + FILLER * 6, Directives(drop_first=True)), *talk(2)[1:]], room_for(3))
    assert texts(left, 2) == ["q1", "a1", "la"]
