"""How edits are applied, and what they may not do."""

from __future__ import annotations

import pytest

from ctxproxy.core.applying import apply
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.records import LeftOut
from ctxproxy.core.transcript import SHAPE, Edit, Fold, Replace, Span, Transcript
from ctxproxy.errors import InvalidEdit
from tests.core.histories import assistant, call, count, result, transcript, user

PAIR = [call("a"), result("a", "1")]
BASE = transcript([user("old"), assistant("answer"), user("mid"), *PAIR, assistant("done"), user("now")], pinned=[1])


def replaced(at: int, message: Message) -> Replace:
    return Replace(at, message)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (Fold(Span(3, 4)), "parts a group"),
        (Fold(Span(4, 5)), "parts a group"),
        (Fold(Span(2, 4)), "parts a group"),
        (Fold(Span(3, 3)), "parts a group"),
        (Fold(Span(0, 2)), "drops a protected entry"),
        (Fold(Span(6, 7)), "drops a protected entry"),
        (Fold(Span(5, 9)), "out of range"),
        (replaced(1, assistant("x")), "edits the protected entry"),
        (replaced(6, user("x")), "edits the protected entry"),
        (replaced(2, assistant("x")), "changes role"),
        (replaced(4, result("other", "x")), "changes role or call ids"),
        (replaced(3, call("other")), "changes role or call ids"),
    ],
)
def test_an_edit_that_breaks_a_rule_is_refused(edit: Edit, why: str) -> None:
    with pytest.raises(InvalidEdit, match=why):
        apply(BASE, [edit], "test", count)


def test_two_edits_of_one_entry_are_refused() -> None:
    with pytest.raises(InvalidEdit, match="twice"):
        apply(BASE, [Fold(Span(2, 5)), replaced(2, user("x"))], "test", count)


def test_edits_are_applied_at_once_in_the_indexes_of_the_given_transcript() -> None:
    after = apply(BASE, [replaced(4, result("a", "short")), Fold(Span(0, 1), (user("note"), assistant("ok"))), Fold(Span(5, 6))], "test", count)
    assert [text_of(e.message) for e in after.entries] == ["note", "ok", "answer", "mid", "", "short", "now"]
    assert [e.origin for e in after.entries] == ["inserted", "inserted", "original", "original", "original", "edited", "original"]
    assert [e.covers for e in after.entries[:2]] == [(BASE.entries[0].tip,), ()]
    assert after.entries[5].tip == BASE.entries[4].tip
    assert after.entries[5].stage == "test"
    assert all(e.tokens == count(e.message) for e in after.entries)
    assert [text_of(e.message) for e in BASE.entries] == ["old", "answer", "mid", "", "1", "done", "now"]


def test_what_folds_over_a_fold_covers_what_that_covered() -> None:
    once = apply(BASE, [Fold(Span(2, 5), (user("note"),))], "test", count)
    twice = apply(once, [Fold(Span(2, 4), (user("n"),))], "test", count)
    assert twice.entries[2].covers == tuple(e.tip for e in BASE.entries[2:6])
    edited = apply(once, [replaced(2, user("n"))], "test", count)
    assert edited.entries[2].origin == "inserted"


def test_a_fold_may_keep_its_last_message_with_something_in_front_of_it() -> None:
    base = transcript([user("old"), assistant("answer"), user("mid"), assistant("done"), user("now")])
    once = apply(base, [Fold(Span(1, 3), (user("told: mid"),), "oldest", keeps_last=True)], "trim", count)
    kept = once.entries[1]
    assert (text_of(kept.message), kept.tip, kept.origin, kept.covers, kept.stage) == ("told: mid", base.entries[2].tip, "edited", (), "trim")
    assert once.left == (LeftOut((base.entries[1].tip,), "trim", "oldest"),)
    between = apply(base, [Fold(Span(0, 3), (user("a"), assistant("b"), user("told: mid")), keeps_last=True)], "trim", count)
    assert [e.origin for e in between.entries[:3]] == ["inserted", "inserted", "edited"]
    assert between.entries[0].covers == tuple(e.tip for e in base.entries[:2])
    with pytest.raises(InvalidEdit, match="role"):
        apply(base, [Fold(Span(1, 3), (assistant("x"),), keeps_last=True)], "trim", count)


def test_what_leaves_no_entry_behind_is_remembered_with_stage_and_reason() -> None:
    once = apply(BASE, [Fold(Span(2, 5), (), "too old")], "drop", count)
    assert once.left == (LeftOut(tuple(e.tip for e in BASE.entries[2:5]), "drop", "too old"),)
    framed = apply(BASE, [Fold(Span(2, 5), (user("note"),), "summary")], "sum", count)
    assert (framed.left, framed.entries[2].reason) == ((), "summary")
    twice = apply(framed, [Fold(Span(0, 1), (), "too old"), Fold(Span(2, 3), (), "too old")], "drop", count)
    assert twice.left == (LeftOut(tuple(BASE.entries[at].tip for at in (0, 2, 3, 4)), "drop", "too old"),)


def test_where_other_texts_stand_is_known_from_where_the_ones_before_stood() -> None:
    base = transcript([user("old"), *PAIR, user("mid"), call("b"), user("meanwhile"), result("b", "2"), user("now")], pinned=[3])
    for name in SHAPE:
        getattr(base, name)
    after = apply(base, [replaced(0, user("o")), replaced(2, result("a", "-"))], "test", count)
    anew = Transcript(after.entries)
    assert {name: after.__dict__[name] for name in SHAPE} == {name: getattr(anew, name) for name in SHAPE}
    folded = apply(base, [replaced(0, user("o")), Fold(Span(1, 3))], "test", count)
    assert not set(SHAPE) & set(folded.__dict__)
    assert (after.tokens, folded.groups) == (anew.tokens, Transcript(folded.entries).groups)
