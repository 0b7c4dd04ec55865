"""What a plan says of each message."""

from __future__ import annotations

import pytest

from ctxproxy.core.inspect import budget_report, leading_entry, plan_report, reason, states, view_entry
from ctxproxy.core.messages import make
from ctxproxy.core.plan import plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.transcript import Entry
from tests.core.chains import Chain
from tests.core.histories import count, long_turn, talk, user

TIP = "ab" * 16


def test_a_message_is_sent_compacted_summarized_or_dropped() -> None:
    step = Chain(Policy(keep_recent_turns=1)).ask([*talk(30)[:-1], *long_turn(3)], 900)
    tips = step.situation.reconciled.tips
    found = states(step.plan, tips)
    assert list(found) == list(tips)
    assert {"sent", "summarized"} <= set(found.values())
    assert found[tips[-1]] == "sent"
    cut = Chain(Policy(preset="lossless", keep_recent_turns=0)).ask(long_turn(20), 3000)
    assert "compacted" in states(cut.plan, cut.situation.reconciled.tips).values()
    folded = Chain(Policy(pipeline=({"stage": "drop_oldest"},))).ask(talk(30), 900)
    kept = states(folded.plan, [*folded.situation.reconciled.tips, "ff" * 16])
    assert set(kept.values()) == {"sent", "dropped"}
    assert kept["ff" * 16] == "dropped"


def test_a_message_that_a_stand_in_covers_without_telling_of_it_is_dropped() -> None:
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)))
    step = chain.ask([*talk(1), *long_turn(30)[1:]], 900)
    covered = [tip for entry in step.plan.transcript.entries for tip in entry.covers]
    assert all(states(step.plan, covered)[tip] == "dropped" for tip in covered)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Entry(user("x"), 5, TIP), "sent as it is"),
        (Entry(user("x"), 5, TIP, pinned=True), "pinned: sent as it is"),
        (Entry(user("x"), 5, TIP, "edited", "compact_messages"), "shortened by compact_messages (reversible); the original is kept"),
        (Entry(user("x"), 5, TIP, "edited", "shorten_last_user"), "shortened by shorten_last_user (lossy); the original is kept"),
        (Entry(user("x"), 5, "", "inserted", "summarize", ("a", "b")), "inserted by summarize in place of 2 messages"),
        (Entry(user("x"), 5, "", "inserted", "summarize"), "inserted by summarize"),
    ],
)
def test_why_an_entry_stands_as_it_does_is_told_in_words(entry: Entry, words: str) -> None:
    assert reason(entry) == words
    assert view_entry(entry)["why"] == words


def test_an_entry_is_shown_with_its_marker_or_with_what_it_covers() -> None:
    assert view_entry(Entry(user("x"), 5, TIP)) == {
        "tip": TIP,
        "message": {"role": "user", "content": "x"},
        "tokens": 5,
        "origin": "original",
        "why": "sent as it is",
    }
    assert view_entry(Entry(user("x"), 5, TIP, "edited", "compact_messages"))["marker"] == TIP[:16]
    shown = view_entry(Entry(user("x"), 5, "", "inserted", "summarize", ("a", "b")))
    assert (shown["tip"], shown["covers"]) == (None, ["a", "b"])


def test_a_leading_message_is_shown_as_always_sent() -> None:
    shown = leading_entry(make({"role": "system", "content": "be short"}), 7)
    assert (shown["tip"], shown["tokens"], shown["origin"]) == (None, 7, "original")
    assert shown["message"] == {"role": "system", "content": "be short"}


def test_a_plan_is_told_in_figures() -> None:
    situation = Chain(Policy(keep_recent_turns=0)).situation(long_turn(20), 3000)
    made = plan(situation)
    report = plan_report(made)
    assert report["changed"] is report["fits"] is True
    assert (report["tokens_in"], report["tokens_sent"]) == (made.tokens_in, made.tokens_sent)
    assert report["actions"] == [{"stage": name, "edits": edits} for name, edits in made.actions] != []
    assert (report["failed"], len(report["messages"])) == ([], len(made.transcript.entries))  # type: ignore[arg-type]
    assert report["budget"] == budget_report(made)
    assert budget_report(made) == {
        "window": 10_000_000,
        "reserve": made.budget.reserve,
        "prompt": made.budget.fixed + 3000,
        "fixed": 50,
        "history": 3000,
        "compact_at": 2400,
        "target": 1650,
    }
    assert sum(map(count, situation.reconciled.history)) + 50 == report["tokens_in"]
