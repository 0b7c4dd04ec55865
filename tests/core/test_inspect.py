"""A plan as the admin API shows it."""

from __future__ import annotations

from typing import Any

from ctxproxy.core.fates import fates
from ctxproxy.core.inspect import budget_report, fate_shown, leading_entry, plan_report, preload_entry, view_entry
from ctxproxy.core.messages import make
from ctxproxy.core.plan import plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.rescue_plans import cleared
from ctxproxy.core.transcript import Entry
from tests.core.chains import Chain
from tests.core.histories import count, long_turn, user

TIP = "ab" * 16


def test_an_entry_is_shown_with_its_marker_or_with_what_it_covers() -> None:
    assert view_entry(Entry(user("x"), 5, TIP), "because") == {
        "tip": TIP,
        "message": {"role": "user", "content": "x"},
        "tokens": 5,
        "origin": "original",
        "stage": None,
        "why": "because",
    }
    edited = view_entry(Entry(user("x"), 5, TIP, "edited", "compact_messages"), "because")
    assert (edited["marker"], edited["stage"]) == (TIP[:16], "compact_messages")
    shown = view_entry(Entry(user("x"), 5, "", "inserted", "summarize", ("a", "b")), "because")
    assert (shown["tip"], shown["covers"]) == (None, ["a", "b"])


def test_a_leading_message_is_shown_as_always_sent() -> None:
    shown = leading_entry(make({"role": "system", "content": "be short"}), 7)
    assert (shown["tip"], shown["tokens"], shown["origin"]) == (None, 7, "original")
    assert shown["message"] == {"role": "system", "content": "be short"}


def test_what_a_session_began_with_is_shown_as_remembered() -> None:
    shown = preload_entry(make({"role": "system", "content": "likes trains"}), 7)
    assert (shown["tip"], shown["tokens"], shown["origin"], shown["stage"]) == (None, 7, "inserted", "preload")
    assert "this user's earlier sessions" in str(shown["why"])


def report_of(leading: int = 0) -> tuple[Any, Any, Any]:
    system = [make({"role": "system", "content": "be short"})] * leading
    situation = Chain(Policy(keep_recent_turns=0), leading=system).situation(long_turn(20), 3000)
    made = plan(situation)
    return situation, made, plan_report(situation, made)


def test_a_plan_is_told_in_figures() -> None:
    situation, made, report = report_of()
    assert report["changed"] is report["fits"] is True
    assert (report["tokens_in"], report["tokens_sent"]) == (made.tokens_in, made.tokens_sent)
    assert [(action["stage"], action["edits"]) for action in report["actions"]] == list(made.actions) != []
    assert sum(action["saved_tokens"] for action in report["actions"]) == made.tokens_in - made.tokens_sent > 0
    assert (report["failed"], len(report["messages"])) == ([], len(made.transcript.entries))
    assert report["budget"] == budget_report(made)
    assert (report["budget"]["fixed"], report["budget"]["history"], report["budget"]["window"]) == (50, 3000, 10_000_000)
    assert sum(map(count, situation.reconciled.history)) + 50 == report["tokens_in"]


def test_every_message_of_the_history_is_told_of_and_the_tokens_add_up() -> None:
    situation, made, report = report_of(leading=1)
    assert [row["tip"] for row in report["history"]] == list(situation.reconciled.tips)
    assert all(row["why"] for row in (*report["history"], *report["messages"]))
    kept = sum(row["tokens_after"] for row in report["history"])
    inserted = sum(entry["tokens"] for entry in report["messages"] if entry["origin"] == "inserted")
    assert kept + inserted == made.transcript.tokens
    for row in report["history"]:
        if row["tokens_after"]:
            assert report["messages"][row["stands_in"]]["tip"] == row["tip"]
    assert report["messages"][0]["why"] == "leading system message: always sent as it is"


def test_what_is_left_out_has_nothing_that_stands_in_and_marks_save_nothing() -> None:
    situation = Chain(Policy()).situation(long_turn(20), 3000)
    made = cleared(situation)
    report: Any = plan_report(situation, made)
    assert [(action["stage"], action["saved_tokens"] > 0) for action in report["actions"]] == [("rescue", False), ("clear", True)]
    lost = next(fate for fate in fates(situation, made) if fate.state == "dropped" and fate.entry is None)
    assert fate_shown(lost, 1)["stands_in"] is None
