"""What matters most stays, wherever it stands."""

from __future__ import annotations

import pytest

from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.pipeline import run
from ctxproxy.core.stages.base import Context, make_stage
from ctxproxy.core.stages.priority_window import PriorityWindow
from ctxproxy.core.validity import violations
from tests.core.histories import FILLER, assistant, call, context, long_turn, result, talk, transcript, user
from tests.core.stages.tables import rewrite, texts

STAGE = PriorityWindow(min_recent=0, goal_share=0.5)

LEAVES_ALONE = [
    ([user("now")], context(), (), "only the last user message"),
    ([user("now"), call("c"), result("c", FILLER)], context(), (), "the pending exchange"),
    (talk(1), context(), (0, 1), "all pinned"),
    (talk(3), context(0, 10_000), (), "over the target, but it fits"),
]


@pytest.mark.parametrize(("messages", "told", "pinned", "why"), LEAVES_ALONE, ids=[row[-1] for row in LEAVES_ALONE])
def test_leaves_alone(messages: list[Message], told: Context, pinned: tuple[int, ...], why: str) -> None:
    assert [e.message for e in rewrite(STAGE, messages, told, pinned)] == messages, why


def long(text: str) -> str:
    return text + " " + FILLER * 6


MIXED = [
    user(long("build a boat")),
    assistant(long("plain one")),
    user(long("I hate crowds.")),
    assistant(long("we argue because")),
    user(long("second part")),
    call("c"),
    result("c", long("plain lines")),
    user(long("third part")),
    call("d"),
    result("d", long("Error: it failed")),
    assistant(long("plain two")),
    user("now"),
]
NOTE = "[part of the"
REWRITES = [
    (570, ["build a boat", NOTE, "I hate crowd", "we argue bec", "second part ", "", "plain lines ", "third part p", "", "Error: it fa", "now"]),
    (380, ["build a boat", NOTE, "I hate crowd", "we argue bec", NOTE, "", "Error: it fa", "now"]),
    (270, ["build a boat", NOTE, "I hate crowd", "", "Error: it fa", "now"]),
]


@pytest.mark.parametrize(("limit", "left"), REWRITES)
def test_rewrites_by_what_it_is_worth_and_in_the_order_of_the_prompt(limit: int, left: list[str]) -> None:
    entries = rewrite(STAGE, MIXED, context(0, limit))
    assert texts(entries) == left
    assert sum(entry.tokens for entry in entries) <= 0.9 * limit
    assert violations([entry.message for entry in entries]) == []


def test_the_newest_groups_stay_as_far_as_they_fit() -> None:
    messages = talk(20)
    after = rewrite(PriorityWindow(min_recent=5), messages, context(0, 700))
    assert [e.message for e in after[-5:-1]] == messages[-5:-1]
    huge = [*messages[:-1], user("and"), call("c"), result("c", "z " * 4000), assistant("done"), user("now?")]
    kept = rewrite(PriorityWindow(min_recent=5), huge, context(0, 700))
    assert "done" in texts(kept)
    assert not any("z z z" in text_of(e.message) for e in kept)
    assert sum(e.tokens for e in kept) <= 630


def test_rewrites_what_the_client_lets_go_before_all_else() -> None:
    messages = [
        user(long("Never push.")),
        assistant(long("a")),
        user(long("Never sleep."), Directives(drop_first=True)),
        assistant(long("b")),
        user("n"),
    ]
    after = rewrite(STAGE, messages, context(0, 250))
    assert "Never push. " in texts(after)
    assert "Never sleep." not in texts(after)


def test_a_goal_too_long_for_its_share_is_a_document() -> None:
    messages = [user(FILLER * 40), assistant(long("a")), *talk(6)]
    assert rewrite(STAGE, messages, context(0, 600))[0].message.raw != messages[0].raw
    assert rewrite(PriorityWindow(min_recent=0, goal_share=1.0), messages, context(0, 600))[0].message == messages[0]


def test_its_options_say_what_counts() -> None:
    messages = [user("x"), assistant(long("about turbines")), user("y"), assistant(long("about boats")), user("now")]
    turbines = rewrite(make_stage({"stage": "priority_window", "min_recent": 0, "keywords": ["turbine"]}), messages, context(0, 130))  # type: ignore[arg-type]
    assert "about turbin" in texts(turbines)
    assert "about boats " not in texts(turbines)
    answers = rewrite(PriorityWindow(min_recent=0, scores={"assistant": 9.9}, goal_share=0.01), [*talk(6)], context(0, 300))
    assert [t[:1] for t in texts(answers) if not t.startswith("[")].count("a") >= 2
    with pytest.raises(ValueError, match="scores"):
        make_stage({"stage": "priority_window", "scores": {"nonsense": 1.0}})


def test_it_says_for_each_message_that_went_what_it_was_worth() -> None:
    outcome = run(transcript(MIXED), [STAGE], context(0, 270))
    reasons = {entry.reason for entry in outcome.transcript.entries if entry.origin == "inserted"} | {one.reason for one in outcome.transcript.left}
    assert reasons
    assert all(reason.startswith("priority ") for reason in reasons)


@pytest.mark.parametrize("messages", [talk(50, 1), talk(50), long_turn(50)])
def test_roles_keep_their_turn_and_two_thousand_pieces_are_no_other_case(messages: list[Message]) -> None:
    t = transcript(messages)
    outcome = run(t, [PriorityWindow()], context(0, t.tokens // 2))
    assert outcome.failed == ()
    assert alternates([e.message for e in outcome.transcript.entries]) or not alternates(messages)
    assert outcome.transcript.tokens <= 0.9 * (t.tokens // 2)
