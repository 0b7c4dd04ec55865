"""What is found again of the past, in a prompt: where it stands, how long, and that nothing else changes."""

from __future__ import annotations

import pytest

from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.pairing import alternates
from ctxproxy.core.plan import compacted_now, plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.recall_titles import STAGE, TAKEN_OUT, TITLES
from ctxproxy.core.recalled import ROLES, TODAY, Passage, is_recalled, recalled_text, with_recalled
from ctxproxy.core.records import Summary
from ctxproxy.core.validity import violations
from tests.core.chains import Chain, Step
from tests.core.histories import FILLER, assistant, call, count, result, talk, user
from tests.core.recalling import DROPPING, ask, long_ago

FACT = "The locker at the gym opens with 7731."
QUESTION = "Which number opens the locker at the gym?"
FOUND = [Passage(("aa", 0), "user", FACT)]
HISTORY = long_ago(FACT, question=QUESTION)


def recalled_in(made: Plan | Step) -> list[int]:
    """Where the passages stand in a prompt."""
    planned = made.plan if isinstance(made, Step) else made
    return [at for at, message in enumerate(planned.messages) if text_of(message).startswith(TITLES["en"])]


def said_there(made: Plan | Step) -> str:
    planned = made.plan if isinstance(made, Step) else made
    return "\n".join(text_of(planned.messages[at]) for at in recalled_in(planned))


# ---------------------------------------------------------------- the text
def test_passages_stand_a_line_each_behind_who_said_them() -> None:
    passages = [Passage(("aa", 0), role, f"by {role}") for role in ("user", "assistant", "tool", "function", "summary", "narrator")]
    lines = ["User: by user", "Assistant: by assistant", "Tool: by tool", "Tool: by function", "Summary: by summary", "by narrator"]
    assert recalled_text(passages, "en").split("\n") == [TITLES["en"], *lines]
    assert recalled_text([Passage(("aa", 0), "user", "门是红色的。")], "zh") == TITLES["zh"] + "\n用户：门是红色的。"
    assert ROLES["en"].keys() == ROLES["zh"].keys()


def test_a_day_stands_once_before_what_was_said_on_it_and_today_after_another_day_only() -> None:
    days = ["2024-05-01", "2024-05-01", "2024-06-02", "", ""]
    passages = [Passage(("aa", n), "user", str(n), day) for n, day in enumerate(days)]
    lines = ["[2024-05-01]", "User: 0", "User: 1", "[2024-06-02]", "User: 2", f"[{TODAY['en']}]", "User: 3", "User: 4"]
    assert recalled_text(passages, "en").split("\n")[1:] == lines


# ---------------------------------------------------------------- where it stands
def test_passages_go_in_just_before_the_last_user_message_with_an_acknowledgement() -> None:
    s = Chain(DROPPING, late=99).situation(HISTORY, 400)
    before = plan(s)
    made = with_recalled(s, before, FOUND, "en")
    *front, frame, word, asked = made.messages
    assert (front, asked) == ([*before.messages[:-1]], HISTORY[-1])
    assert (frame.role, word.role, text_of(frame)) == ("user", "assistant", f"{TITLES['en']}\nUser: {FACT}")
    assert alternates(made.messages)
    assert made.actions == (*before.actions, (STAGE, 1))
    assert made.saved == (*before.saved, (STAGE, 0))
    assert made.tokens_sent == before.tokens_sent + count(frame) + count(word)
    assert (made.tokens_in, made.checkpoint, made.changed) == (before.tokens_in, before.checkpoint, True)


def test_a_prompt_that_goes_out_as_it_came_gets_them_too() -> None:
    s = Chain(Policy()).situation(talk(2), 10_000)
    before = plan(s)
    made = with_recalled(s, before, FOUND, "en")
    assert (before.changed, made.changed) == (False, True)
    assert (made.actions, made.saved, made.checkpoint) == (((STAGE, 1),), (), None)
    assert [m.raw for m in made.messages if m not in made.messages[-3:-1]] == [m.raw for m in before.messages]


