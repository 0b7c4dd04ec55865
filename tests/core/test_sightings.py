"""The messages of a log that hold a phrase, and the branches that each stands on."""

from __future__ import annotations

from ctxproxy.core.messages import ROOT, Message, identity, next_tip
from ctxproxy.core.phrases import phrase_of
from ctxproxy.core.records import StoredMessage
from ctxproxy.core.sightings import Sightings
from tests.core.histories import assistant, user


def row(message: Message, parent: str = ROOT, *, raw: bytes | None = None) -> StoredMessage:
    return StoredMessage(next_tip(parent, identity(message)), parent, message.raw if raw is None else raw, message.role, 1, 1.0)


ASKED = row(user("where is the needle?"))
ANSWERED = row(assistant("in the hay"), ASKED.tip)
AGAIN = row(assistant("a needle? no"), ASKED.tip)
THEN = row(user("needle found"), ANSWERED.tip)
ERASED = row(user("needle"), THEN.tip, raw=b"")
LOG = [ASKED, ANSWERED, AGAIN, THEN, ERASED]


def test_every_message_of_every_branch_is_looked_at_and_an_erased_one_holds_nothing() -> None:
    seen = Sightings(phrase_of("needle"), 10)
    seen.add(LOG[:2])
    seen.add(LOG[2:])
    assert (seen.searched, seen.left_off) == (5, 0)
    assert [one.sighting.row for one in seen.placed([])] == [ASKED, AGAIN, THEN]


def test_each_is_told_of_on_the_first_branch_that_it_stands_on() -> None:
    seen = Sightings(phrase_of("needle"), 10)
    seen.add(LOG)
    assert [(one.branch, one.branches) for one in seen.placed([AGAIN.tip, ERASED.tip])] == [(AGAIN.tip, 2), (AGAIN.tip, 1), (ERASED.tip, 1)]
    assert [one.branch for one in seen.placed([ERASED.tip, AGAIN.tip])] == [ERASED.tip, AGAIN.tip, ERASED.tip]


def test_on_none_of_them_it_is_told_of_where_it_stands_itself() -> None:
    seen = Sightings(phrase_of("needle"), 10)
    seen.add(LOG)
    assert [one.branch for one in seen.placed(["ff" * 16])] == [ASKED.tip, AGAIN.tip, THEN.tip]


def test_what_is_too_much_is_only_counted() -> None:
    seen = Sightings(phrase_of("needle"), 1)
    seen.add(LOG)
    assert ([one.sighting.row for one in seen.placed([])], seen.left_off) == ([ASKED], 2)
