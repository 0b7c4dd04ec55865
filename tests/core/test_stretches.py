"""Which oldest stretch gives way: whole groups, newest turns kept if they fit, never what must stay."""

from __future__ import annotations

import pytest

from ctxproxy.core import frames
from ctxproxy.core.applying import apply
from ctxproxy.core.messages import Directives, Message, make, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.records import Summary
from ctxproxy.core.stretches import (
    READ_AGAIN_BYTES,
    bridged,
    framed,
    last_tip,
    oldest_stretch,
    read_again,
    ready_within,
    stretch_to,
    tokens_of,
    up_to,
)
from ctxproxy.core.transcript import Entry, Fold, Span, Transcript
from ctxproxy.core.validity import violations
from tests.core.histories import assistant, call, count, long_turn, result, talk, transcript, user


def sizes(t: Transcript, start: int) -> int:
    return sum(entry.tokens for entry in t.entries[start:])


def test_the_newest_turns_are_kept_if_they_fit() -> None:
    t = transcript(talk(10))
    stretch = oldest_stretch(t, 4, sizes(t, 14))
    assert stretch is not None
    assert stretch.spans == (Span(0, 14),)
    assert stretch.tip == t.entries[13].tip


def test_fewer_turns_are_kept_if_not_all_fit() -> None:
    t = transcript(talk(10))
    stretch = oldest_stretch(t, 4, sizes(t, 16))
    assert stretch is not None
    assert stretch.spans == (Span(0, 16),)


def test_no_turn_is_kept_where_none_is_wanted_but_the_last_user_message() -> None:
    t = transcript(talk(10))
    stretch = oldest_stretch(t, 0, 100_000)
    assert stretch is not None
    assert stretch.spans == (Span(0, 20),)


def test_the_cut_falls_inside_the_one_long_turn_between_groups() -> None:
    t = transcript(long_turn(20))
    stretch = oldest_stretch(t, 4, sizes(t, 31) + t.entries[0].tokens)
    assert stretch is not None
    assert stretch.spans == (Span(1, 31),)


def test_where_nothing_fits_only_the_newest_group_and_the_last_user_message_stay() -> None:
    t = transcript(long_turn(20))
    stretch = oldest_stretch(t, 4, 0)
    assert stretch is not None
    assert stretch.spans == (Span(1, 39),)


@pytest.mark.parametrize("messages", [[], [user("only one")], [user("a"), call("c"), result("c", "x")]])
def test_there_may_be_nothing_that_can_give_way(messages: list[Message]) -> None:
    assert oldest_stretch(transcript(messages), 4, 0) is None


def test_pinned_entries_and_those_kept_out_part_the_stretch() -> None:
    messages = talk(6)
    messages[5] = make({**messages[5].fields})
    messages[8] = user("keep me", Directives(never_summarize=True))
    stretch = oldest_stretch(transcript(messages, pinned=[2]), 0, 0)
    assert stretch is not None
    assert stretch.spans == (Span(0, 2), Span(3, 8), Span(9, 12))


def test_what_stays_counts_against_the_room() -> None:
    messages = talk(6)
    free, held = transcript(messages), transcript(messages, pinned=[0])
    room = sizes(free, 8)
    assert oldest_stretch(free, 4, room).spans[-1].end == 8  # type: ignore[union-attr]
    assert oldest_stretch(held, 4, room).spans[-1].end == 10  # type: ignore[union-attr]


def test_the_tip_is_that_of_the_newest_message_told_of() -> None:
    assert last_tip(Entry(user("x"), 1, covers=("a", "b"))) == "b"
    t = transcript(talk(3))
    without = Transcript((Entry(t.entries[0].message, 9), *t.entries[1:]))
    assert oldest_stretch(Transcript((without.entries[0], *t.entries[4:])), 0, 0).tip == t.entries[5].tip  # type: ignore[union-attr]
    assert oldest_stretch(Transcript((without.entries[0], t.entries[-1])), 0, 0).tip == ""  # type: ignore[union-attr]