def test_where_two_user_messages_would_meet_a_word_of_ours_parts_them() -> None:
    note = [user("go"), call("c"), result("c", "done"), user("next")]
    s = Chain(Policy()).situation([user("only one")], 10_000)
    assert [m.role for m in with_recalled(s, plan(s), FOUND, "en").messages] == ["user", "assistant", "user"]
    s = Chain(Policy()).situation(note, 10_000)
    assert violations(with_recalled(s, plan(s), FOUND, "en").messages) == []


UNASKED: list[tuple[list[Message], str]] = [
    ([*talk(2), call("c"), result("c", "42 rows")], "the last message is a result"),
    ([*talk(2), assistant("I was saying")], "the last message is the assistant's"),
    ([assistant("Hello.")], "there is no user message"),
]


@pytest.mark.parametrize(("history", "why"), UNASKED, ids=[row[-1] for row in UNASKED])
def test_nothing_is_added_where_the_user_has_not_the_last_word(history: list[Message], why: str) -> None:
    s = Chain(Policy()).situation(history, 10_000)
    before = plan(s)
    assert with_recalled(s, before, FOUND, "en") is before, why


def test_nothing_found_changes_nothing() -> None:
    s = Chain(DROPPING).situation(HISTORY, 400)
    before = plan(s)
    assert with_recalled(s, before, [], "en") is before


def test_a_prompt_may_be_filled_to_its_limit_and_not_over_it() -> None:
    history = talk(2)
    s = Chain(Policy(compact_at=1.0, summarize_at=1.0)).situation(history, 10_000)
    needed = with_recalled(s, plan(s), FOUND, "en").transcript.tokens
    for limit, is_added in ((needed, True), (needed - 1, False)):
        s = Chain(Policy(compact_at=1.0, summarize_at=1.0)).situation(history, limit)
        before = plan(s)
        made = with_recalled(s, before, FOUND, "en")
        assert (made is not before) is is_added
        assert made.transcript.tokens <= limit


# ---------------------------------------------------------------- for how long
def test_they_are_sent_again_byte_for_byte_at_the_next_requests_of_the_chain() -> None:
    chain = Chain(DROPPING, late=99)
    first = ask(chain, HISTORY, 400)
    assert FACT in said_there(first)
    history = [*HISTORY, assistant("It is 7731."), user("Good, then let us speak about cheese, bread, salt and butter.")]
    second = ask(chain, history, 400)
    assert second.sent[: len(first.sent)] == first.sent
    assert recalled_in(second) == recalled_in(first)
    third = ask(chain, [*history, assistant("You are welcome."), call("c"), result("c", "done")], 400)
    assert third.sent[: len(second.sent)] == second.sent


def test_the_same_request_sent_again_adds_nothing_twice() -> None:
    chain = Chain(DROPPING, late=99)
    first = ask(chain, HISTORY, 400)
    again = ask(chain, HISTORY, 400)
    assert again.sent == first.sent
    assert again.plan.recalled is None
    assert len(recalled_in(again)) == 1


def test_the_next_compaction_takes_them_out_and_says_so() -> None:
    chain = Chain(DROPPING, late=99)
    ask(chain, HISTORY, 400)
    more = [message for n in range(4) for message in (assistant(f"r{n} " + FILLER * 3), user(f"s{n} " + FILLER * 3))]
    step = chain.ask([*HISTORY, *more], 400)
    assert step.plan.actions[0] == (TAKEN_OUT, 1)
    assert step.plan.saved[0][0] == TAKEN_OUT
    assert step.plan.saved[0][1] > count(user(FACT))
    assert recalled_in(step) == []
    assert alternates(step.plan.messages)


def test_compacting_by_hand_takes_them_out_too() -> None:
    chain = Chain(DROPPING, late=99)
    ask(chain, HISTORY, 400)
    made = compacted_now(chain.situation([*HISTORY, assistant("It is 7731."), user("Thanks.")], 400))
    assert (recalled_in(made), made.compacts) == ([], True)


def test_a_branch_that_forks_before_them_shows_nothing_of_them() -> None:
    chain = Chain(DROPPING, late=99)
    first = ask(chain, HISTORY, 400)
    fork = chain.ask([*HISTORY[:-1], user("Tell me of the weather.")], 400)
    assert recalled_in(fork) == []
    assert fork.sent[:-1] == first.sent[: len(fork.sent) - 1], "the decision without them stands there"


