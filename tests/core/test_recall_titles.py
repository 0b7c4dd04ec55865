"""How a message of recalled passages is known."""

from __future__ import annotations

from dataclasses import replace

from ctxproxy.core.markers import OFFER
from ctxproxy.core.recall_titles import BESIDE, STAGE, TAKEN_OUT, TITLES, is_recalled, without_recalled
from ctxproxy.core.records import LeftOut
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.transcript import Entry
from tests.core.histories import talk, transcript, user

RECALLED = Entry(user(TITLES["en"]), 20, origin="inserted", stage=STAGE)


def test_what_was_recalled_is_known_by_its_stage_and_by_being_ours() -> None:
    assert is_recalled(RECALLED)
    assert not is_recalled(RECALLED._replace(stage="summarize"))
    assert not is_recalled(RECALLED._replace(origin="original")), "a client that says the title itself is left alone"


def test_without_it_the_rest_stands_as_it_was() -> None:
    whole = replace(transcript(talk(2)), left=(LeftOut(("aa",), "drop_oldest", "why"),))
    wider = replace(whole, entries=(*whole.entries[:2], RECALLED, *whole.entries[2:-1], RECALLED, whole.entries[-1]))
    assert without_recalled(wider) == whole
    assert without_recalled(whole) is whole


def test_its_actions_are_no_stages() -> None:
    assert {STAGE, TAKEN_OUT} == BESIDE
    assert BESIDE.isdisjoint(REGISTRY)


def test_the_titles_are_background_and_order_nothing() -> None:
    assert all(title[0] in "[【" and title[-1] in "]】" and "\n" not in title and not OFFER.search(title) for title in TITLES.values())