def test_what_stands_for_originals_is_read_as_they_were_said_if_all_are_at_hand() -> None:
    said = talk(2)
    t = transcript(said)
    originals = {entry.tip: entry.message for entry in t.entries}
    told = Entry(user("told"), 9, covers=(t.entries[0].tip, t.entries[1].tip), origin="inserted")
    ours, marked = Entry(assistant("ok"), 5, origin="inserted"), Entry(user("marked"), 5, tip=t.entries[2].tip, origin="edited")
    assert read_again([told, ours, marked], originals) == [said[0], said[1], ours.message, said[2]]
    del originals[t.entries[1].tip]
    assert read_again([told, ours, marked], originals) == [told.message, ours.message, said[2]]


def test_originals_that_are_more_than_can_be_read_in_time_are_not_read() -> None:
    huge = user("x" * READ_AGAIN_BYTES)
    entry = Entry(user("marked"), 5, tip="t", origin="edited")
    assert read_again([entry], {"t": huge}) == [entry.message]


def test_spans_are_cut_at_an_index() -> None:
    t = transcript(talk(4))
    spans = (Span(0, 2), Span(3, 6))
    assert up_to(spans, 4) == (Span(0, 2), Span(3, 4))
    assert up_to(spans, 3) == up_to(spans, 2) == (Span(0, 2),)
    assert up_to(spans, 9) == spans
    assert tokens_of(t, spans) == sum(t.entries[i].tokens for i in (0, 1, 3, 4, 5))
    assert tokens_of(t, ()) == 0


def test_of_ready_summaries_the_one_that_reaches_furthest_within_the_stretch_is_taken_and_a_models_before_another() -> None:
    t = transcript([*talk(3)[:-1], call("c"), result("c", "r"), *talk(2)])
    stretch = oldest_stretch(t, 0, 0)
    assert stretch is not None

    def ready(at: int, kind: str = "llm") -> Summary:
        return Summary(t.entries[at].tip, f"{kind} {at}", kind, "m", 1, 9, 0, 0, 0)  # type: ignore[arg-type]

    foreign, nothing = Summary("f" * 32, "foreign", "llm", "m", 1, 9, 0, 0, 0), Summary("", "no tip", "llm", "m", 1, 9, 0, 0, 0)
    assert ready_within(t, stretch, []) == (None, 0)
    assert ready_within(t, stretch, [foreign, nothing, ready(6), ready(len(t.entries) - 1)]) == (None, 0), "6 is a call without its result"
    assert ready_within(t, stretch, [ready(1), ready(7, "extractive"), ready(3)]) == (ready(7, "extractive"), 8)
    assert ready_within(t, stretch, [ready(3, "extractive"), ready(3), ready(3, "extractive")]) == (ready(3), 4)


def test_a_short_answer_at_the_end_of_the_stretch_serves_the_frame_as_the_assistants_side() -> None:
    messages = [*talk(2)[:-1], user("thanks"), assistant("You are welcome."), user("next?")]
    t = transcript(messages)
    assert oldest_stretch(t, 1, 100_000).spans == (Span(0, 5),)  # type: ignore[union-attr]
    assert oldest_stretch(transcript([*talk(2)[:-1], user("next?")]), 1, 100_000).spans == (Span(0, 4),)  # type: ignore[union-attr]


