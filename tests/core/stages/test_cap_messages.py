"""Of too many messages the oldest go."""

from __future__ import annotations

import pytest

from ctxproxy.core.messages import Message
from ctxproxy.core.stages.cap_messages import CapMessages
from ctxproxy.core.transcript import Transcript
from ctxproxy.core.validity import violations
from tests.core.histories import assistant, call, context, long_turn, result, transcript, user
from tests.core.stages.tables import rewrite, texts
from tests.core.stages.test_keep_first_last import chat

FREE, STRICT = CapMessages(), CapMessages(strict=True)
TOOLS = [user("H1"), call("a"), result("a", "ra"), assistant("A1"), user("H2"), assistant("A2")]

LEAVES_ALONE = [
    (FREE, chat(2), (), "two"),
    (FREE, chat(4), (), "four (004-23)"),
    (STRICT, chat(5), (), "five"),
    (STRICT, [*chat(4), user("H3"), user("H4")], (), "questions that are not answered yet do not count"),
    (FREE, [user("x")] * 9, (), "no answer yet"),
    (FREE, long_turn(9), (), "the turn that is under way stays whole (D5)"),
    (FREE, chat(6), (0, 1), "the oldest are pinned"),
    (FREE, chat(6), (1,), "an assistant message would come first"),
]


@pytest.mark.parametrize(("stage", "messages", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(stage: CapMessages, messages: list[Message], pinned: tuple[int, ...], why: str) -> None:
    assert [e.message for e in rewrite(stage, messages, context(), pinned)] == messages, why
    assert not stage.due(transcript(messages, pinned), context())


REWRITES = [
    (STRICT, chat(6), ["A1", "H2", "A2", "H3", "A3"], "six become five, an assistant message first (004-22)"),
    (FREE, chat(6), ["H2", "A2", "H3", "A3"], "a whole turn goes (D14)"),
    (FREE, chat(7), ["H2", "A2", "H3", "A3", "H4"], "and the newest question on top"),
    (FREE, chat(12), ["H5", "A5", "H6", "A6"], "seven to go: four turns"),
    (STRICT, TOOLS, ["", "ra", "A1", "H2", "A2"], "a question goes without its turn"),
    (STRICT, [*TOOLS, user("H3"), assistant("A3")], ["A1", "H2", "A2", "H3", "A3"], "a group goes whole"),
    (FREE, TOOLS, ["H2", "A2"], "the turn of a call goes whole"),
    (CapMessages(max_messages=1), chat(6), ["H3", "A3"], "never less than the newest turn"),
    (CapMessages(max_messages=1, strict=True), chat(5), ["A2", "H3"], "another number"),
]


@pytest.mark.parametrize(("stage", "messages", "left", "why"), REWRITES, ids=[row[-1] for row in REWRITES])
def test_rewrites(stage: CapMessages, messages: list[Message], left: list[str], why: str) -> None:
    assert stage.due(transcript(messages), context(10**6))
    after = rewrite(stage, messages, context(10**6))
    assert texts(after) == left, why
    assert violations([entry.message for entry in after]) == []
    assert not stage.due(Transcript(after), context(10**6))


def test_rewrites_a_turn_under_way_by_groups_where_it_is_strict_and_keeps_its_question() -> None:
    messages = long_turn(9)
    after = rewrite(STRICT, messages, context(10**6))
    assert [entry.message for entry in after] == [messages[0], *messages[-6:]]
