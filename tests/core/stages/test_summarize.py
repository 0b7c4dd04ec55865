"""The stage `summarize`: what it leaves alone, what it rewrites, and the laws it keeps whatever comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core import frames
from ctxproxy.core.frames import is_frame, parse
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.pipeline import Outcome, run
from ctxproxy.core.records import Summary
from ctxproxy.core.stages.base import Context
from ctxproxy.core.stages.summarize import Summarize
from ctxproxy.core.transcript import Entry, Fold, Transcript
from ctxproxy.core.validity import violations
from tests.core.histories import assistant, call, context, count, count_text, long_turn, result, talk, transcript, transcripts, user


def given_room(t: Transcript, limit: int, **changes: Any) -> Context:
    base = replace(context(int(limit * 0.55), limit, keep_recent_turns=4), summary_max_tokens=max(1, limit // 4))
    return replace(base, **changes)


def ready(tip: str, text: str = "Told: the user asked about boats.", kind: Any = "llm") -> Summary:
    return Summary(tip, text, kind, "m", 3, count_text(text), 0, 0, 0)


def folded(messages: Sequence[Message], limit: int, **changes: Any) -> Outcome:
    t = transcript(messages)
    return run(t, [Summarize()], given_room(t, limit, **changes))


def messages_of(outcome: Outcome) -> list[Message]:
    return [entry.message for entry in outcome.transcript.entries]


# ---------------------------------------------------------------- leaves alone
TALK = talk(12)


@pytest.mark.parametrize(
    ("messages", "limit", "changes"),
    [
        (TALK, 100_000, {}),
        (TALK, 500, {"summarizer": "off"}),
        ([user("x " * 3000)], 500, {}),
        ([user("x " * 3000), call("c"), result("c", "y " * 3000)], 500, {}),
        ([user("hi"), assistant("hello"), user("z " * 3000)], 500, {}),
        ([user("a " * 300, Directives(never_summarize=True)), user("b " * 300, Directives(never_summarize=True)), user("z")], 100, {}),
    ],
    ids=["it fits", "switched off", "one message", "only the newest group", "a stretch not worth a frame", "the client keeps all out"],
)
def test_it_leaves_alone(messages: list[Message], limit: int, changes: dict[str, Any]) -> None:
    outcome = folded(messages, limit, **changes)
    assert outcome.failed == ()
    assert outcome.actions == ()


def test_what_it_has_summarized_it_does_not_summarize_again() -> None:
    first = folded(TALK, 250)
    assert len(first.transcript.entries) == 3
    again = Summarize().propose(first.transcript, given_room(first.transcript, 250, target=10))
    assert list(again) == []


def test_a_frame_that_would_be_longer_than_what_it_replaces_is_not_proposed() -> None:
    t = transcript([user("short " * 20), assistant("words " * 20), user("z " * 3000)])
    assert list(Summarize().propose(t, given_room(t, 4000, target=100, pins=("pin " * 400,)))) == []


# ---------------------------------------------------------------- rewrites
def test_the_oldest_turns_become_one_frame_and_an_acknowledgement() -> None:
    outcome = folded(TALK, 700)
    first, second, *rest = messages_of(outcome)
    assert is_frame(first)
    assert first.role == "user"
    assert second.raw == frames.acknowledgement("en").raw
    assert rest == TALK[-len(rest) :]
    assert rest[0].role == "user"
    assert outcome.transcript.tokens <= 700 * 0.55
    assert outcome.actions == (("summarize", 1),)


LAST = [user("Show the table."), assistant("row " * 60 + "end"), user("Add a column.")]
"""A last turn of some 70 tokens and a question about it."""


def test_a_short_last_turn_stays_whole_on_top_of_the_target() -> None:
    outcome = folded([*talk(12), *LAST], 240)
    assert is_frame(messages_of(outcome)[0])
    assert messages_of(outcome)[-3:] == LAST
    assert outcome.transcript.tokens <= 240 * 0.8


@pytest.mark.parametrize(
    ("messages", "limit", "changes"),
    [
        ([*talk(12), *LAST], 150, {}),
        ([*talk(12), *LAST[:-1], user("long " * 60)], 240, {}),
        ([*talk(12), *LAST], 240, {"keep_recent_turns": 1}),
    ],
    ids=["too much of the window", "beside a long question", "no turn is to be kept"],
)
def test_a_last_turn_gives_way_as_others_do(messages: list[Message], limit: int, changes: dict[str, Any]) -> None:
    outcome = folded(messages, limit, **changes)
    assert outcome.actions == (("summarize", 1),)
    assert LAST[0] not in messages_of(outcome)
    assert outcome.transcript.tokens <= limit


def test_a_last_turn_gives_way_where_nothing_else_can() -> None:
    outcome = folded([user("q"), assistant("a"), *LAST[:-1], user("long " * 20)], 150)
    assert LAST[0] not in messages_of(outcome)


def test_it_wants_the_summary_that_it_stands_in_for() -> None:
    outcome = folded(TALK, 700)
    frame = outcome.transcript.entries[0]
    assert outcome.wants == frame.covers[-1]
    t = transcript(TALK)
    assert Summarize().cut_tip(t, given_room(t, 700)) == outcome.wants
    assert Summarize().cut_tip(t, given_room(t, 100_000)) == ""
    assert folded(TALK, 700, summarizer="extractive").wants == ""


def test_no_other_summary_is_wanted_in_advance_while_a_ready_one_would_do() -> None:
    t = transcript(TALK)
    tip = folded(TALK, 700).wants
    assert Summarize().cut_tip(t, given_room(t, 700, summaries=[ready(tip)])) == ""
    assert Summarize().cut_tip(t, given_room(t, 700, summaries=[ready(t.entries[3].tip)])) == tip
    assert Summarize().cut_tip(t, given_room(t, 700, summaries=[ready(t.entries[15].tip)])) == "", "little is untold: no call is worth it"
    plain = Summarize(fill=False)
    assert plain.cut_tip(t, given_room(t, 700, summaries=[ready(t.entries[15].tip)])) == tip
    for stage in (plain, Summarize()):
        assert stage.cut_tip(t, given_room(t, 700, summaries=[ready(tip, "x", "extractive")])) == tip, "a model has told nothing yet"


def test_a_ready_summary_takes_the_place_of_the_stand_in() -> None:
    tip = folded(TALK, 700).wants
    outcome = folded(TALK, 700, summaries=[ready(tip)])
    assert outcome.wants == ""
    assert "Told: the user asked about boats." in text_of(messages_of(outcome)[0])
    assert outcome.transcript.entries[0].covers[-1] == tip


def test_of_two_summaries_the_one_that_reaches_further_is_taken_and_a_models_before_another() -> None:
    t = transcript(TALK)
    tip = folded(TALK, 700).wants
    older = t.entries[3].tip
    summaries = [ready(tip, "EXTRACTED", "extractive"), ready(tip, "WRITTEN"), ready(older, "OLDER"), ready("f" * 32, "FOREIGN")]
    text = text_of(messages_of(folded(TALK, 700, summaries=summaries))[0])
    assert "WRITTEN" in text
    assert not any(other in text for other in ("EXTRACTED", "OLDER", "FOREIGN"))


def test_an_older_summary_is_enough_if_what_it_does_not_tell_fits() -> None:
    t = transcript(TALK)
    outcome = folded(TALK, 1500, summaries=[ready(t.entries[19].tip)], keep_recent_turns=1)
    assert outcome.wants == ""
    assert messages_of(outcome)[2:] == TALK[20:]


def test_an_older_summary_that_tells_too_little_is_followed_by_the_best_of_the_rest() -> None:
    t = transcript(TALK)
    outcome = folded(TALK, 700, summaries=[ready(t.entries[3].tip)])
    assert outcome.wants != ""
    text = text_of(messages_of(outcome)[0])
    assert text.index("Told: the user asked about boats.") < text.index("User: ")


def test_a_summary_that_ends_inside_a_group_is_not_used() -> None:
    messages = [*long_turn(12), assistant("done"), *talk(2)]
    t = transcript(messages)
    outcome = folded(messages, 2500, summaries=[ready(t.entries[1].tip, "HALF A GROUP")])
    assert outcome.actions
    assert not any("HALF A GROUP" in text_of(message) for message in messages_of(outcome))


def test_one_turn_of_many_calls_is_cut_inside_and_its_request_stays() -> None:
    messages = long_turn(30)
    outcome = folded(messages, 4000)
    after = messages_of(outcome)
    assert after[0] == messages[0]
    assert is_frame(after[1])
    assert after[1].role == "assistant"
    assert after[-2:] == messages[-2:]
    assert violations(after) == []
    assert outcome.transcript.entries[1].covers[-1] == outcome.wants
    assert "src/file_0.py" in text_of(after[1])


def test_small_talk_before_a_long_turn_does_not_take_the_frame() -> None:
    messages = [user("hi"), assistant("Hello! How can I help?"), *long_turn(30)]
    after = messages_of(folded(messages, 4000))
    assert sum(map(is_frame, after)) == 1
    assert len(text_of(next(filter(is_frame, after)))) > 500
    assert violations(after) == []
    assert alternates(after)


def test_pinned_messages_and_those_kept_out_stay_where_they_are() -> None:
    messages = talk(12)
    messages[4] = user("KEEP-OUT-1 " + "word " * 30, Directives(never_summarize=True))
    t = transcript(messages, pinned=[9])
    outcome = run(t, [Summarize()], given_room(t, 1000, target=200))
    after = messages_of(outcome)
    assert messages[4] in after
    assert messages[9] in after
    assert not any("KEEP-OUT-1" in text_of(message) for message in after if is_frame(message))
    assert alternates(after)
    assert outcome.transcript.entries[after.index(messages[9])].pinned


def test_rules_pins_and_the_users_words_stand_in_the_frame_word_for_word() -> None:
    messages = [user("RULE-7: never push to main. First task: build a boat."), assistant("ok " * 200), *talk(8)]
    background = parse(text_of(messages_of(folded(messages, 900, pins=("PIN-1 stays",)))[0]))
    assert background is not None
    assert background.pins == ("PIN-1 stays",)
    assert "RULE-7: never push to main. First task: build a boat." in background.words


@pytest.mark.parametrize(("words", "fits"), [(4, True), (60, True), (150, False)])
def test_the_frame_makes_room_for_rules_in_force_as_far_as_that_goes(words: int, fits: bool) -> None:
    rules = [f"Never touch table {n}: " + "so " * words for n in range(6)]
    t = transcript(talk(40, 2))
    outcome = run(t, [Summarize(most_share=1.0)], given_room(t, 600, rules=rules, target=590))
    background = parse(text_of(messages_of(outcome)[0]))
    assert background is not None
    assert background.rules == tuple(rule.strip() for rule in rules)
    assert (outcome.transcript.tokens <= 600) is fits


def test_the_frame_fills_what_the_rest_leaves_of_the_target_and_without_fill_only_its_own_room() -> None:
    messages = [
        part for n in range(40) for part in (user(f"wish W-{n} for city {n * 7}"), assistant(f"order R-{n} of {n * 13} pieces was made. " * 3))
    ]
    t = transcript([*messages, user("end?")])
    room = given_room(t, 2000, summary_max_tokens=100, summarizer="extractive")
    full, bare = (run(t, [Summarize(fill=fill)], room).transcript for fill in (True, False))
    assert 0.8 * room.target < full.tokens <= room.target
    assert bare.entries[0].tokens <= 100 + 0.15 * 2000 + 60 < full.entries[0].tokens


def test_a_second_summary_carries_the_first_one_on_and_there_is_one_frame() -> None:
    first = folded([user("Order W-4711 goes to Berlin."), assistant("Noted W-4711."), *talk(12)], 700)
    more = [assistant("a" * 100), *talk(8)]
    grown = transcript([*messages_of(first), *more])
    fresh = tuple(Entry(e.message, e.tokens, e.tip) for e in grown.entries[len(first.transcript.entries) :])
    second = run(Transcript((*first.transcript.entries, *fresh)), [Summarize()], given_room(grown, 700))
    after = messages_of(second)
    assert sum(map(is_frame, after)) == 1
    assert "W-4711" in text_of(after[0])
    assert "".join(map(text_of, after)).count(frames.WORDINGS["en"].title) == 1
    covers = second.transcript.entries[0].covers
    assert covers[: len(first.transcript.entries[0].covers)] == first.transcript.entries[0].covers


def test_a_chinese_conversation_gets_a_chinese_frame() -> None:
    messages = [part for n in range(10) for part in (user(f"第{n}个订单A-10{n}什么时候发货？" * 6), assistant("已经出库，地址不能再改。" * 6))]
    after = messages_of(folded([*messages, user("那第一个订单呢？")], 900, language="zh"))
    assert text_of(after[0]).startswith(frames.WORDINGS["zh"].title)
    assert text_of(after[1]) == frames.WORDINGS["zh"].acknowledgement


def test_the_options_bound_the_users_share_and_the_whole() -> None:
    messages = [part for n in range(40) for part in (user(f"wish number {n} " + "word " * 20), assistant("done " * 20))]
    t = transcript([*messages, user("end?")])
    room = given_room(t, 2000)
    much = run(t, [Summarize(keep_user_share=0.5, most_share=1.0)], room).transcript.entries[0].tokens
    little = run(t, [Summarize(keep_user_share=0.01)], room).transcript.entries[0].tokens
    assert little < much


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(transcripts(), st.sampled_from([0, 0.2, 0.5, 0.8]), st.sampled_from(["en", "zh"]), st.integers(0, 4))
def test_whatever_comes_the_list_stays_legal_and_shrinks(t: Transcript, share: float, language: Any, keep: int) -> None:
    room = replace(context(int(t.tokens * share), language=language, keep_recent_turns=keep), pins=("PIN",))
    outcome = run(t, [Summarize()], room)
    before, after = [entry.message for entry in t.entries], messages_of(outcome)
    assert outcome.failed == ()
    assert violations(after) == [] or violations(before) != []
    assert alternates(after) or not alternates(before)
    assert after[0].role == "user" or before[0].role != "user"
    assert outcome.transcript.tokens <= t.tokens
    assert all(t.entries[i].message in after for i in t.untouchable)
    assert after[-1] == before[-1]
    assert run(t, [Summarize()], room) == outcome
    assert messages_of(run(outcome.transcript, [Summarize()], room)) == after
    assert all(entry.tokens == count(entry.message) for entry in outcome.transcript.entries)


def test_its_edits_are_folds_of_whole_groups() -> None:
    t = transcript(long_turn(12))
    edits = list(Summarize().propose(t, given_room(t, 2000)))
    bounds = {group.start for group in t.groups} | {len(t.entries)}
    assert all(isinstance(edit, Fold) and set(edit.span) <= bounds for edit in edits)
