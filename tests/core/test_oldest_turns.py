"""Which turns may go, and what tells of them afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ctxproxy.core.applying import apply
from ctxproxy.core.frames import Background, is_frame
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.oldest_turns import Told, cut_before, told_by, turns_to_trim, with_background
from ctxproxy.core.openings import opened, parted
from ctxproxy.core.records import Summary
from ctxproxy.core.stages.base import Context
from ctxproxy.core.transcript import Fold, Span, Transcript
from tests.core.histories import FILLER, assistant, call, context, count, count_text, result, transcript, user

ROOMY = 100_000


def turn(n: int) -> list[Message]:
    return [user(f"q{n} " + FILLER * 6), call(f"c{n}"), result(f"c{n}", f"r{n}"), assistant(f"a{n} " + FILLER * 6)]


MESSAGES = [*turn(0), *turn(1), *turn(2), user("now")]
BASE = transcript(MESSAGES)


def told(before: Transcript = BASE, target: int = ROOMY, **more: Any) -> Context:
    return replace(context(target), originals={entry.tip: entry.message for entry in before.entries}, **more)


def summary(until: int, text: str = "They chose SQLite.", kind: Any = "llm") -> Summary:
    return Summary(BASE.entries[until - 1].tip, text, kind, "m", until, count_text(text), 0.0, 1.0, 2.0)


def starts(messages: Sequence[Message], pinned: Sequence[int] = ()) -> list[int]:
    return [span.start for span in turns_to_trim(transcript(messages, pinned), context())]


def test_the_turns_that_count_are_those_of_which_something_can_go_and_the_last() -> None:
    assert starts(MESSAGES) == [0, 4, 8, 12]
    assert starts(MESSAGES, [4]) == [0, 4, 8, 12]
    assert starts([user("q"), assistant("a"), *MESSAGES], [0]) == [2, 6, 10, 14]
    assert starts([]) == [0]


def test_words_of_ours_make_no_turn() -> None:
    framed = apply(BASE, [Fold(Span(0, 4), (user("a summary"), assistant("noted")))], "summarize", count)
    assert [span.start for span in turns_to_trim(framed, context())] == [2, 6, 10]


def test_a_cut_takes_out_all_before_a_turn_but_what_must_stay() -> None:
    cut = cut_before(transcript(MESSAGES, [3]), 8, told())
    assert [fold.span for fold in cut.folds] == [Span(0, 3), Span(4, 8)]
    assert cut.tokens == sum(entry.tokens for at, entry in enumerate(BASE.entries[:8]) if at != 3)
    assert cut.tips == tuple(entry.tip for at, entry in enumerate(BASE.entries[:8]) if at != 3)


def test_without_the_originals_at_hand_a_cut_knows_what_goes_now() -> None:
    assert cut_before(BASE, 8, context()).tips == tuple(entry.tip for entry in BASE.entries[:8])


def test_the_summary_that_reaches_furthest_is_taken_a_models_before_another() -> None:
    cut = cut_before(BASE, 8, told())
    assert told_by(BASE, cut, []) == Told(None, 0)
    assert told_by(BASE, cut, [summary(12), summary(4)]) == Told(summary(4), 4)
    assert told_by(BASE, cut, [summary(4), summary(8, kind="extractive"), summary(8)]) == Told(summary(8), 8)


def placed(before: Transcript, at: int, given: Context) -> Transcript:
    cut = cut_before(before, at, given)
    return apply(before, with_background(before, cut, told_by(before, cut, given.summaries), given, "old", ""), "trim", count)


def test_what_tells_of_them_opens_the_first_kept_user_message() -> None:
    after = placed(BASE, 8, told(summaries=[summary(8)]))
    frame, message = parted(after.entries[0].message)
    assert "They chose SQLite." in text_of(frame)
    assert message.raw == MESSAGES[8].raw


NOTHING = [
    (told(), "no summary is ready"),
    (told(summarizer="off", summaries=[summary(8)]), "nobody summarizes"),
    (told(target=sum(e.tokens for e in BASE.entries[8:]) + 50, summaries=[summary(8)]), "no room"),
]


@pytest.mark.parametrize(("given", "why"), NOTHING, ids=[row[-1] for row in NOTHING])
def test_nothing_tells_of_them_where(given: Context, why: str) -> None:
    assert placed(BASE, 8, given).entries == BASE.entries[8:], why


def test_a_frame_stands_before_a_user_message_that_may_not_be_changed() -> None:
    for before, at in ((BASE, 12), (transcript(MESSAGES, [8]), 8)):
        after = placed(before, at, told(summaries=[summary(at)]))
        assert is_frame(after.entries[0].message)
        assert after.entries[1].message.role == "assistant"
        assert after.entries[2:] == before.entries[at:]


def test_over_the_target_what_tells_of_them_may_have_what_it_gained() -> None:
    after = placed(BASE, 8, told(target=10, summaries=[summary(8)]))
    assert "They chose SQLite." in text_of(after.entries[0].message)
    assert after.tokens < BASE.tokens


def test_without_originals_an_earlier_opening_is_read_as_what_it_is() -> None:
    first = opened(MESSAGES[0], Background("They chose SQLite."), 3, "en")
    before = transcript([first, *MESSAGES[1:]])
    text = text_of(placed(before, 8, context(ROOMY)).entries[0].message)
    assert text.startswith("[Background: 2 earlier turns in short, not a new request]\nThey chose SQLite.\n[End of")
    assert "q0" not in text


def test_without_a_model_passages_of_the_originals_stand_there() -> None:
    messages = [user("The shop has the number 4711. " + FILLER * 6), *MESSAGES[1:]]
    before = transcript(messages)
    assert "4711" in text_of(placed(before, 8, told(before, summarizer="extractive")).entries[0].message)
