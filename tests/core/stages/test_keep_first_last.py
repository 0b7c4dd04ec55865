"""The first message and the newest stay."""

from __future__ import annotations

from typing import Any

import pytest

from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.stages.keep_first_last import KeepFirstLast
from ctxproxy.core.transcript import Entry, Transcript
from ctxproxy.core.validity import violations
from tests.core.histories import assistant, call, context, long_turn, result, transcript, user
from tests.core.stages.tables import rewrite, texts


def chat(messages: int) -> list[Message]:
    """H1, A1, H2, … so many."""
    return [user(f"H{n // 2 + 1}") if n % 2 == 0 else assistant(f"A{n // 2 + 1}") for n in range(messages)]


RAN = [call("a"), result("a", "ra")], [call("b"), result("b", "rb")], [call("c"), result("c", "rc")]
LEAVES_ALONE: list[tuple[list[Message], dict[str, Any], tuple[int, ...], str]] = [
    (chat(1), {}, (), "one message"),
    (chat(3), {}, (), "three messages"),
    (chat(5), {}, (), "of five the first and the last four are all (004-13)"),
    (chat(7), {"last": 6}, (), "the first and the last six are all"),
    (chat(7), {"max_tokens": 1000}, (), "it has no more tokens"),
    (chat(7), {}, (1, 2), "what goes is pinned"),
    ([user("H1"), *RAN[0], assistant("A1"), user("H2")], {"last": 3}, (), "the last three begin inside a group that reaches to the first"),
    ([user("H1"), assistant("A1"), user("H2"), *RAN[0]], {"last": 3}, (), "without the answer two questions would meet"),
]


@pytest.mark.parametrize(("messages", "options", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], options: dict[str, Any], pinned: tuple[int, ...], why: str) -> None:
    stage = KeepFirstLast(**options)
    assert [e.message for e in rewrite(stage, messages, context(), pinned)] == messages, why
    assert not stage.due(transcript(messages, pinned), context())


REWRITES: list[tuple[list[Message], dict[str, Any], list[str], str]] = [
    (chat(6), {}, ["H1", "A2", "H3", "A3"], "an even number: the last three (004-13)"),
    (chat(7), {}, ["H1", "A2", "H3", "A3", "H4"], "an odd number: the last four (004-13)"),
    (chat(8), {}, ["H1", "A3", "H4", "A4"], "eight"),
    (chat(21), {}, ["H1", "A9", "H10", "A10", "H11"], "many"),
    (chat(9), {"last": 2}, ["H1", "A4", "H5"], "a number of one's own"),
    (chat(9), {"last": 1}, ["H1", "A4", "H5"], "one more than told where two questions would meet"),
    (chat(9), {"first": 2, "last": 3}, ["H1", "A1", "H4", "A4", "H5"], "the first two"),
    (chat(9), {"first": 0, "last": 3}, ["H4", "A4", "H5"], "a window (ConversationBufferWindowMemory)"),
    (chat(9), {"first": 0, "last": 4}, ["H3", "A3", "H4", "A4", "H5"], "a window begins with a question"),
    (chat(9), {"max_tokens": 20}, ["H1", "A3", "H4", "A4", "H5"], "by tokens, five each: one answer more than fits keeps roles in turn"),
    (chat(9), {"max_tokens": 1}, ["H1", "A4", "H5"], "the last question stays whatever it has"),
    ([user("H1"), *RAN[0], *RAN[1], *RAN[2]], {}, ["H1", "", "rb", "", "rc"], "one turn, whole groups"),
    ([user("H1"), assistant("A1"), user("H2"), *RAN[0], *RAN[1], *RAN[2]], {}, ["H1", "A1", "H2", "", "rb", "", "rc"], "a turn that is under way"),
    ([user("H1"), assistant("A1"), user("H2"), *RAN[0], assistant("A2"), user("H3")], {}, ["H1", "", "ra", "A2", "H3"], "no call without result"),
]


@pytest.mark.parametrize(("messages", "options", "left", "why"), REWRITES, ids=[row[-1] for row in REWRITES])
def test_rewrites(messages: list[Message], options: dict[str, Any], left: list[str], why: str) -> None:
    stage = KeepFirstLast(**options)
    assert stage.due(transcript(messages), context(10**6))
    after = rewrite(stage, messages, context(10**6))
    assert texts(after) == left, why
    kept = [entry.message for entry in after]
    assert violations(kept) == []
    assert alternates(kept)
    assert not stage.due(Transcript(after), context(10**6))


def test_rewrites_so_that_the_rule_finds_nothing_more_to_do() -> None:
    """Nine messages: the last four begin inside a group of which five stay; of six messages the rule would keep three."""
    two = [user("H1"), assistant("A1"), user("H2"), call("a"), result("a", "ra"), assistant("A2"), user("H3"), assistant("A3")]
    grown = [*two, user("H4")]
    wide = [user("H0"), assistant("A0"), user("H1"), assistant(None, tool_calls=call("a").fields["tool_calls"]), result("a", "ra")]
    odd = [*wide, assistant("A1"), user("H2"), assistant("A2"), user("H3")]
    for messages in (two, grown, odd, odd[2:], long_turn(9)):
        after = rewrite(KeepFirstLast(), messages, context(10**6))
        assert not KeepFirstLast().due(Transcript(after), context(10**6))


def test_words_of_ours_before_the_first_message_stay() -> None:
    framed = Transcript((Entry(user("pins"), 5, origin="inserted"), Entry(assistant("noted"), 5, origin="inserted"), *transcript(chat(9)).entries))
    for first in (0, 1):
        (fold,) = KeepFirstLast(first=first, last=3).propose(framed, context())
        assert fold.span.start == 2 + first  # type: ignore[union-attr]
    assert text_of(framed.entries[2].message) == "H1"
