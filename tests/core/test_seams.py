"""Which groups go so that no word of ours is needed where they stood."""

from __future__ import annotations

import pytest

from ctxproxy.core.applying import apply
from ctxproxy.core.messages import Message, make, text_of
from ctxproxy.core.seams import counted, group_end, group_start, silent_folds
from ctxproxy.core.transcript import Entry, Span, Transcript
from tests.core.histories import assistant, call, count, result, transcript, user

H1, A1, H2, A2, H3, A3, H4 = (user("H1"), assistant("A1"), user("H2"), assistant("A2"), user("H3"), assistant("A3"), user("H4"))
NOTE = make({"role": "system", "content": "note"})
LISTS = [
    ([H1, A1, H2, A2, H3], (1, 3), (), ["H1", "A2", "H3"], "a question after an answer may go with it"),
    ([H1, A1, H2, A2, H3], (1, 2), (), ["H1", "A1", "H2", "A2", "H3"], "an answer alone would leave two questions side by side"),
    ([H1, A1, H2, A2, H3, A3, H4], (1, 4), (), ["H1", "A2", "H3", "A3", "H4"], "as much of a run as leaves roles in turn"),
    ([H1, A1, H2, A2, H3], (0, 3), (), ["H2", "A2", "H3"], "an assistant message does not come first"),
    ([H1, A1, H2, A2, H3, A3, H4], (1, 5), (2,), ["H1", "A1", "H2", "A3", "H4"], "what must stay parts the runs"),
    ([H1, H2, A2, H3], (0, 2), (), ["H2", "A2", "H3"], "a list that did not alternate begins with a user message all the same"),
    ([H1, A1, H2, H3, A2, H4], (1, 2), (), ["H1", "H2", "H3", "A2", "H4"], "where roles were not in turn, none is asked for"),
    ([H1, A1, NOTE, H2, A2, H3], (1, 5), (2,), ["H1", "A1", "note", "H3"], "before a system message that stays nobody knows what will follow"),
    ([H1, NOTE, A1, NOTE, H2, A2, H3], (1, 4), (), ["H1", "A1", "note", "H2", "A2", "H3"], "a system message has no turn"),
    ([H1, A1, NOTE, H2, A2, H3, A3, H4], (1, 2), (), [text_of(m) for m in (H1, A1, NOTE, H2, A2, H3, A3, H4)], "roles count across it"),
    ([H1, NOTE, H2, A2, H3], (0, 1), (1,), ["H1", "note", "H2", "A2", "H3"], "no system message comes to stand first"),
    ([H1, NOTE, A1, H2, A2, H3], (0, 2), (), ["H1", "note", "A1", "H2", "A2", "H3"], "neither one that could go too"),
    ([A1, H2, A2, H3], (0, 2), (), ["A2", "H3"], "a list that began with an assistant message may"),
    ([NOTE, H1, A1, H2], (1, 2), (), ["note", "H1", "A1", "H2"], "an assistant message does not come first behind a system message"),
    ([H1, A1, H2], (2, 2), (), ["H1", "A1", "H2"], "an empty span"),
    ([H1, A1, H2], (2, 3), (), ["H1", "A1", "H2"], "nothing in it may go"),
]


@pytest.mark.parametrize(("messages", "span", "pinned", "left", "why"), LISTS, ids=[row[-1] for row in LISTS])
def test_roles_stay_in_turn_without_a_word_of_ours(
    messages: list[Message], span: tuple[int, int], pinned: tuple[int, ...], left: list[str], why: str
) -> None:
    before = transcript(messages, pinned)
    folds = silent_folds(before, Span(*span), "en", "because")
    assert all(fold.by == () and fold.reason == "because" for fold in folds)
    assert [text_of(entry.message) for entry in apply(before, folds, "test", count).entries] == left, why


def test_an_opening_by_the_assistant_can_be_allowed() -> None:
    before = transcript([H1, A1, H2, A2, H3])
    (fold,) = silent_folds(before, Span(0, 1), "en", "", any_opening=True)
    assert fold.span == Span(0, 1)


def test_roles_are_looked_up_across_a_system_message_that_stays() -> None:
    messages = [H1, A1, H2, NOTE, A2, H3, A3, H4]
    before = transcript(messages, pinned=[3])
    folds = silent_folds(before, Span(1, 6), "en", "")
    assert [text_of(entry.message) for entry in apply(before, folds, "test", count).entries] == ["H1", "A1", "H2", "note", "A3", "H4"]
    loose = transcript([H1, H2, A1, NOTE, A2, H3, A3, H4], pinned=[3])
    folds = silent_folds(loose, Span(1, 5), "en", "")
    assert [text_of(entry.message) for entry in apply(loose, folds, "test", count).entries] == ["H1", "A1", "note", "H3", "A3", "H4"]


def test_the_end_of_a_group_is_no_seam() -> None:
    it = transcript([H1, call("a"), result("a", "r"), assistant("done")])
    assert (group_start(it, 2), group_end(it, 1)) == (1, 3)


def test_a_word_of_ours_that_stands_for_nothing_is_not_counted() -> None:
    frame = Entry(user("summary"), 9, origin="inserted", covers=("a" * 32,))
    filler = Entry(assistant("ok"), 5, origin="inserted")
    assert counted(Transcript((frame, filler, *transcript([H1]).entries))) == [0, 2]
