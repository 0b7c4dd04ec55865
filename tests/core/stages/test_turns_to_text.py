"""Finished turns without their calls."""

from __future__ import annotations

import pytest

from ctxproxy.core.messages import Directives, Message, text_of, tool_calls
from ctxproxy.core.pipeline import run
from ctxproxy.core.stages.base import Context, make_stage
from ctxproxy.core.stages.turns_to_text import TurnsToText
from tests.core.histories import FILLER, assistant, call, context, result, talk, transcript, user
from tests.core.stages.tables import changed, rewrite, texts

STAGE = TurnsToText()
LONG = FILLER * 20


def did(says: str | None = None, content: str = LONG, call_id: str = "c") -> list[Message]:
    return [call(call_id, says=says), result(call_id, content)]


def turn(n: int) -> list[Message]:
    return [user(f"q{n}"), *did(f"let me see {n}"), *did(), assistant(f"a{n}")]


def roles(messages: list[Message], told: Context | None = None, pinned: tuple[int, ...] = ()) -> str:
    return "".join(entry.message.role[0] for entry in rewrite(STAGE, messages, told, pinned))


LEAVES_ALONE = [
    ([*turn(0), *turn(1), *turn(2), *turn(3), user("now")], context(), "five turns: half of them can go"),
    ([user("q"), *did(), *did()], context(), "the current turn"),
    ([*turn(0), user("now")], context(10_000), "the prompt is within its target"),
    (talk(3), context(), "no calls"),
    ([user("q"), user(LONG), user("now")], context(), "no answers"),
]


@pytest.mark.parametrize(("messages", "told", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], told: Context, why: str) -> None:
    assert changed(rewrite(STAGE, messages, told)) == [], why


def test_each_finished_turn_keeps_what_was_asked_and_what_was_answered_last() -> None:
    entries = rewrite(STAGE, [*turn(0), *turn(1), *turn(2), user("now")])
    assert texts(entries) == ["q0", "a0", "q1", "a1", "q2", "a2", "now"]
    assert changed(entries) == []


def test_all_of_them_even_where_one_would_be_enough() -> None:
    assert roles([*turn(0), *turn(1), user("now")], context(400)) == "uauau"


def test_the_open_turn_keeps_its_calls() -> None:
    assert roles([*turn(0), *turn(1), *turn(2), user("q3"), *did(), *did()]) == "uauauauatat"


def test_a_text_beside_calls_is_the_answer_where_there_is_no_later_one() -> None:
    entries = rewrite(STAGE, [user("q"), *did("first"), *did("I found it."), *did(), user("now")])
    assert texts(entries) == ["q", "I found it.", "now"]
    assert not tool_calls(entries[1].message)
    assert entries[1].covers


def test_such_an_answer_stays_at_the_next_pass() -> None:
    once = run(transcript([user("q"), *did("I found it. " + LONG), user("now")]), [STAGE], context()).transcript
    assert [entry.message.role for entry in once.entries] == ["user", "assistant", "user"]
    assert run(once, [STAGE], context()).transcript is once


def test_calls_behind_the_last_answer_go_too() -> None:
    assert texts(rewrite(STAGE, [user("q"), *did(), assistant("done"), *did(), user("now")])) == ["q", "done", "now"]


def test_a_turn_without_an_answer_keeps_a_word_in_its_place() -> None:
    entries = rewrite(STAGE, [user("q"), *did(), user("now")])
    assert [entry.message.role for entry in entries] == ["user", "assistant", "user"]
    assert text_of(entries[1].message) == "[part of the earlier conversation omitted]"


def test_what_stands_before_the_first_user_message_is_a_turn_too() -> None:
    assert roles([assistant("Hello"), *did(), assistant("How can I help?"), user("now")]) == "au"


def test_pinned_groups_and_what_the_client_keeps_out_stay() -> None:
    assert roles([user("q"), *did(), *did(), assistant("a"), user("now")], pinned=(1,)) == "uatau"
    kept = Message(call("c").raw, call("c").fields, Directives(never_summarize=True))
    assert roles([user("q"), *did(), kept, result("c", LONG), assistant("a"), user("now")]) == "uatau"


def test_an_answer_beside_calls_stays_with_them_where_something_behind_it_must_stay() -> None:
    assert roles([user("q"), *did(), *did("found"), *did(), user("now")], pinned=(5,)) == "uatatu"


def test_options_are_checked() -> None:
    assert changed(rewrite(TurnsToText(below_turns=9), [*(m for n in range(6) for m in turn(n)), user("now")])) == []
    assert len(rewrite(TurnsToText(below_turns=9), [*(m for n in range(6) for m in turn(n)), user("now")])) == 13
    with pytest.raises(ValueError, match="turns_to_text"):
        make_stage({"stage": "turns_to_text", "below_turns": 0})
