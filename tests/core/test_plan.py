"""What is sent for a request, case by case; what holds for all of them is in `test_laws`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec
import pytest

from ctxproxy.core.budget import reachable
from ctxproxy.core.fates import fates
from ctxproxy.core.frames import parse
from ctxproxy.core.messages import Directives, Message, text_of
from ctxproxy.core.plan import background_tip, compacted_now, observed, plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import Summary
from ctxproxy.core.situation import base_transcript
from ctxproxy.core.stages.base import REGISTRY, Context, Stage
from ctxproxy.core.transcript import Edit, Transcript
from tests.core.chains import Chain, Step
from tests.core.histories import FILLER, assistant, call, count, long_turn, result, talk, user

NEXT = [assistant("The answer."), user("And what is next?")]


def tokens(history: Sequence[Message]) -> int:
    return sum(map(count, history))


def names(step: Step) -> list[str]:
    return [name for name, _ in step.plan.actions]


# ---------------------------------------------------------------- whether anything is done
def test_under_the_trigger_the_clients_messages_go_out_as_they_are_and_from_it_on_they_do_not() -> None:
    history = talk(40)
    limit = tokens(history) * 10 // 8
    while int(limit * 0.8) <= tokens(history):
        limit += 1
    assert int((limit - 1) * 0.8) == tokens(history), "at exactly 80 % it acts (002-06)"
    for exact, changed in ((limit, False), (limit - 1, True)):
        made = plan(Chain(Policy(min_gain=0.0, pipeline=({"stage": "drop_oldest"},))).situation(history, exact))
        assert made.changed is changed
        assert (made.tokens_sent < made.tokens_in) is changed
    assert plan(Chain(Policy()).situation(history, limit)).messages == tuple(history)


def test_over_the_trigger_a_gain_that_is_not_worth_the_broken_cache_is_left() -> None:
    duplicate = "the same words " * 20
    history = [user("go"), call("a"), result("a", duplicate), call("b"), result("b", duplicate), *talk(30)]
    policy = Policy(pipeline=({"stage": "duplicate_results"},))
    limit = int(tokens(history) * 1.1)
    assert not plan(Chain(policy).situation(history, limit)).changed
    assert plan(Chain(msgspec.structs.replace(policy, min_gain=0.001)).situation(history, limit)).changed
    assert plan(Chain(policy).situation(history, tokens(history) - 1)).changed, "what does not fit must shrink"


def test_reversible_stages_are_enough_where_they_gain_much() -> None:
    step = Chain(Policy(keep_recent_turns=0)).ask(long_turn(20), 12_000)
    assert names(step) == ["compact_tool_results"]
    assert step.plan.wants == ""


def test_where_they_gain_little_the_oldest_stretch_gives_way_to_a_stand_in_that_wants_a_summary() -> None:
    history = talk(40)
    step = Chain(Policy(keep_recent_turns=1)).ask(history, tokens(history))
    assert names(step) == ["summarize"]
    assert step.plan.wants in step.situation.reconciled.tips
    assert step.plan.checkpoint is not None
    assert step.plan.checkpoint.wants == step.plan.wants


def test_the_last_resorts_run_only_while_the_prompt_is_over_its_limit() -> None:
    history = [*talk(1)[:-1], user("Look at this."), call("a"), result("a", "one line of a log\n" * 2000)]
    step = Chain(Policy()).ask(history, 900)
    assert "shrink_newest" in names(step)
    assert step.plan.fits
    enough = Chain(Policy()).ask(history, tokens(history))
    assert {"shrink_newest", "drop_oldest"}.isdisjoint(names(enough))


def test_over_the_most_turns_the_oldest_half_goes_whatever_the_tokens() -> None:
    step = Chain(Policy(max_turns=20)).ask(talk(20), 1_000_000)
    assert len(step.situation.reconciled.history) == 41
    assert step.plan.changed
    assert len([m for m in step.plan.messages if m.role == "user"]) <= 12
    dropped = Chain(Policy(max_turns=20, pipeline=({"stage": "drop_oldest"},))).ask(talk(20), 1_000_000)
    assert len(dropped.plan.transcript.turns) <= 12
    assert not Chain(Policy(max_turns=21)).ask(talk(20), 1_000_000).plan.changed


def test_a_stage_that_fails_is_named_whether_or_not_the_others_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Stage, frozen=True):
        def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
            raise ValueError("a fault of the stage")

    Broken.name, Broken.loss = "broken", "reversible"
    monkeypatch.setitem(REGISTRY, "broken", Broken)
    for others in ((), ({"stage": "drop_oldest"},)):
        step = Chain(Policy(pipeline=({"stage": "broken"}, *others))).ask(talk(30), 900)
        assert step.plan.failed == ("broken",)
        assert step.plan.changed is bool(others)


# ---------------------------------------------------------------- earlier decisions
def test_a_decision_is_replayed_until_the_prompt_is_too_long_again() -> None:
    chain, history = Chain(Policy(pipeline=({"stage": "drop_oldest"},))), talk(30)
    first = chain.ask(history, 1500)
    second = chain.ask([*history, *NEXT], 1500)
    assert first.plan.checkpoint is not None
    assert second.plan.checkpoint is None
    assert second.sent == [*first.sent, *(m.raw for m in NEXT)]
    assert second.plan.changed
    third = chain.ask([*history, *NEXT, assistant("long " * 3000), user("?")], 1500)
    assert third.plan.checkpoint is not None


def test_a_request_sent_again_gets_its_own_decision_although_it_is_over_the_trigger() -> None:
    chain, history = Chain(Policy(pipeline=({"stage": "compact_tool_results"},), keep_recent_turns=0)), long_turn(4, 600)
    limit = tokens(history)
    step = chain.ask([*history[:-2], *long_turn(1, 4000)[1:]], limit)
    assert step.plan.checkpoint is not None
    again = chain.ask([*history[:-2], *long_turn(1, 4000)[1:]], limit)
    assert (again.sent, again.plan.checkpoint) == (step.sent, None)
    assert chain.ask([*history[:-2], *long_turn(1, 4000)[1:]], step.plan.transcript.tokens // 2).plan.budget.limit < limit


def test_a_decision_is_let_go_when_the_budget_has_grown_far_enough() -> None:
    chain, history = Chain(Policy(pipeline=({"stage": "drop_oldest"},))), talk(30)
    assert chain.ask(history, 1500).plan.changed
    assert chain.ask(history, tokens(history) * 10 // 8).plan.changed
    limit = tokens(history) * 2
    roomy = chain.ask(history, limit)
    assert not roomy.plan.changed
    assert chain.ask(history, limit).plan.checkpoint is None
    history += [assistant("long " * 600), user("and on?")]
    assert limit * 0.55 < tokens(history) < limit * 0.8
    grown = chain.ask(history, limit)
    assert (grown.plan.changed, grown.plan.checkpoint) == (False, None), "what was let go does not come back"


def test_over_the_most_turns_half_goes_once_and_then_not_for_as_many_turns() -> None:
    chain, history = Chain(Policy(max_turns=20)), talk(50)
    decided = [turns for turns in range(15, 50) if chain.ask(history[: 2 * turns - 1], 1_000_000).plan.checkpoint]
    assert decided[0] == 21
    assert len(decided) <= 4


def late_summary(chain: Chain, tip: str, text: str) -> None:
    chain.due.clear()
    chain.summaries[tip] = Summary(tip, text, "llm", "writer", 1, 9, 0.0, 1.0, 2.0)


def test_a_summary_that_came_late_takes_the_place_of_its_stand_in() -> None:
    chain, history = Chain(Policy(keep_recent_turns=1), late=99), talk(40)
    first = chain.ask(history, tokens(history))
    late_summary(chain, first.plan.wants, "They spoke of SEVENTEEN things.")
    second = chain.ask([*history, *NEXT], tokens(history))
    assert second.plan.checkpoint is not None
    assert "SEVENTEEN" in text_of(second.plan.messages[0])
    assert second.plan.wants == ""


def test_where_no_decision_can_be_made_with_a_late_summary_the_one_without_it_stands() -> None:
    chain, history = Chain(Policy(keep_recent_turns=1), late=99), talk(40)
    first = chain.ask(history, tokens(history))
    late_summary(chain, first.plan.wants, "They spoke.")
    still = chain.ask(history, tokens(history) * 3 // 2)
    assert still.plan.checkpoint is None
    assert still.sent == first.sent


# ---------------------------------------------------------------- what is forgotten
def forgetting(history: list[Message], *places: int) -> Step:
    chain = Chain(Policy())
    tips = chain.situation(history, 1_000_000).reconciled.tips
    chain.forgotten = frozenset(tips[at] for at in places)
    return chain.ask(history, 1_000_000)


def test_a_forgotten_message_goes_with_its_group_and_roles_stay_in_turn() -> None:
    history = [user("a"), call("c"), result("c", "x"), assistant("b"), user("d"), assistant("e"), user("f")]
    result_gone = forgetting(history, 2)
    assert [m.role for m in result_gone.plan.messages] == ["user", "assistant", "user", "assistant", "user"]
    answer_gone = forgetting(history, 5)
    assert [m.role for m in answer_gone.plan.messages[-3:]] == ["user", "assistant", "user"]
    assert answer_gone.plan.transcript.entries[-2].stage == "forget"
    assert answer_gone.plan.changed
    assert fates(answer_gone.situation, answer_gone.plan)[5].state == "dropped"


def test_forgotten_neighbours_leave_one_gap() -> None:
    history = [user("a"), assistant("b"), user("c"), assistant("d"), user("e"), assistant("f"), user("g")]
    step = forgetting(history, 1, 2, 3, 6)
    assert [text_of(m)[:1] for m in step.plan.messages] == ["a", "[", "e", "f"]
    assert step.plan.transcript.entries[1].stage == "forget"


def test_what_another_branch_forgot_changes_nothing_here() -> None:
    situation = replace(Chain(Policy()).situation(talk(2), 1_000_000), forgotten=frozenset({"ff" * 16}))
    made = plan(situation)
    assert not made.changed
    assert made.messages == tuple(talk(2))


def test_a_message_goes_as_soon_as_the_turns_are_over_that_its_client_gave_it() -> None:
    history = [user("the weather now: rain", Directives(expire_after_turns=2)), assistant("noted"), user("b"), assistant("c"), user("d")]
    chain = Chain(Policy())
    assert not chain.ask(history[:3], 1_000_000).plan.changed
    step = chain.ask(history, 1_000_000)
    assert step.plan.changed
    assert all("rain" not in text_of(message) for message in step.plan.messages)
    assert step.sent[-3:] == [m.raw for m in history[2:]]


# ---------------------------------------------------------------- pins
def test_a_pinned_text_that_a_stage_took_out_is_put_back_at_the_head_and_still_fits() -> None:
    pin = "Ticket ABC-77 counts."
    history = [user("start"), assistant("ok"), user(pin + " words" * 300), *talk(30)[1:]]
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)), pins=[pin])
    step = chain.ask(history, 1000)
    assert pin in text_of(step.plan.messages[0])
    assert step.plan.transcript.entries[0].stage == "pins"
    assert step.plan.transcript.tokens <= 800
    assert chain.ask([*history, *NEXT], 1000).sent[: len(step.sent)] == step.sent


def test_where_the_frame_of_a_pin_costs_more_than_was_gained_nothing_is_done() -> None:
    history = [user("start"), assistant("ok, ABC-77 it is"), user("go"), assistant("well"), user("?")]
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)), pins=["ABC-77"])
    step = chain.ask(history, tokens(history) - 1)
    assert not step.plan.changed


def pinned_later(pin: str) -> tuple[Chain, list[Message], Step]:
    """A conversation that was compacted, then a text of its removed part is pinned, then the next request."""
    history = [user("start"), assistant("ok"), user("Ticket ABC-77 counts." + " words" * 300), *talk(30)[1:]]
    chain = Chain(Policy(pipeline=({"stage": "drop_oldest"},)))
    assert "ABC-77" not in str([text_of(message) for message in chain.ask(history, 1000).plan.messages])
    chain.pins = [pin]
    history = [*history, *NEXT]
    return chain, history, chain.ask(history, 1000)


def test_a_text_that_is_pinned_after_it_left_comes_back_with_the_next_request_and_stays_where_it_is() -> None:
    chain, history, step = pinned_later("Ticket ABC-77 counts.")
    assert step.plan.actions == (("pins", 1),)
    assert "Ticket ABC-77 counts." in text_of(step.plan.messages[0])
    assert step.plan.transcript.tokens == chain.steps[0].plan.transcript.tokens + sum(map(count, NEXT)) - step.plan.saved[0][1]
    assert chain.ask(history, 1000).plan.actions == ()
    again = chain.ask([*history, *NEXT], 1000)
    assert (again.plan.actions, again.sent[: len(step.sent)]) == ((), step.sent)


def test_a_pin_for_which_others_have_to_go_makes_them_go() -> None:
    _, _, step = pinned_later("ABC-77 " * 200)
    assert step.plan.actions == (("drop_oldest", 5),)
    assert step.plan.transcript.entries[0].stage == "pins"
    assert step.plan.fits


def test_a_pin_for_which_there_is_no_room_changes_nothing() -> None:
    chain, _, step = pinned_later("ABC-77 " * 600)
    assert step.plan.actions == ()
    assert step.sent == [*chain.steps[0].sent, *(message.raw for message in NEXT)]


def test_a_pin_for_which_no_stage_can_make_room_changes_nothing() -> None:
    history = [user("q"), call("c"), result("c", "row of a table\n" * 200), *talk(8)]
    chain = Chain(Policy(pipeline=({"stage": "truncate_tool_results", "max_chars": 200},)))
    limit = tokens(history) - 100
    before = chain.ask(history, limit)
    chain.pins = ["what nobody can make room for " * (3 * (limit - before.plan.transcript.tokens) // 20)]
    step = chain.ask([*history, *NEXT], limit)
    assert (before.plan.actions, step.plan.actions) == ((("truncate_tool_results", 1),), ())
    assert step.sent == [*before.sent, *(message.raw for message in NEXT)]


def test_pinned_messages_are_sent_as_they_are() -> None:
    pinned = user("x " * 500, Directives(pin=True))
    step = Chain(Policy()).ask([user("a"), assistant("b"), pinned, *talk(30)[1:]], 1000)
    assert base_transcript(step.situation).entries[2].pinned
    assert pinned.raw in step.sent


# ---------------------------------------------------------------- beside the plan
def test_what_is_only_observed_goes_out_whole_with_the_actions_that_would_have_been_taken() -> None:
    step = Chain(Policy()).ask(talk(30), 900)
    seen = observed(step.situation, step.plan)
    assert (seen.messages, seen.changed, seen.checkpoint) == (tuple(talk(30)), False, None)
    assert seen.actions == step.plan.actions != ()


def test_a_summary_is_begun_in_advance_from_seventy_per_cent_on() -> None:
    history = talk(40)
    limit = int(tokens(history) / 0.75)
    situation = Chain(Policy(keep_recent_turns=1)).situation(history, limit)
    tip = background_tip(situation, plan(situation))
    assert tip in situation.reconciled.tips
    roomy = Chain(Policy(keep_recent_turns=1)).situation(history, limit * 2)
    assert background_tip(roomy, plan(roomy)) == ""
    assert background_tip(replace(situation, summarizer="extractive"), plan(situation)) == ""
    lossless = Chain(Policy(preset="lossless")).situation(history, limit)
    assert background_tip(lossless, plan(lossless)) == ""


def test_compacting_by_hand_acts_below_the_trigger_and_builds_on_what_was_decided() -> None:
    chain, history = Chain(Policy(keep_recent_turns=1)), talk(40)
    limit = tokens(history) * 3 // 2
    assert not plan(chain.situation(history, limit)).changed
    step = chain.ask(history, limit, decide=compacted_now)
    assert step.plan.checkpoint is not None
    assert step.plan.tokens_sent < step.plan.tokens_in
    again = chain.ask([*history, *NEXT], limit, decide=compacted_now)
    assert again.plan.checkpoint is None
    assert again.sent[: len(step.sent)] == step.sent


def test_compacting_by_hand_changes_nothing_where_nothing_can_go() -> None:
    step = Chain(Policy()).ask(talk(0), 1000, decide=compacted_now)
    assert not step.plan.changed
    assert step.plan.messages == tuple(talk(0))


def test_a_stage_that_keeps_the_limit_of_turns_itself_is_left_to_do_so() -> None:
    trims = Policy(pipeline=({"stage": "drop_oldest"}, {"stage": "trim_turns"}), max_turns=5)
    assert plan(Chain(trims).situation(talk(6), 100_000)).actions == (("trim_turns", 1),)


def test_by_hand_what_is_short_is_compacted_too_and_stays_so() -> None:
    chain, history = Chain(Policy(preset="cowagent")), talk(9)
    step = chain.ask(history, 100_000, decide=compacted_now)
    assert step.plan.actions[0] == ("by_hand", 1)
    assert chain.ask([*history, assistant("a")], 100_000).sent[: len(step.sent)] == step.sent


# ---------------------------------------------------------------- a patient preset
def test_lossy_stages_of_the_default_preset_wait_until_the_prompt_is_nearly_full() -> None:
    history = talk(40)
    waits, acts = int(tokens(history) / 0.93), int(tokens(history) / 0.96)
    assert not plan(Chain(Policy()).situation(history, waits)).changed
    assert [name for name, _ in plan(Chain(Policy()).situation(history, acts)).actions] == ["summarize"]


def test_below_that_what_can_be_undone_is_done_if_it_gains_enough() -> None:
    history = long_turn(20)
    made = plan(Chain(Policy(keep_recent_turns=0)).situation(history, int(tokens(history) / 0.9)))
    assert [name for name, _ in made.actions] == ["compact_tool_results"]
    dear = Policy(keep_recent_turns=0, min_gain=0.9)
    assert not plan(Chain(dear).situation(history, int(tokens(history) / 0.9))).changed


def test_a_pin_that_what_can_be_undone_took_out_is_put_back() -> None:
    history = long_turn(20)
    pin = "line of file 0\nline of file 0"
    situation = replace(Chain(Policy(keep_recent_turns=0)).situation(history, int(tokens(history) / 0.9)), pins=(pin,))
    made = plan(situation)
    assert [name for name, _ in made.actions] == ["compact_tool_results"]
    assert pin not in text_of(next(m for m in made.messages if m.role == "tool"))
    background = parse(text_of(made.messages[0]))
    assert background is not None
    assert background.pins == (pin,)


def test_a_limit_of_turns_is_kept_without_patience_and_so_is_the_limit_of_tokens_after_it() -> None:
    history = [*talk(20), call("a"), result("a", "one line of a log\n" * 2000)]
    made = plan(Chain(Policy(max_turns=10)).situation(history, 900))
    assert made.fits
    assert "shrink_newest" in [name for name, _ in made.actions]
    assert len(made.transcript.turns) <= 11


def test_elsewhere_they_wait_only_while_what_can_be_undone_gains_enough() -> None:
    history = long_turn(20)
    made = plan(Chain(Policy(preset="agkit")).situation(history, int(tokens(history) / 0.97)))
    assert [name for name, _ in made.actions] == ["compact_tool_results"]
    assert "summarize_middle" in [name for name, _ in plan(Chain(Policy(preset="agkit")).situation(talk(40), int(tokens(talk(40)) / 0.97))).actions]


def test_the_target_is_that_of_what_can_go() -> None:
    history = [*talk(40), call("a"), result("a", FILLER * 300)]
    step = Chain(Policy()).ask(history, int(tokens(history) / 0.96))
    kept = sum(step.plan.transcript.entries[at].tokens for at in step.plan.transcript.protected)
    assert step.plan.budget.target < kept + 0.55 * (step.plan.budget.limit - kept) < step.plan.budget.limit
    assert step.plan.budget.target < step.plan.transcript.tokens <= reachable(step.plan.budget, kept)


# ---------------------------------------------------------------- pins that no message holds
def test_a_pin_that_nobody_has_said_stands_at_the_head_from_the_next_request_on() -> None:
    chain, history = Chain(Policy()), talk(3)
    assert not chain.ask(history, 9000).plan.changed
    chain.pins = ["The berth is 14."]
    first = chain.ask([*history, *NEXT], 9000)
    assert first.plan.actions == (("pins", 1),)
    assert not first.plan.compacts
    assert "The berth is 14." in text_of(first.plan.messages[0])
    assert first.sent[2:] == [message.raw for message in [*history, *NEXT]]
    again = chain.ask([*history, *NEXT, assistant("Fine."), user("The berth is 14. Really?")], 9000)
    assert again.sent[: len(first.sent)] == first.sent
    assert again.plan.checkpoint is None


def test_a_pin_that_a_message_holds_changes_nothing() -> None:
    chain = Chain(Policy(), pins=[text_of(talk(3)[0])])
    assert not chain.ask(talk(3), 9000).plan.changed


def test_a_pin_comes_before_what_was_decided_and_stays_through_the_next_compaction() -> None:
    chain, history = Chain(Policy(keep_recent_turns=1)), talk(40)
    limit = tokens(history)
    assert chain.ask(history, limit).plan.changed
    chain.pins = ["The berth is 14."]
    first = chain.ask([*history, *NEXT], limit)
    assert ("pins", 1) in first.plan.actions
    more = [*history, *NEXT, assistant("x " + FILLER * 400), user("And on?")]
    later = chain.ask(more, limit)
    assert ("pins", 1) not in later.plan.actions
    assert any("The berth is 14." in text_of(message) for message in later.plan.messages)


def test_a_pin_comes_back_where_the_budget_has_grown_and_all_goes_out_again() -> None:
    chain, history = Chain(Policy(keep_recent_turns=1)), talk(40)
    assert chain.ask(history, tokens(history)).plan.changed
    chain.pins = ["The berth is 14."]
    chain.ask([*history, *NEXT], tokens(history))
    grown = chain.ask([*history, *NEXT, assistant("Fine."), user("And?")], tokens(history) * 4)
    assert any("The berth is 14." in text_of(message) for message in grown.plan.messages)
