"""Leaving out stretches without a clash of roles."""

from __future__ import annotations

import pytest

from ctxproxy.core.folding import Folder
from ctxproxy.core.markers import acknowledgement
from ctxproxy.core.messages import Message, make, text_of
from ctxproxy.core.transcript import Fold, Span
from tests.core.histories import assistant, call, result, talk, transcript, user

NOTE = acknowledgement("en")
SYSTEM = make({"role": "system", "content": "note"})
PAIR = [call("c"), result("c", "1")]


def folder(messages: list[Message], pinned: list[int] | None = None) -> Folder:
    return Folder(transcript(messages, pinned or []), "en")


def told(folds: list[Fold]) -> list[tuple[int, int, list[tuple[str, str]]]]:
    return [(*fold.span, [(m.role, text_of(m)) for m in fold.by]) for fold in folds]


def test_a_whole_turn_goes_without_a_trace() -> None:
    assert told(list(folder(talk(3)).turn(Span(2, 4)))) == [(2, 4, [])]


def test_of_a_turn_with_a_pin_the_rest_goes() -> None:
    messages = [user("q"), *PAIR, assistant("a"), *PAIR, assistant("b"), user("now")]
    assert told(list(folder(messages, [3]).turn(Span(0, 7)))) == [(1, 3, []), (4, 7, [])]


def test_the_body_leaves_the_user_message_with_an_acknowledgement_behind_it() -> None:
    assert told(list(folder(talk(2)).body(Span(0, 2)))) == [(1, 2, [("assistant", NOTE)])]


def test_a_turn_before_the_first_user_message_is_all_body() -> None:
    assert told(list(folder([assistant("hello"), *talk(1)]).body(Span(0, 1)))) == [(0, 1, [])]


@pytest.mark.parametrize(
    ("messages", "span", "by", "why"),
    [
        ([user("q"), assistant("a"), user("r")], (1, 2), [("assistant", NOTE)], "two users would meet"),
        ([user("q"), SYSTEM, assistant("a"), user("r")], (2, 3), [("assistant", NOTE)], "a system message between does not part them"),
        ([user("q"), user("p"), assistant("a"), user("r")], (2, 3), [], "the client's own list does not alternate"),
        ([user("q"), *PAIR, assistant("a"), user("r")], (3, 4), [], "a result parts them"),
        ([assistant("a"), user("q"), assistant("b"), user("r")], (1, 2), [("user", NOTE)], "two assistants would meet"),
        ([user("q"), assistant("a"), user("r")], (0, 1), [("user", NOTE)], "an assistant would come first"),
        ([SYSTEM, user("q"), assistant("a"), user("r")], (1, 2), [("user", NOTE)], "an assistant would come first behind a system message"),
        ([assistant("a"), user("q"), assistant("b")], (0, 2), [], "the client's list began with the assistant"),
        ([user("q"), assistant("a")], (1, 2), [], "nothing follows"),
    ],
)
def test_what_stands_in_place_keeps_roles_in_turn(messages: list[Message], span: tuple[int, int], by: list[tuple[str, str]], why: str) -> None:
    assert told([folder(messages).fold(Span(*span))]) == [(*span, by)], why


def test_runs_go_around_what_must_stay() -> None:
    messages = [user("q"), assistant("a"), user("r"), *PAIR, assistant("b"), user("now")]
    assert told(list(folder(messages, [2]).runs(Span(0, 7)))) == [(0, 2, []), (3, 6, [("assistant", NOTE)])]
    assert list(folder([user("now")]).runs(Span(0, 1))) == []


def test_free_groups_are_whole_groups_inside_the_span() -> None:
    assert list(folder([user("q"), *PAIR, assistant("a"), user("now")]).free_groups(Span(1, 3))) == [Span(1, 3)]


def test_folds_that_only_a_system_message_parts_know_of_each_other() -> None:
    messages = [user("q"), *PAIR, SYSTEM, assistant("a"), user("r")]
    assert told(list(folder(messages, [3]).body(Span(0, 5)))) == [(1, 3, []), (4, 5, [("assistant", NOTE)])]


def test_a_fold_looks_past_what_an_earlier_one_has_taken_behind_it() -> None:
    of = folder([user("q"), *PAIR, SYSTEM, assistant("a"), user("r")], [3])
    assert told([of.fold(Span(4, 5)), of.fold(Span(1, 3))]) == [(4, 5, []), (1, 3, [("assistant", NOTE)])]


def test_a_fold_sees_the_word_that_stands_for_an_earlier_one() -> None:
    of = folder([user("q"), *PAIR, assistant("a"), user("r"), assistant("b"), user("s")])
    assert told([of.fold(Span(5, 6)), of.fold(Span(1, 4)), of.fold(Span(4, 5))]) == [
        (5, 6, [("assistant", NOTE)]),
        (1, 4, [("assistant", NOTE)]),
        (4, 5, [("user", NOTE)]),
    ]
