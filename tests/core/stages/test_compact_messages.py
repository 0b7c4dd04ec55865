"""Old long texts."""

from __future__ import annotations

from typing import Any

import pytest

from ctxproxy.core.markers import is_marker
from ctxproxy.core.messages import Directives, Message, text_of, with_fields
from ctxproxy.core.pipeline import run
from ctxproxy.core.stages.base import Context
from ctxproxy.core.stages.compact_messages import CompactMessages
from ctxproxy.core.transcript import Entry, Transcript
from tests.core.histories import FILLER, assistant, call, context, count, result, transcript, user
from tests.core.stages.tables import changed, rewrite

STAGE = CompactMessages()
MIDDLE, LONG = FILLER * 20, FILLER * 200
THINKING: dict[str, Any] = {"type": "thinking", "thinking": LONG, "signature": "SIGN-A=="}
TEXT: dict[str, Any] = {"type": "text", "text": "old answer"}

LEAVES_ALONE = [
    ([user("q"), assistant("short"), user("now")], context(), (), "too short to gain"),
    ([user("q"), assistant("a"), user(LONG)], context(), (), "the last user message"),
    ([user("q"), assistant(LONG), user("now")], context(), (1,), "pinned"),
    ([user(LONG, Directives(never_summarize=True)), user("now")], context(), (), "the client wants it whole"),
    ([user("q"), assistant(MIDDLE), user("now")], context(500, keep_recent_turns=2), (), "in a recent turn"),
    ([user("q"), call("c"), result("c", LONG), user("now")], context(), (), "a tool result"),
    ([user(MIDDLE), assistant("a"), user("now")], context(), (), "a user's text of middle length: users never become markers"),
    ([user("now"), assistant([THINKING, TEXT], tool_calls=call("c").fields["tool_calls"]), result("c", "1"), call("d"), result("d", "2")],
     context(), (), "thinking of the turn that is still going on"),
    ([user("q"), assistant([THINKING]), user("now")], context(), (), "nothing but thinking"),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "told", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], told: Context, pinned: tuple[int, ...], why: str) -> None:
    assert changed(rewrite(STAGE, messages, told, pinned)) == [], why


def test_leaves_texts_of_ours_alone() -> None:
    summary = Entry(user(LONG), count(user(LONG)), origin="inserted", stage="summarize")
    before = Transcript((summary, *transcript([user("now")]).entries))
    assert run(before, [STAGE], context()).transcript == before


def test_rewrites_answers_first_then_questions_and_the_goal_last() -> None:
    messages = [user("GOAL " + LONG), assistant("A " + LONG), user("Q " + LONG), assistant("B " + LONG), user("now")]
    tokens = transcript(messages).tokens
    assert changed(rewrite(STAGE, messages, context(tokens - 1000))) == [1]
    assert changed(rewrite(STAGE, messages, context(tokens - 3000))) == [1, 3]
    assert changed(rewrite(STAGE, messages, context(tokens - 5000))) == [1, 2, 3]
    assert changed(rewrite(STAGE, messages, context(tokens - 7000))) == [0, 1, 2, 3]


def test_rewrites_long_texts_to_head_and_tail_and_answers_to_markers_after_that() -> None:
    messages = [user("GOAL " + LONG), assistant("A " + LONG + "Z"), user("now")]
    mild = rewrite(STAGE, messages, context(600))
    assert text_of(mild[1].message).startswith("[COMPACTED: earlier assistant message “A plain filler")
    assert text_of(mild[1].message).endswith(" Z")
    hard = rewrite(STAGE, messages)
    assert is_marker(text_of(hard[1].message))
    assert "GOAL" in text_of(hard[0].message)


def test_rewrites_finished_turns_without_their_thinking_and_leaves_no_part_of_it() -> None:
    entry = rewrite(STAGE, [user("q"), assistant([THINKING, TEXT]), user("now")])[1]
    assert entry.message.content == [TEXT]
    cut = rewrite(STAGE, [user("q"), assistant([THINKING, {"type": "text", "text": LONG}]), user("now")], context(300))[1]
    assert [part["type"] for part in cut.message.content] == ["text"]
    assert cut.tokens < 260


def test_rewrites_text_of_calling_messages_and_keeps_their_signed_calls() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "SIG"}}}
    calling = call("c", says=LONG, extra=extra, path="a")
    entry = rewrite(STAGE, [user("q"), calling, result("c", "1"), user("now")])[1]
    assert is_marker(text_of(entry.message))
    assert entry.message.fields["tool_calls"] == calling.fields["tool_calls"]


def test_what_is_recent_may_be_told_in_messages() -> None:
    messages = [user("q"), *(part for n in range(4) for part in (assistant(LONG), user(f"q{n}")))]
    assert changed(rewrite(CompactMessages(recent_messages=5), messages, context(keep_recent_turns=9))) == [1, 3]
    assert changed(rewrite(CompactMessages(recent_messages=5), messages[-5:], context())) == []


class FirstWords(CompactMessages, frozen=True):
    def compact(self, entry: Entry, context: Context, *, whole: bool) -> Message:
        return with_fields(entry.message, content=f"{text_of(entry.message)[:9]} {whole}")


def test_how_one_message_is_compacted_can_be_said_by_a_stage_that_extends_this_one() -> None:
    history = [user("q"), assistant(LONG), user("now")]
    assert text_of(rewrite(FirstWords(), history, context(200))[1].message) == f"{LONG[:9]} False"
    assert text_of(rewrite(FirstWords(), [user("q"), assistant(MIDDLE), user("now")])[1].message) == f"{MIDDLE[:9]} True"
