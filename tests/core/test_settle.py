"""What is kept of a request once its answer ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from ctxproxy.core.checkpoints import anchored
from ctxproxy.core.effects import AppendMessages, CountUse, Effect, MoveTip, OpenSession, PutCheckpoint
from ctxproxy.core.messages import ROOT, Message, identity, make, next_tip
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.recall_titles import STAGE
from ctxproxy.core.records import Session, SessionKey, Spent
from ctxproxy.core.sessions import frame_of, join_thin
from ctxproxy.core.settle import Ending, settle
from ctxproxy.core.situation import Situation
from tests.core.chains import Chain
from tests.core.histories import assistant, count, long_turn, user
from tests.core.recalling import DROPPING, ask, long_ago, recalling

KEY = SessionKey("ab" * 16, "talk")
SYSTEM = make({"role": "system", "content": "be short"})
FRAME, SIDE = frame_of("m", stream=True, tools=None), frame_of("m", stream=False, tools=None)
ANSWER = assistant("the answer")


def situation(history: list[Message], limit: int = 10_000) -> Situation:
    return Chain(Policy(), [SYSTEM]).situation(history, limit)


def ending(*replies: Message, complete: bool = True, session: Session | None = None, frame: str = FRAME) -> Ending:
    return Ending(KEY, session, "full", frame, "m", "p", 50, replies, complete, 9.0)


def settled(s: Situation, end: Ending, planned: Plan | None = None) -> dict[type, Any]:
    """The effects by their kind."""
    effects: list[Effect] = settle(s, planned or plan(s), end)
    assert [type(effect) for effect in effects[:3]] == [OpenSession, AppendMessages, CountUse]
    return {type(effect): effect for effect in effects}


def test_a_first_request_is_kept_with_its_answer_and_the_conversation_stands_behind_it() -> None:
    s = situation([user("hello")])
    made = settled(s, ending(ANSWER))
    asked, answered = made[AppendMessages].messages
    assert (asked.tip, asked.parent, asked.raw, asked.tokens) == (s.reconciled.tip, ROOT, user("hello").raw, count(user("hello")))
    assert (answered.parent, answered.raw, answered.role, answered.partial) == (asked.tip, ANSWER.raw, "assistant", False)
    assert answered.tip == next_tip(asked.tip, identity(ANSWER))
    assert (answered.tokens, answered.created) == (count(ANSWER), 9.0)
    assert made[MoveTip] == MoveTip(KEY, ROOT, answered.tip, required=False)
    assert made[OpenSession] == OpenSession(KEY, 9.0, "full", FRAME, (SYSTEM.raw,), "m", "p", 50)
    assert PutCheckpoint not in made


def test_use_is_counted_in_logical_and_in_sent_tokens() -> None:
    s = situation(long_turn(20), 3000)
    planned = plan(s)
    made = settled(s, ending(ANSWER), planned)
    assert made[CountUse] == CountUse(KEY, 1, planned.tokens_in, planned.tokens_sent, 1)
    assert planned.tokens_sent < planned.tokens_in


def test_what_the_request_cost_is_added_to_what_the_session_has_cost() -> None:
    s, spent = situation([user("hello")]), Spent(cost_all=7.5, reported_requests=1)
    assert settled(s, structs.replace(ending(ANSWER), spent=spent))[CountUse].spent == spent
    assert settled(s, ending(ANSWER))[CountUse].spent == Spent()


def test_a_decision_is_kept_at_its_own_tip_and_at_the_earliest_that_it_needs() -> None:
    s = situation(long_turn(20), 3000)
    planned = plan(s)
    kept = [effect.checkpoint for effect in settle(s, planned, ending(ANSWER)) if isinstance(effect, PutCheckpoint)]
    assert planned.checkpoint is not None
    assert kept == [planned.checkpoint, anchored(planned.checkpoint, s.reconciled.tips)]
    assert kept[1].tip in s.reconciled.tips[:-1]


def test_a_partial_answer_is_kept_but_the_conversation_stands_before_it() -> None:
    s = situation([user("hello")])
    made = settled(s, ending(ANSWER, complete=False))
    assert made[AppendMessages].messages[1].partial
    assert made[MoveTip].to == s.reconciled.tip


def test_a_refused_request_is_kept_and_moves_nothing_and_its_decision_is_not_kept() -> None:
    s = situation(long_turn(20), 3000)
    made = settled(s, ending())
    assert len(made[AppendMessages].messages) == len(s.reconciled.history)
    assert MoveTip not in made
    assert PutCheckpoint not in made
    assert made[OpenSession].model == "m", "a new session has at least its model"
    assert (made[OpenSession].frame, made[OpenSession].system) == ("", None)


def test_of_many_choices_all_are_kept_and_the_conversation_goes_on_from_the_first() -> None:
    s = situation([user("hello")])
    made = settled(s, ending(ANSWER, assistant("another")))
    _, first, second = made[AppendMessages].messages
    assert first.parent == second.parent == s.reconciled.tip
    assert made[MoveTip].to == first.tip


def test_a_side_request_is_kept_and_leaves_the_session_as_it_stands() -> None:
    s = situation([user("Give it a title.")])
    session = Session(KEY, tip="cd" * 16, frame=FRAME)
    made = settled(s, ending(ANSWER, session=session, frame=SIDE))
    assert MoveTip not in made
    assert (made[OpenSession].frame, made[OpenSession].system, made[OpenSession].model) == ("", None, None)


def test_a_request_without_system_messages_leaves_those_last_seen() -> None:
    s = replace(situation([user("hello")]), leading=())
    assert settled(s, ending(ANSWER))[OpenSession].system is None


def test_a_thin_request_moves_only_a_conversation_that_still_stands_where_it_began() -> None:
    stored = [user("hello"), ANSWER]
    whole = situation(stored)
    joined = join_thin([user("next")], stored, whole.reconciled.tips, retried=False)
    s = replace(whole, reconciled=joined, counts=tuple(map(count, joined.history)))
    session = Session(KEY, tip=whole.reconciled.tip, manner="thin", frame=SIDE, created=7.0)
    made = settled(s, ending(assistant("more"), session=session))
    assert made[OpenSession].made == 7.0
    assert [row.raw for row in made[AppendMessages].messages] == [user("next").raw, assistant("more").raw]
    assert made[MoveTip] == MoveTip(KEY, whole.reconciled.tip, made[AppendMessages].messages[-1].tip, required=True)


def test_what_was_recalled_is_kept_at_the_requests_own_tip_and_the_decision_without_it_earlier() -> None:
    s = Chain(DROPPING).situation(long_ago("The gym opens at nine.", question="When does the gym open?"), 400)
    planned = recalling(s)
    assert planned.checkpoint is not None
    assert planned.recalled is not None
    kept = [effect.checkpoint for effect in settle(s, planned, ending(ANSWER)) if isinstance(effect, PutCheckpoint)]
    assert kept == [anchored(planned.checkpoint, s.reconciled.tips), planned.recalled]
    assert (kept[0].tip == s.reconciled.tip, kept[1].tip == s.reconciled.tip) == (False, True)
    assert not any(entry.stage == STAGE for entry in kept[0].entries)
    assert PutCheckpoint not in settled(s, ending(), planned), "a refused request keeps neither"


def test_what_was_recalled_is_kept_where_nothing_else_was_decided() -> None:
    others = (f"Number {n} is a good one." for n in range(9))
    history = long_ago("The gym opens at nine.", *others, "My sister Petra paints houses.", question="When does the gym open?", turns=40)
    chain = Chain(DROPPING)
    ask(chain, history, 1500)
    s = chain.situation([*history, assistant("At nine."), user("Does my sister Petra paint houses?")], 1500)
    planned = recalling(s)
    assert planned.checkpoint is None
    kept = [effect.checkpoint for effect in settle(s, planned, ending(ANSWER)) if isinstance(effect, PutCheckpoint)]
    assert kept == [planned.recalled]
