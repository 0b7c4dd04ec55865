"""Where a phrase went: state, time, stage, what stands in for it, and what brings it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ctxproxy.core.applying import apply
from ctxproxy.core.checkpoints import freeze
from ctxproxy.core.frames import acknowledgement
from ctxproxy.core.markers import acknowledgement as gap_words
from ctxproxy.core.messages import Directives, Message, Tip, text_of
from ctxproxy.core.phrases import phrase_of
from ctxproxy.core.plan import plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import Pin, Session, SessionKey
from ctxproxy.core.sessions import to_store
from ctxproxy.core.sightings import Sightings
from ctxproxy.core.situation import Situation, base_transcript
from ctxproxy.core.transcript import Fold, Replace, Span, Transcript
from ctxproxy.core.why import View, Why, explain
from tests.core.chains import Chain
from tests.core.histories import FILLER, assistant, call, count, result, talk, user

SESSION = Session(SessionKey("0f" * 16, "talk"))
SECRET = "The launch code is 7741."
NEXT = [assistant("The answer."), user("And what is next?")]


def long_ago(turns: int = 30) -> list[Message]:
    return [user("start"), assistant("ok"), user(f"{SECRET} {FILLER * 40}"), assistant("noted"), *talk(turns)]


def asked(views: Sequence[View], text: str = "launch code", pins: Sequence[Pin] = (), most: int = 10) -> Why:
    """The answer for histories of which each is a branch; the first is where the conversation stands."""
    seen = Sightings(phrase_of(text), most)
    for view in views:
        fresh = replace(view.situation.reconciled, fresh_from=0)
        seen.add(row for row in to_store(fresh, view.situation.counts, 5.0))
    return explain(seen._phrase, SESSION, seen, {view.situation.reconciled.tip: view for view in views}, pins)


def viewed(situation: Situation) -> View:
    return View(situation, plan(situation))


def test_what_was_never_said_is_nowhere() -> None:
    why = asked([viewed(Chain(Policy()).situation(talk(3), 100_000))])
    assert (why.held, why.searched, why.prompt, why.pins, why.pin, why.left_off) == ((), 7, (), (), "", 0)


def test_what_is_sent_never_left() -> None:
    chain = Chain(Policy(), leading=[user("the launch code is secret")])
    why = asked([viewed(chain.situation(long_ago(2), 100_000))])
    (held,) = why.held
    assert (held.state, held.left, held.steps, held.stands_in, held.turn, held.role, held.time) == ("sent", None, (), None, 2, "user", 5.0)
    assert held.found.sentence == SECRET
    assert why.prompt == (0, 3), "the leading message holds it too"
    assert why.pin == ""


def test_what_left_says_when_by_which_stage_and_what_brings_it_back() -> None:
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)))
    history = long_ago()
    first = chain.ask(history, 1500)
    chain.ask([*history, *NEXT], 1500)
    why = asked([viewed(chain.situation([*history, *NEXT], 1500))])
    (held,) = why.held
    assert (held.state, held.stage) == ("dropped", "drop_oldest")
    assert held.left == held.steps[0]
    made = first.plan.checkpoint
    assert made
    assert (held.left.time, held.left.tip, held.left.turn) == (made.created, made.tip, 33)
    assert held.why in ("left out by drop_oldest (lossy): the oldest go first", held.left.why)
    assert (why.prompt, why.pin) == ((), SECRET)
    assert held.marker == held.tip[:16]


def test_what_the_next_request_takes_out_has_not_left_yet() -> None:
    why = asked([viewed(Chain(Policy(pipeline=({"stage": "drop_oldest"},))).situation(long_ago(), 1500))])
    assert why.held[0].left
    assert (why.held[0].left.time, why.held[0].left.turn) == (None, None)


def test_each_change_is_a_step_and_it_left_with_the_first_of_them() -> None:
    situation = Chain(Policy()).situation(long_ago(8), 100_000)
    tips, whole = situation.reconciled.tips, base_transcript(situation)
    shorter = apply(whole, [Replace(2, user("[COMPACTED: codes]"), "old")], "compact_messages", count)
    gone = apply(shorter, [Fold(Span(2, 4), (), "the oldest go first")], "drop_oldest", count)
    kinds = [("compact_messages", shorter, 4, 1.0), ("drop_oldest", gone, 12, 2.0), ("drop_oldest", gone, 14, 3.0)]
    made = [freeze(_up_to(done, tips[end]), tips[end], situation.variant, now, wants="", actions=((by, 1),)) for by, done, end, now in kinds]
    (held,) = asked([viewed(replace(situation, checkpoints=made[::-1], budget=replace(situation.budget, target=10)))]).held
    assert [(step.stage, step.state, step.time, step.turn) for step in held.steps] == [
        ("compact_messages", "compacted", 1.0, 3),
        ("drop_oldest", "dropped", 2.0, 7),
    ]
    assert held.left == held.steps[0]
    assert (held.state, held.stage) == ("dropped", "drop_oldest")


def _up_to(transcript: Transcript, tip: Tip) -> Transcript:
    end = next(at for at, entry in enumerate(transcript.entries) if entry.tip == tip)
    return replace(transcript, entries=transcript.entries[: end + 1])


def test_a_marker_stands_in_and_does_not_hold_it() -> None:
    chain = Chain(Policy(pipeline=({"stage": "compact_tool_results"},), keep_recent_turns=1))
    history = [user("read"), call("c", path="notes.md"), result("c", f"{FILLER * 60}\n{SECRET}\n{FILLER * 60}"), *talk(12)]
    chain.ask(history, int(sum(map(count, history)) / 0.9))
    view = viewed(chain.situation(history, int(sum(map(count, history)) / 0.9)))
    why = asked([view])
    (held,) = why.held
    assert held.state == "compacted"
    assert held.stands_in
    assert view.plan.messages[held.stands_in.at].raw == view.plan.transcript.entries[2].message.raw
    assert held.stands_in.holds == bool(why.prompt)
    named = asked([view], "notes.md").held
    assert [one.role for one in named] == ["assistant"], "the call names the file"


def test_a_frame_that_quotes_it_holds_it() -> None:
    chain = Chain(Policy(keep_recent_turns=1), late=0, summary_text=SECRET)
    history = long_ago()
    for turn in range(6):
        chain.ask([*history, *talk(turn, 20)[:-1], user("?")], 1000)
    view = viewed(chain.situation([*history, *talk(6, 20)[:-1], user("?")], 1000))
    why = asked([view])
    assert why.held[0].state == "summarized"
    assert why.held[0].stands_in
    assert (why.held[0].stands_in.kind, why.held[0].stands_in.holds) == ("frame", True)
    assert SECRET in why.held[0].stands_in.excerpt
    assert why.held[0].stands_in.at in why.prompt
    assert why.pin == ""


@pytest.mark.parametrize(
    ("by", "kind", "excerpt"),
    [
        (acknowledgement("en"), "word", text_of(acknowledgement("en"))),
        (assistant(gap_words("zh")), "word", gap_words("zh")),
        (assistant("[COMPACTED: earlier talk · 12 tokens]"), "marker", "[COMPACTED: earlier talk · 12 tokens]"),
        (assistant("words " * 100), "shortened", ("words " * 100)[:199].rstrip() + "…"),
    ],
)
def test_what_stands_in_is_told_by_its_kind(by: Message, kind: str, excerpt: str) -> None:
    situation = Chain(Policy()).situation([user("a"), assistant(SECRET), *talk(3)], 100_000)
    made = plan(situation)
    done = apply(made.transcript, [Fold(Span(1, 2), (by,))], "drop_oldest", count)
    (held,) = asked([View(situation, replace(made, transcript=done, changed=True))]).held
    assert held.stands_in
    assert (held.stands_in.kind, held.stands_in.holds, held.stands_in.at) == (kind, False, 1)
    assert held.stands_in.excerpt == excerpt


def test_what_came_back_did_not_leave() -> None:
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)))
    history = long_ago()
    chain.ask(history, 1500)
    (held,) = asked([viewed(chain.situation(history, 100_000))]).held
    assert [step.state for step in held.steps] == ["dropped", "sent"]
    assert (held.state, held.left) == ("sent", None)


def test_what_was_forgotten_or_expired_says_so_and_is_not_offered_back() -> None:
    history = [user(SECRET, Directives(expire_after_turns=1)), assistant("noted"), *talk(3)]
    why = asked([viewed(Chain(Policy()).situation(history, 100_000))])
    assert (why.held[0].state, why.held[0].left, why.pin) == ("forgotten", None, "")
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)))
    history = long_ago()
    chain.ask(history, 1500)
    situation = chain.situation(history, 1500)
    told = asked([viewed(replace(situation, forgotten=frozenset({situation.reconciled.tips[2]})))]).held[0]
    assert (told.state, [step.state for step in told.steps]) == ("forgotten", ["dropped", "forgotten"])
    assert told.left == told.steps[0]


def test_each_branch_is_told_of_by_itself_and_others_decisions_do_not_count() -> None:
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)))
    history = long_ago()
    chain.ask(history, 1500)
    other = [*history[:2], user(f"another launch code {FILLER}")]
    chain.ask([user("unlike"), *talk(40)], 1500, model="other")
    why = asked([viewed(chain.situation(history, 1500)), viewed(chain.situation(other, 1500))])
    assert [(held.state, held.turn) for held in why.held] == [("dropped", 2), ("sent", 2)]
    assert why.held[0].branch != why.held[1].branch
    assert why.prompt == (), "only where the conversation stands counts"


def test_messages_of_branches_that_are_not_planned_are_only_counted() -> None:
    chain = Chain(Policy())
    one, other = chain.situation(long_ago(2), 100_000), chain.situation([user("launch code?")], 100_000)
    seen = Sightings(phrase_of("launch code"), 10)
    for situation in (one, other):
        seen.add(to_store(situation.reconciled, situation.counts, 1.0))
    why = explain(phrase_of("launch code"), SESSION, seen, {one.reconciled.tip: viewed(one)}, [])
    assert (len(why.held), why.left_off) == (1, 1)
    assert explain(phrase_of("launch code"), SESSION, seen, {}, []).prompt == ()


def test_pins_that_hold_it_are_named_and_nothing_more_is_offered() -> None:
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)))
    history = long_ago()
    chain.ask(history, 1500)
    why = asked([viewed(chain.situation(history, 1500))], pins=[Pin(3, "no", 1.0), Pin(7, SECRET, 1.0)])
    assert (why.pins, why.pin) == ((7,), "")


def test_of_two_decisions_made_at_once_the_deeper_is_the_request() -> None:
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)))
    history = long_ago()
    step = chain.ask(history, 1500)
    made = step.plan.checkpoint
    assert made
    earlier = replace(made, tip=step.situation.reconciled.tips[-2])
    for order in ([made, earlier], [earlier, made]):
        situation = replace(chain.situation(history, 1500), checkpoints=order)
        left = asked([viewed(situation)]).held[0].left
        assert left
        assert left.tip == made.tip


def test_a_decision_from_before_it_was_said_tells_nothing_of_it() -> None:
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)))
    history = talk(30, 12)
    assert chain.ask(history, 1500).plan.checkpoint
    (held,) = asked([viewed(chain.situation([*history, assistant("yes"), user(SECRET)], 1500))]).held
    assert (held.state, held.steps) == ("sent", ())


def test_what_a_conversation_was_cleared_of_says_so_and_can_be_had_back() -> None:
    situation = Chain(Policy()).situation(long_ago(3), 100_000)
    why = asked([viewed(replace(situation, cleared=frozenset(situation.reconciled.tips[:4])))])
    assert (why.held[0].state, why.held[0].left, why.prompt, why.pin) == ("cleared", None, (), SECRET)