# ---------------------------------------------------------------- what stands in its place
TEXT = frames.frame_text(frames.Background("Told."), "en")
SIDES = {
    "user|user": [user("u0"), assistant("a"), call("c1"), result("c1", "r"), user("u1")],
    "user|assistant": [user("u0"), call("c1", path="x"), result("c1", "r" * 900), call("c2"), result("c2", "r")],
    "user|assistant, no call": [user("u0"), assistant("a"), assistant("b"), call("c2"), result("c2", "r")],
    "user|assistant, a user's last": [user("u0"), assistant("a"), user("u"), assistant("b"), user("end")],
    "|user": [user("u0"), assistant("a"), user("u1")],
    "|assistant": [user("u0"), assistant("a"), user("u1"), assistant("b"), user("end")],
    "tool|user": [user("u"), call("c1"), result("c1", "r"), user("u0"), assistant("a"), user("end")],
    "assistant|user": [user("u"), assistant("a"), user("u0"), assistant("b"), user("end")],
    "assistant|assistant": [user("u"), assistant("a"), user("u0"), assistant("b"), user("end")],
    "system in the middle": [user("u"), make({"role": "system", "content": "note"}), assistant("a"), user("end")],
}
SPANS = {
    "user|user": Span(1, 4),
    "user|assistant": Span(1, 3),
    "user|assistant, no call": Span(1, 3),
    "user|assistant, a user's last": Span(1, 3),
    "|user": Span(0, 2),
    "|assistant": Span(0, 1),
    "tool|user": Span(3, 5),
    "assistant|user": Span(2, 4),
    "assistant|assistant": Span(2, 3),
    "system in the middle": Span(2, 3),
}


@pytest.mark.parametrize("case", SIDES)
def test_whatever_stands_beside_it_a_frame_breaks_no_rule(case: str) -> None:
    t = transcript(SIDES[case])
    by = framed(t, SPANS[case], TEXT, "en")
    after = [entry.message for entry in apply(t, [Fold(SPANS[case], by)], "summarize", count).entries]
    assert any(text_of(message).startswith(TEXT) for message in by)
    assert violations(after) == violations(SIDES[case])
    assert alternates(after) or not alternates(SIDES[case]), [m.role for m in after]
    assert after[0].role == "user"
    assert after[-1].raw == SIDES[case][-1].raw


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("case", SIDES)
def test_whatever_stands_beside_it_a_further_span_breaks_no_rule(case: str, later: bool) -> None:
    t = transcript(SIDES[case])
    by = bridged(t, SPANS[case], "en", count, 10_000, later=later)
    after = [entry.message for entry in apply(t, [Fold(SPANS[case], by)], "summarize", count).entries]
    assert violations(after) == violations(SIDES[case])
    assert alternates(after) or not alternates(SIDES[case]), [m.role for m in after]
    assert after[0].role == "user"


def test_a_conversation_that_begins_behind_a_system_message_begins_with_the_user_still() -> None:
    t = transcript([make({"role": "system", "content": "note"}), user("u"), assistant("a"), user("end")])
    for span, roles in {Span(0, 2): ["user"], Span(1, 2): ["user"], Span(0, 3): []}.items():
        assert [message.role for message in bridged(t, span, "en", count, 0, later=False)] == roles


def test_the_last_group_of_a_later_span_stays_in_short_if_that_is_less() -> None:
    t = transcript(SIDES["user|assistant"])
    by = bridged(t, Span(1, 3), "en", count, 10_000, later=True)
    assert [message.role for message in by] == ["assistant", "tool"]
    assert bridged(t, Span(1, 3), "en", count, 5, later=True) == ()


@pytest.mark.parametrize(
    ("end", "kept", "spans"),
    [
        (9, (), [(0, 9)]),
        (8, (), [(0, 7)]),
        (9, (0,), [(1, 9)]),
        (9, (4,), [(0, 2), (5, 9)]),
        (9, (3, 4, 6), [(0, 2), (5, 6), (7, 9)]),
        (7, (8, 6), [(0, 6)]),
        (2, (0, 1), []),
        (0, (), []),
    ],
)
def test_the_spans_of_a_stretch_are_whole_groups_without_what_is_kept(end: int, kept: tuple[int, ...], spans: list[tuple[int, int]]) -> None:
    messages = [user("a"), user("b"), call("x"), result("x", "1"), result("x", "2"), user("c"), user("d"), call("y"), result("y", "1"), user("e")]
    found = stretch_to(transcript(messages), end, frozenset(kept))
    assert (list(found.spans) if found else []) == spans
