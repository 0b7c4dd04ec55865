"""The oldest half of the turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.openings import parted
from ctxproxy.core.pipeline import Outcome, run
from ctxproxy.core.records import Summary
from ctxproxy.core.stages.base import Context, make_stage
from ctxproxy.core.stages.trim_turns import TrimTurns
from ctxproxy.core.transcript import Transcript
from tests.core.histories import FILLER, assistant, call, context, count_text, result, transcript, user
from tests.core.stages.tables import changed, rewrite

STAGE = TrimTurns()
ROOMY = 100_000
OPENING = "[Background: "


def turn(n: int, words: int = 6) -> list[Message]:
    return [user(f"q{n} " + FILLER * words), call(f"c{n}"), result(f"c{n}", f"r{n}"), assistant(f"a{n} " + FILLER * words)]


def turns(n: int, words: int = 6) -> list[Message]:
    """So many turns, the last of them just asked."""
    return [m for at in range(n - 1) for m in turn(at, words)] + [user(f"q{n - 1}")]


def told(before: Transcript, target: int = ROOMY, **more: Any) -> Context:
    return replace(context(target), originals={entry.tip: entry.message for entry in before.entries}, **more)


def summary(before: Transcript, until: int, text: str = "They chose SQLite.", kind: Any = "llm") -> Summary:
    """Of all before the entry at `until`."""
    return Summary(before.entries[until - 1].tip, text, kind, "m", until, count_text(text), 0.0, 1.0, 2.0)


def trimmed(messages: Sequence[Message], target: int = ROOMY, pinned: Sequence[int] = (), **more: Any) -> Outcome:
    before = transcript(messages, pinned)
    outcome = run(before, [STAGE], told(before, target, **more))
    assert outcome.failed == ()
    return outcome


def asked(outcome: Outcome) -> list[str]:
    """The first words of the user messages, without what stands before them."""
    users = [parted(entry.message)[-1] for entry in outcome.transcript.entries if entry.message.role == "user"]
    return [text_of(message).split(" ")[0] for message in users]


LEAVES_ALONE = [
    (turns(20), context(ROOMY), "as many turns as are allowed"),
    (turns(40), replace(context(ROOMY), max_turns=None), "no limit and within the target"),
    (turns(4), context(), "too few turns: they become text"),
    ([user("q"), *turn(0)[1:], *turn(1)[1:]], context(), "one turn"),
]


@pytest.mark.parametrize(("messages", "given", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], given: Context, why: str) -> None:
    given = given if why.startswith("no limit") else replace(given, max_turns=20)
    assert changed(rewrite(STAGE, messages, given)) == [], why
    assert len(rewrite(STAGE, messages, given)) == len(messages)


@pytest.mark.parametrize(("before", "left"), [(21, 11), (22, 11), (23, 12), (100, 13), (5, 5), (20, 20)])
def test_over_the_most_turns_half_of_them_go_rounded_down_until_few_enough_are_left(before: int, left: int) -> None:
    outcome = trimmed(turns(before), max_turns=20)
    assert asked(outcome) == [f"q{n}" for n in range(before - left, before)]


@pytest.mark.parametrize(("share", "left"), [(0.99, 5), (0.4, 3), (0.05, 3)])
def test_over_the_target_half_of_them_go_and_half_again_while_there_are_five(share: float, left: int) -> None:
    messages = turns(10)
    outcome = trimmed(messages, int(transcript(messages).tokens * share))
    assert asked(outcome) == [f"q{n}" for n in range(10 - left, 10)]


def test_its_own_limit_goes_before_that_of_the_context() -> None:
    outcome = run(transcript(turns(9)), [TrimTurns(max_turns=8)], replace(context(ROOMY), max_turns=20))
    assert len(asked(outcome)) == 5


def test_at_once_without_a_summary_which_is_asked_for() -> None:
    messages = turns(21)
    outcome = trimmed(messages, max_turns=20)
    assert changed(outcome.transcript.entries) == []
    assert outcome.wants == transcript(messages).entries[39].tip


def test_a_ready_summary_stands_at_the_start_of_the_first_kept_user_message() -> None:
    messages = turns(21)
    before = transcript(messages)
    outcome = trimmed(messages, max_turns=20, summaries=[summary(before, 40)])
    first, *rest = outcome.transcript.entries
    assert text_of(first.message) == (
        "[Background: 10 earlier turns in short, not a new request]\nThey chose SQLite.\n"
        f"[End of the background; the message itself:]\n\n{text_of(messages[40])}"
    )
    assert (first.tip, first.origin) == (before.entries[40].tip, "edited")
    assert rest == list(before.entries[41:])
    assert outcome.wants == ""


def test_without_a_summarizer_nothing_stands_in() -> None:
    outcome = trimmed(turns(21), max_turns=20, summarizer="off", summaries=[summary(transcript(turns(21)), 40)])
    assert changed(outcome.transcript.entries) == []
    assert outcome.wants == ""


def test_without_a_model_the_best_of_the_originals_stands_in() -> None:
    messages = [user("We chose PostgreSQL 15 for the orders of shop 4711. " + FILLER * 3), assistant("Noted. " + FILLER * 9), *turns(21)]
    outcome = trimmed(messages, max_turns=20, summarizer="extractive")
    assert "PostgreSQL 15" in text_of(outcome.transcript.entries[0].message)
    assert outcome.wants == ""


def test_a_summary_of_most_of_what_has_to_go_is_gone_by_where_that_is_enough() -> None:
    messages = turns(23)
    outcome = trimmed(messages, max_turns=20, summaries=[summary(transcript(messages), 40)])
    assert len(asked(outcome)) == 13
    assert outcome.wants == ""


FALLS_SHORT = [
    (25, 8, 20, ROOMY, "llm", "of too small a part"),
    (23, 40, 12, ROOMY, "llm", "too many turns would be left"),
    (23, 40, 20, 600, "llm", "too many tokens would be left"),
    (23, 40, 20, ROOMY, "extractive", "no model's"),
]


@pytest.mark.parametrize(("total", "until", "most", "target", "kind", "why"), FALLS_SHORT, ids=[row[-1] for row in FALLS_SHORT])
def test_else_it_tells_what_it_can_and_a_further_one_is_asked_for(total: int, until: int, most: int, target: int, kind: str, why: str) -> None:
    messages = turns(total)
    outcome = trimmed(messages, target, max_turns=most, summaries=[summary(transcript(messages), until, kind=kind)])
    assert "They chose SQLite." in text_of(outcome.transcript.entries[0].message)
    assert len(asked(outcome)) < total - until // 4, why
    assert outcome.wants not in ("", transcript(messages).entries[until - 1].tip)


def test_a_second_trim_carries_the_first_summary_on_whole_and_asks_for_one_of_all() -> None:
    messages = turns(32)
    whole = transcript(messages)
    known = told(whole, max_turns=20, summaries=[summary(whole, 40)])
    first = run(transcript(messages[:81]), [STAGE], known).transcript
    longer = Transcript((*first.entries, *whole.entries[81:]))
    second = run(longer, [STAGE], known)
    text = text_of(second.transcript.entries[0].message)
    assert asked(second) == [f"q{n}" for n in range(21, 32)]
    assert text.startswith("[Background: 21 earlier turns in short, not a new request]\nThey chose SQLite.\n[End of")
    assert text.count(OPENING) == 1
    assert second.wants == whole.entries[83].tip
    both = replace(known, summaries=[*known.summaries, summary(whole, 84, "They chose SQLite and port 8787.")])
    assert "port 8787." in text_of(run(longer, [STAGE], both).transcript.entries[0].message)


def test_where_the_first_kept_message_is_the_last_one_a_frame_stands_before_it() -> None:
    messages = [*turn(0), user("q1")]
    before = transcript(messages)
    outcome = trimmed(messages, max_turns=1, summaries=[summary(before, 4)])
    assert [entry.message.role for entry in outcome.transcript.entries] == ["user", "assistant", "user"]
    assert "They chose SQLite." in text_of(outcome.transcript.entries[0].message)
    assert outcome.transcript.entries[-1] == before.entries[-1]


def test_what_is_pinned_or_kept_out_stays_where_it_is_and_counts_no_turn() -> None:
    messages = turns(21)
    messages[8] = Message(messages[8].raw, messages[8].fields, Directives(never_summarize=True))
    outcome = trimmed(messages, pinned=[0, 40], max_turns=20, summaries=[summary(transcript(messages), 40)])
    entries = outcome.transcript.entries
    assert [text_of(entries[at].message)[:2] for at in (0, 2)] == ["q0", "q2"]
    assert any("They chose SQLite." in text_of(entry.message) for entry in entries)
    assert text_of(entries[-41].message).startswith("q10 ")
    assert run(outcome.transcript, [STAGE], told(transcript(messages), max_turns=11)).transcript is outcome.transcript


def test_a_summary_that_leaves_no_gain_is_left_out() -> None:
    messages = [m for n in range(21) for m in (user(f"q{n}"), assistant("ok"))][:-1]
    outcome = trimmed(messages, max_turns=3, summaries=[summary(transcript(messages), 38, FILLER * 9)])
    assert len(asked(outcome)) == 3
    assert outcome.transcript.tokens < 60


def test_the_summary_that_will_be_wanted_is_the_one_of_what_will_go() -> None:
    before = transcript(turns(8))
    given = told(before, before.tokens * 10 // 8)
    assert STAGE.cut_tip(before, given) == before.entries[19].tip  # ten turns by then, of which five go
    assert STAGE.cut_tip(before, replace(given, summaries=[summary(before, 20)])) == ""
    assert STAGE.cut_tip(before, replace(given, summaries=[summary(before, 12)])) == ""
    assert STAGE.cut_tip(before, replace(given, summaries=[summary(before, 8)])) != ""
    assert STAGE.cut_tip(before, replace(given, max_turns=8)) == before.entries[15].tip


NONE_AHEAD = [
    ([user("q")], 10, None, "one turn"),
    ([], 10, None, "nothing"),
    (turns(3), transcript(turns(3)).tokens, None, "too few turns for half of them to go"),
    (turns(20), ROOMY, 20, "turns alone are too many: the summary stands at the request after"),
]


@pytest.mark.parametrize(("messages", "target", "most", "why"), NONE_AHEAD, ids=[row[-1] for row in NONE_AHEAD])
def test_none_is_wanted_ahead_where_no_turn_will_go(messages: list[Message], target: int, most: int | None, why: str) -> None:
    before = transcript(messages)
    assert STAGE.cut_tip(before, told(before, target, max_turns=most)) == "", why


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="trim_turns"):
        make_stage({"stage": "trim_turns", "min_turns": 1})
