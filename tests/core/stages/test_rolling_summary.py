"""One running summary stands for all but the newest messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from ctxproxy.core import frames
from ctxproxy.core.frames import is_frame
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.pipeline import Outcome, run
from ctxproxy.core.records import Summary
from ctxproxy.core.stages.base import Context, make_stage
from ctxproxy.core.stages.rolling_summary import RollingSummary
from ctxproxy.core.transcript import Entry, Transcript
from ctxproxy.core.validity import violations
from tests.core.histories import FILLER, assistant, context, count, count_text, long_turn, talk, transcript, user

ROOMY = context(10**6)


def rolling(**options: Any) -> RollingSummary:
    stage = make_stage({"stage": "rolling_summary", **options})
    assert isinstance(stage, RollingSummary)
    return stage


def told(tip: str, text: str = "They spoke about boats.") -> Summary:
    return Summary(tip, text, "llm", "m", 2, count_text(text), 0, 0, 0)


def outcome(stage: RollingSummary, it: Transcript | Sequence[Message], context: Context = ROOMY) -> Outcome:
    done = run(it if isinstance(it, Transcript) else transcript(it), [stage], context)
    assert done.failed == ()
    return done


def after(stage: RollingSummary, it: Transcript | Sequence[Message], context: Context = ROOMY) -> list[Message]:
    return [entry.message for entry in outcome(stage, it, context).transcript.entries]


def grown(before: Transcript, more: Sequence[Message]) -> Transcript:
    """A transcript with more messages behind it."""
    tips = transcript([*talk(40), *more]).entries[-len(more) :]
    return Transcript((*before.entries, *(Entry(m, count(m), e.tip) for m, e in zip(more, tips, strict=True))))


LEAVES_ALONE: list[tuple[RollingSummary, list[Message], Context, str]] = [
    (rolling(), talk(30), ROOMY, "it fits and no rule says otherwise"),
    (rolling(), talk(9), context(10, 10**6), "no more messages than are kept"),
    (rolling(when=[{"messages": 62}]), talk(30), ROOMY, "one message short"),
    (rolling(when=[{"messages": 9}]), talk(30), replace(ROOMY, summarizer="off"), "no summaries"),
    (rolling(keep_turns=5, every_turns=5), talk(9), ROOMY, "nine finished turns, five are kept: four have left"),
    (rolling(keep_turns=1, every_turns=1, min_tokens=transcript(talk(9)).tokens + 1), talk(9), ROOMY, "one token short of the floor"),
    (rolling(min_tokens=10**6), talk(30), context(10), "under the floor, whatever the target"),
    (rolling(keep_turns=1, every_turns=1), [user("hi"), assistant("hello"), user("a"), assistant("b"), user("c")], ROOMY, "not worth a frame"),
]


@pytest.mark.parametrize(("stage", "messages", "room", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(stage: RollingSummary, messages: list[Message], room: Context, why: str) -> None:
    assert after(stage, messages, room) == messages, why
    assert not stage.due(transcript(messages), room)


REWRITES: list[tuple[dict[str, Any], Context, int, str]] = [
    ({}, context(10, 10**6), 20, "the last 20 messages stay (004-S4)"),
    ({"keep_messages": 7}, context(10, 10**6), 7, "another number"),
    ({"keep_messages": 0}, context(10, 10**6), 1, "all but the question (ConversationSummaryMemory)"),
    ({"keep_tokens": 66 * 4 + 9}, context(10, 10**6), 5, "so many tokens"),
    ({"keep_fraction": 0.5}, context(10, 2 * (66 * 4 + 9)), 5, "a part of the budget"),
    ({"keep_turns": 3}, context(10, 10**6), 7, "three finished turns and the question"),
    ({"keep_turns": 9, "dynamic_window": True}, context(10, 10**6), 7, "a simple conversation: three turns (003-41)"),
    ({"when": [{"messages": 61}]}, ROOMY, 20, "due by messages"),
    ({"when": [{"tokens": 10**9}, {"fraction": 0.003}]}, ROOMY, 20, "due by one of two clauses"),
    ({"keep_turns": 5, "every_turns": 5}, ROOMY, 11, "due by turns"),
    ({}, context(10, 600), 9, "no more than fit"),
]


@pytest.mark.parametrize(("options", "room", "left", "why"), REWRITES, ids=[row[-1] for row in REWRITES])
def test_rewrites(options: dict[str, Any], room: Context, left: int, why: str) -> None:
    messages = talk(30)
    first, *rest = after(rolling(**options), messages, room)
    assert is_frame(first)
    assert rest[-left:] == messages[-left:], why
    assert len(rest) <= left + 1
    assert violations([first, *rest]) == []
    assert count(first) <= 256 + 40


def test_rewrites_a_complex_conversation_with_more_turns_left() -> None:
    topics = ["boats", "breads", "clouds", "drums", "engines", "flutes", "grapes", "hills", "islands", "jewels"]
    messages: list[Message] = []
    for n, topic in enumerate(topics):
        text = f"{topic}{topic} W-{n}711 X-{n}712 Y-{n}713 Z-{n}714 " + f"{topic} " * (60 if n % 3 == 0 else 1)
        messages += [user(text), assistant("fine " + FILLER)]
    rest = after(rolling(dynamic_window=True, keep_turns=1), [*messages, user("kites?")], context(10, 10**6))
    assert [m for m in rest if m in messages][-14:] == messages[-14:]
    assert messages[4] not in rest


def test_rewrites_one_turn_of_many_calls_inside() -> None:
    messages = long_turn(30)
    rest = after(rolling(), messages, context(10, 10**6))
    assert rest[0] == messages[0]
    assert is_frame(rest[1])
    assert rest[3:] == messages[-20:]


def test_what_the_client_keeps_out_stays() -> None:
    messages = talk(30)
    messages[3] = Message(messages[3].raw, messages[3].fields, Directives(never_summarize=True))
    assert messages[3] in after(rolling(when=[{"messages": 9}]), messages)


def test_once_done_it_is_not_due_until_enough_has_come() -> None:
    stage = rolling(keep_turns=5, every_turns=5)
    done = outcome(stage, talk(10)).transcript
    assert not stage.due(done, ROOMY)
    assert raws(outcome(stage, done).transcript) == raws(done)
    more = [m for n in range(5) for m in (assistant(f"b{n} " + FILLER * 6), user(f"r{n} " + FILLER * 6))]
    assert not stage.due(grown(done, more[:8]), ROOMY)
    second = outcome(stage, grown(done, more)).transcript
    assert sum(is_frame(entry.message) for entry in second.entries) == 1
    assert second.entries[0].covers[: len(done.entries[0].covers)] == done.entries[0].covers


def raws(it: Transcript) -> list[bytes]:
    return [entry.message.raw for entry in it.entries]


def test_a_ready_summary_is_carried_on_and_its_messages_are_not_told_again() -> None:
    it = transcript(talk(10))
    stage = rolling(keep_turns=5, every_turns=5)
    tip = stage.cut_tip(transcript(talk(5)), ROOMY)
    assert tip == it.entries[9].tip
    ready = replace(ROOMY, summaries=[told(tip)])
    done = outcome(stage, it, ready)
    assert done.wants == ""
    assert text_of(done.transcript.entries[0].message) == f"{frames.WORDINGS['en'].title}\nThey spoke about boats."
    assert [entry.message for entry in done.transcript.entries[2:]] == talk(10)[10:]


def test_a_summary_is_wanted_at_the_fifth_and_the_tenth_turn() -> None:
    """003-08: what will leave next is told in advance, once."""
    stage = rolling(keep_turns=5, every_turns=5)
    assert [turns for turns in range(12) if stage.cut_tip(transcript(talk(turns)), ROOMY)] == [5, 6, 7, 8, 9, 10, 11]
    first = stage.cut_tip(transcript(talk(5)), ROOMY)
    known = replace(ROOMY, summaries=[told(first)])
    assert [turns for turns in range(5, 10) if stage.cut_tip(transcript(talk(turns)), known)] == []
    done = outcome(stage, talk(10), known).transcript
    assert stage.cut_tip(done, known) == transcript(talk(10)).entries[19].tip
    assert rolling(keep_turns=5, every_turns=5, min_tokens=10**6).cut_tip(transcript(talk(7)), ROOMY) == ""
    assert rolling().cut_tip(transcript(talk(30)), ROOMY) == ""
    pinned = transcript(talk(5), pinned=range(10))
    assert stage.cut_tip(pinned, ROOMY) == ""


def test_an_older_summary_is_enough_while_what_it_does_not_tell_is_not_called_for() -> None:
    stage = rolling(when=[{"messages": 30}])
    it = transcript(talk(16))
    early, late = it.entries[9].tip, it.entries[1].tip
    assert outcome(stage, it, replace(ROOMY, summaries=[told(early)])).wants == ""
    assert outcome(stage, it, replace(ROOMY, summaries=[told(late)])).wants != ""
    tight = replace(context(500, 2000), summaries=[told(early)])
    assert outcome(rolling(keep_messages=4), it, tight).wants != ""
    assert outcome(rolling(keep_messages=4), it, replace(tight, summaries=[told(it.entries[25].tip)])).wants == ""


@pytest.mark.parametrize("options", [{"when": [{}]}, {"when": [{"turns": 5}]}, {"keep_messages": -1}, {"every_turns": 0}, {"keep_fraction": 2}])
def test_an_impossible_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="rolling_summary"):
        rolling(**options)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(options, RollingSummary)
