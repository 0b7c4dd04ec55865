"""Both ends stay, the middle goes, one note says so."""

from __future__ import annotations

import pytest

from ctxproxy.core.markers import acknowledgement
from ctxproxy.core.messages import Message, make, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.stages.base import Context
from ctxproxy.core.stages.middle_out import MiddleOut
from ctxproxy.core.validity import violations
from tests.core.histories import FILLER, assistant, call, context, long_turn, result, talk, transcript, user
from tests.core.stages.tables import rewrite, texts

NOTE = acknowledgement("en")[:2]
BIG = FILLER * 6
SYSTEM = make({"role": "system", "content": "s " + BIG})
LEAVES_ALONE = [
    (talk(3), context(10_000), (), "it fits"),
    ([user("now")], context(), (), "the last user message"),
    ([user("now"), call("c"), result("c", BIG)], context(), (), "the newest group"),
    (talk(2), context(), (0, 1, 2, 3), "all is pinned"),
    ([user("a"), assistant("b"), user("c")], context(), (0,), "a note would be longer than what it stands for"),
]


@pytest.mark.parametrize(("messages", "told", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], told: Context, pinned: tuple[int, ...], why: str) -> None:
    assert [e.message for e in rewrite(MiddleOut(), messages, told, pinned)] == messages, why


REWRITES = [
    (talk(6), context(65 * 5 + 40), (), ["q0", "a0", "q1", NOTE, "q5", "a5", "la"], "head and tail in turn, the note between two questions"),
    (talk(6), context(65 * 3 + 40), (), ["q0", "a0", NOTE, "a5", "la"], "or between two answers"),
    (talk(6), context(65 * 2 + 40), (), ["q0", NOTE, "la"], "an answer goes with the middle where the note could not stand behind it"),
    ([user("q0"), *talk(4)[1:7], assistant("small"), user("la")], context(50), (), ["q0", NOTE, "la"], "or before it"),
    (talk(6), context(65 + 40), (), ["q0", NOTE, "la"], "the first"),
    (talk(6), context(10), (), ["la"], "nothing but the last question"),
    (talk(6), context(65 * 3 + 60), (6,), ["q0", NOTE, "q3", NOTE, "la"], "what is pinned stays where it was"),
    ([*talk(4)[:8], user("x"), user("la")], context(65 * 3 + 60), (), ["q0", "a0", "q1", NOTE, "x", "la"], "roles that were not in turn need not be"),
    (
        [user("q0"), SYSTEM, assistant("a0 " + BIG), user("q1 " + BIG), *talk(2)],
        context(90),
        (1,),
        ["q0", "s ", "la"],
        "beside a system message that stays",
    ),
]


@pytest.mark.parametrize(("messages", "told", "pinned", "left", "why"), REWRITES, ids=[row[-1] for row in REWRITES])
def test_rewrites(messages: list[Message], told: Context, pinned: tuple[int, ...], left: list[str], why: str) -> None:
    after = rewrite(MiddleOut(), messages, told, pinned)
    assert texts(after, 2) == left, why
    kept = [entry.message for entry in after]
    assert alternates(kept) or not alternates(messages)
    assert violations(kept) == violations(messages)


def test_rewrites_one_long_turn_with_whole_groups_at_both_ends() -> None:
    messages = long_turn(40)
    before = transcript(messages)
    after = rewrite(MiddleOut(), messages, context(before.tokens // 2))
    kept = [entry.message for entry in after]
    assert kept[0] == messages[0]
    assert kept[-1] == messages[-1]
    at = [text_of(message) for message in kept].index(acknowledgement("en"))
    assert abs(2 * at - len(kept)) < 6
    assert kept[:at] == messages[:at]
    assert violations(kept) == []
    assert before.tokens * 0.45 < sum(entry.tokens for entry in after) <= before.tokens // 2