def test_what_was_recalled_goes_on_while_the_rest_of_the_history_goes_out_as_it_came() -> None:
    chain = Chain(Policy())
    s = chain.situation(talk(2), 10_000)
    made = with_recalled(s, plan(s), FOUND, "en")
    assert made.recalled is not None
    chain.checkpoints[made.recalled.tip, made.recalled.variant] = made.recalled
    after = chain.ask([*talk(2), assistant("Yes."), user("Good.")], 10_000)
    assert after.sent[: len(made.messages)] == [message.raw for message in made.messages]


def test_they_stay_over_the_trigger_while_nothing_else_would_change() -> None:
    chain, history = Chain(Policy(), late=99), talk(40)
    limit = sum(map(count, history)) * 10 // 8
    s = chain.situation(history, limit)
    made = with_recalled(s, plan(s), FOUND, "en")
    assert made.recalled is not None
    chain.checkpoints[made.recalled.tip, made.recalled.variant] = made.recalled
    after = chain.ask([*history, assistant("Yes."), user("Good.")], limit)
    assert after.plan.budget.trigger < after.plan.transcript.tokens < after.plan.budget.summarize
    assert after.sent[: len(made.messages)] == [message.raw for message in made.messages]


def test_so_it_does_behind_a_pin() -> None:
    chain = Chain(Policy(), pins=["The door is red."])
    chain.ask(talk(2), 10_000)
    s = chain.situation([*talk(2), assistant("Yes."), user("Good.")], 10_000)
    made = with_recalled(s, plan(s), FOUND, "en")
    assert made.recalled is not None
    chain.checkpoints[made.recalled.tip, made.recalled.variant] = made.recalled
    after = chain.ask([*s.reconciled.history, assistant("Is it?"), user("It is.")], 10_000)
    assert after.sent[: len(made.messages)] == [message.raw for message in made.messages]


# ---------------------------------------------------------------- the decision that is kept
def test_the_decision_goes_on_from_what_was_decided_before() -> None:
    chain = Chain(DROPPING, late=99)
    history = [*HISTORY[:12], user("The bicycle is locked with a chain at the harbour."), assistant("Fine."), *HISTORY[12:]]
    first = ask(chain, history, 400)
    assert first.plan.recalled is not None
    assert first.plan.recalled.tip == first.situation.reconciled.tip
    assert [name for name, _ in first.plan.recalled.actions] == ["drop_oldest", STAGE]
    second = ask(chain, [*history, assistant("Aha."), user("Where is the bicycle locked with a chain?")], 400)
    assert second.plan.checkpoint is None
    assert second.plan.recalled is not None
    assert [name for name, _ in second.plan.recalled.actions] == ["drop_oldest", STAGE], "each is named once"
    assert sum(entry.stage == STAGE for entry in second.plan.recalled.entries) == 4


def test_where_the_decision_before_waits_for_a_summary_so_does_this_one() -> None:
    chain = Chain(Policy(), late=99)
    step = ask(chain, HISTORY, 400)
    assert step.plan.recalled is not None
    assert step.plan.recalled.wants == step.plan.wants != ""


def test_so_it_does_where_the_summary_is_there_and_no_decision_could_be_made_with_it() -> None:
    chain, history = Chain(Policy(keep_recent_turns=1), late=99), talk(40)
    limit = sum(map(count, history))
    first = chain.ask(history, limit)
    chain.summaries[first.plan.wants] = Summary(first.plan.wants, "They spoke.", "llm", "writer", 1, 9, 0.0, 1.0, 2.0)
    s = chain.situation([*history, assistant("Yes."), user("Good.")], limit * 3 // 2)
    before = plan(s)
    assert [message.raw for message in before.messages[:-2]] == first.sent, "the stand-in stands"
    made = with_recalled(s, before, FOUND, "en")
    assert made.recalled is not None
    assert made.recalled.wants == first.plan.wants
    assert made.recalled.actions == (*first.plan.actions, (STAGE, 1))


def test_only_the_entries_that_were_added_are_known_as_recalled() -> None:
    s = Chain(DROPPING).situation(HISTORY, 400)
    made = with_recalled(s, plan(s), FOUND, "en")
    assert [is_recalled(entry) for entry in made.transcript.entries[-3:]] == [True, True, False]
    assert made.transcript.entries[-3].reason == "1 passages that the last user message asks for"
