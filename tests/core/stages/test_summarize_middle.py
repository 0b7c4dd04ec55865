"""The stage `summarize_middle`: what it leaves alone, what it rewrites, and when it is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ctxproxy.core.frames import is_frame
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.pipeline import Outcome, run
from ctxproxy.core.records import Summary
from ctxproxy.core.stages.base import Context
from ctxproxy.core.stages.summarize import Summarize
from ctxproxy.core.stages.summarize_middle import SummarizeMiddle
from ctxproxy.core.transcript import Transcript
from ctxproxy.core.validity import violations
from tests.core.histories import assistant, context, count_text, long_turn, talk, transcript, user

TALK = talk(12)


def room(limit: int, **changes: Any) -> Context:
    return replace(context(int(limit * 0.55), limit), summary_max_tokens=limit // 4, **changes)


def folded(messages: Sequence[Message], limit: int = 900, stage: SummarizeMiddle | None = None, **changes: Any) -> Outcome:
    return run(transcript(messages), [stage or SummarizeMiddle()], room(limit, **changes))


def messages_of(outcome: Outcome) -> list[Message]:
    return [entry.message for entry in outcome.transcript.entries]


# ---------------------------------------------------------------- leaves alone
SHORT = [part for n in range(8) for part in (user(f"q{n}"), assistant(f"a{n}"))]


@pytest.mark.parametrize(
    ("messages", "limit", "stage", "changes"),
    [
        (TALK, 100_000, SummarizeMiddle(), {}),
        (TALK, 900, SummarizeMiddle(), {"summarizer": "off"}),
        (talk(5)[:10], 300, SummarizeMiddle(), {}),
        (TALK, 900, SummarizeMiddle(keep_first=100), {}),
        ([*SHORT, user("now")], 60, SummarizeMiddle(), {}),
        ([*TALK[:5], *(user("k " * 200, Directives(never_summarize=True)) for _ in range(3)), *TALK[-5:]], 900, SummarizeMiddle(), {}),
    ],
    ids=["it fits", "switched off", "nothing between", "all is head", "a middle not worth a frame", "the client keeps all out"],
)
def test_leaves_alone(messages: list[Message], limit: int, stage: SummarizeMiddle, changes: dict[str, Any]) -> None:
    outcome = folded(messages, limit, stage, **changes)
    assert outcome.failed == ()
    assert outcome.transcript.entries == transcript(messages).entries


# ---------------------------------------------------------------- rewrites
def test_the_first_five_and_the_last_five_stay_and_one_frame_tells_what_was_between() -> None:
    after = messages_of(folded(TALK))
    assert after[:5] == TALK[:5]
    assert after[-5:] == TALK[-5:]
    (frame,) = after[5:-5]
    assert is_frame(frame)
    assert frame.role == "assistant", "it stands between two user messages"
    assert text_of(frame).splitlines()[1] == "Summary of the 15 messages that stood here:"
    assert alternates(after)


def test_groups_are_never_parted_at_either_end() -> None:
    messages = [*long_turn(4), assistant("done " * 30), *TALK[:6], *long_turn(3)]
    after = messages_of(folded(messages, 4000))
    assert after[:5] == messages[:5]
    assert after[-6:] == messages[-6:], "the call that the fifth last message answers stays with it"
    assert violations(after) == []


def test_it_keeps_as_many_as_it_is_told_to() -> None:
    after = messages_of(folded(TALK, stage=SummarizeMiddle(keep_first=0, keep_last=1)))
    assert is_frame(after[0])
    assert after[-1] == TALK[-1]
    assert len(after) == 3
    assert messages_of(folded(TALK, stage=SummarizeMiddle(keep_first=2, keep_last=3)))[:2] == TALK[:2]


def test_pinned_messages_of_the_middle_stay_where_they_are() -> None:
    t = transcript(TALK, pinned=[9])
    after = run(t, [SummarizeMiddle()], room(900))
    assert TALK[9] in messages_of(after)
    assert sum(map(is_frame, messages_of(after))) == 1
    assert alternates(messages_of(after))


def test_a_second_summary_takes_the_first_one_in_and_counts_all_that_it_stands_for() -> None:
    first = folded(TALK)
    more = [assistant("a " * 60), *talk(6)]
    new = transcript([*TALK, *more]).entries[len(TALK) :]
    grown = Transcript((*first.transcript.entries, *new))
    second = run(grown, [SummarizeMiddle()], room(900, originals={e.tip: e.message for e in transcript([*TALK, *more]).entries}))
    (frame,) = [m for m in messages_of(second) if is_frame(m)]
    assert f"Summary of the {len(TALK) + len(more) - 10} messages that stood here:" in text_of(frame)
    assert text_of(frame).count("messages that stood here") == 1
    assert messages_of(second)[-5:] == more[-5:]


def test_a_ready_summary_is_used_and_what_it_does_not_tell_stays_where_that_fits() -> None:
    t = transcript(TALK)
    told = Summary(t.entries[12].tip, "Told: boats.", "llm", "m", 3, 4, 0, 0, 0)
    stage = SummarizeMiddle(max_summary_tokens=200)
    outcome = folded(TALK, 2000, stage, summaries=[told])
    after = messages_of(outcome)
    assert "Told: boats." in text_of(after[5])
    assert "8 messages" in text_of(after[5])
    assert after[-12:] == TALK[-12:]
    assert outcome.wants == ""
    assert len(messages_of(folded(TALK, 1700, stage, summaries=[told]))) == 11, "the head counts against the room too"


def test_a_summary_is_wanted_in_advance_only_where_the_prompt_would_have_to_shrink() -> None:
    t, stage = transcript(TALK), SummarizeMiddle(max_summary_tokens=200)
    assert stage.cut_tip(t, room(900)) == t.entries[-6].tip
    assert stage.cut_tip(t, room(100_000)) == ""
    told = Summary(t.entries[12].tip, "Told: boats.", "llm", "m", 3, 4, 0, 0, 0)
    assert stage.cut_tip(t, room(2000, summaries=[told])) == ""


def test_a_frame_that_its_note_makes_too_long_is_left_and_with_it_all_that_it_would_tell_of() -> None:
    messages = [*TALK[:9], user("kept " * 9, Directives(never_summarize=True)), *TALK[9:]]
    t = transcript(messages)
    too_long = 0
    for chars in (*range(100, 2600, 400), *range(2600, 2900, 16)):
        told = room(900, pins=("p" * chars,))
        plain, noted = list(Summarize.propose(SummarizeMiddle(), t, told)), list(SummarizeMiddle().propose(t, told))
        assert len(noted) in (0, len(plain))
        too_long += bool(plain) and not noted
        assert bool(noted) == any(is_frame(m) for m in messages_of(run(t, [SummarizeMiddle()], told)))
    assert too_long > 0


def test_a_chinese_conversation_gets_a_chinese_note() -> None:
    messages = [part for n in range(10) for part in (user(f"第{n}个订单A-10{n}什么时候发货？" * 6), assistant("已经出库，地址不能再改。" * 6))]
    after = messages_of(folded([*messages, user("那第一个订单呢？")], 1500, language="zh"))
    assert text_of(after[5]).splitlines()[1] == "历史摘要（代替此处的 11 条消息）："


def test_its_frame_is_as_long_as_it_may_be() -> None:
    messages = [*talk(30), assistant("b " * 50), *talk(2)]
    long, short = (folded(messages, 6000, SummarizeMiddle(max_summary_tokens=most)) for most in (None, 120))
    assert frame_tokens(short) <= 120 + 60 < frame_tokens(long)


def frame_tokens(outcome: Outcome) -> int:
    (frame,) = [entry for entry in outcome.transcript.entries if is_frame(entry.message)]
    return frame.tokens


def test_its_texts_are_counted_as_they_are() -> None:
    outcome = folded(TALK)
    assert all(entry.tokens == 4 + count_text(text_of(entry.message)) for entry in outcome.transcript.entries)
