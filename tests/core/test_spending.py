"""What a request has cost, worked out from what is stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxproxy.core.messages import Message
from ctxproxy.core.plan import compacted_now, observed, plan
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import Session, SessionKey, Spent
from ctxproxy.core.reply import Usage
from ctxproxy.core.situation import Situation
from ctxproxy.core.spending import MOST_REPORTED_TOKENS, figures, spent_on
from tests.core.chains import FIXED_TOKENS, Chain
from tests.core.histories import assistant, count, long_turn, make, user

SYSTEM = make({"role": "system", "content": "Answer in short."})
SESSION = Session(SessionKey("ab" * 16, "talk"), system=(SYSTEM.raw,))
FIRST = [user("What is the capital of France?")]
NEXT = [*FIRST, assistant("It is Paris, on the river Seine."), user("And of Spain?")]


def asked(*histories: list[Message], idle_s: float = 0.0) -> Situation:
    """The situation of the last of some requests in a row."""
    chain = Chain(Policy(), [SYSTEM], idle_s=idle_s)
    for history in histories[:-1]:
        chain.ask(history, 100_000)
    return chain.situation(histories[-1], 100_000)


def fixed() -> int:
    return FIXED_TOKENS + count(SYSTEM)


def test_of_a_first_request_nothing_is_cached() -> None:
    s = asked(FIRST)
    whole = fixed() + count(FIRST[0])
    assert spent_on(s, plan(s), None, None) == Spent(cost_all=whole, cost_sent=whole)


def test_of_the_next_one_all_is_cached_but_the_answer_and_what_is_new() -> None:
    s = asked(FIRST, NEXT)
    cached, new = fixed() + count(FIRST[0]), count(NEXT[1]) + count(NEXT[2])
    spent = spent_on(s, plan(s), SESSION, None)
    assert spent.cached_expected == cached
    assert spent.cost_sent == spent.cost_all == pytest.approx(new + 0.1 * cached)


def test_a_request_that_is_sent_again_is_cached_as_a_whole() -> None:
    s = asked(NEXT, NEXT)
    assert spent_on(s, plan(s), SESSION, None).cached_expected == plan(s).tokens_sent


@pytest.mark.parametrize("session", [SESSION, replace(SESSION, system=(b'{"role":"system","content":"It is 12:01."}',))])
@pytest.mark.parametrize("idle_s", [0.0, 301.0])
def test_after_a_long_silence_or_under_other_system_messages_nothing_is_cached(session: Session, idle_s: float) -> None:
    s = asked(FIRST, NEXT, idle_s=idle_s)
    spent = spent_on(s, plan(s), session, None)
    assert (spent.cached_expected > 0) is (session is SESSION and idle_s == 0)
    assert spent.cost_all == spent.cost_sent


def test_the_price_of_a_cached_token_is_the_policys() -> None:
    s = replace(asked(FIRST, NEXT), policy=Policy(cached_price=0.0))
    assert spent_on(s, plan(s), SESSION, None).cost_sent == count(NEXT[1]) + count(NEXT[2])


# ---------------------------------------------------------------- after a decision
LIMIT = 12_000


def session_with_a_decision() -> tuple[Chain, list[Message]]:
    chain, history = Chain(Policy(keep_recent_turns=0), [SYSTEM]), long_turn(20)
    chain.ask(history[:-2], 100_000)
    return chain, history


def test_a_decision_costs_its_changed_part_anew_and_the_next_request_is_cached_again() -> None:
    chain, history = session_with_a_decision()
    step = chain.ask(history, LIMIT)
    assert step.plan.checkpoint is not None
    spent = spent_on(step.situation, step.plan, SESSION, None)
    kept = [count(message) for message, raw in zip(history, step.sent[1:], strict=False) if message.raw == raw]
    front = sum(kept[: next(n for n, message in enumerate(history) if message.raw != step.sent[1 + n])])
    assert spent.cached_expected == fixed() + front
    assert spent.cost_sent > spent.cost_all, "it costs more, for once"
    again = chain.ask([*history, assistant("done"), user("And now?")], LIMIT)
    assert again.plan.checkpoint is None
    after = spent_on(again.situation, again.plan, SESSION, None)
    assert after.cached_expected == step.plan.tokens_sent
    assert after.cost_sent < after.cost_all


def test_what_a_second_decision_keeps_of_the_first_is_cached() -> None:
    chain, history = session_with_a_decision()
    first = chain.ask(history, LIMIT)
    longer = [*history, *long_turn(12)[1:]]
    second = chain.ask(longer, LIMIT, decide=compacted_now)
    assert second.plan.checkpoint is not None
    front = next(n for n, (old, new) in enumerate(zip(first.sent, second.sent, strict=False)) if old != new)
    spent = spent_on(second.situation, second.plan, SESSION, None)
    entries = second.plan.transcript.entries[: front - 1]
    assert front > 1
    assert spent.cached_expected == fixed() + sum(entry.tokens for entry in entries)


def test_where_plans_are_only_watched_both_cost_the_same() -> None:
    chain, history = session_with_a_decision()
    s = chain.situation(history, LIMIT)
    spent = spent_on(s, observed(s, plan(s)), SESSION, None)
    assert spent.cost_sent == spent.cost_all < sum(s.counts)


# ---------------------------------------------------------------- what the upstream reports
@pytest.mark.parametrize(
    ("usage", "reported"),
    [
        (None, (0, 0, 0)),
        (Usage(100, 5), (1, 100, 0)),
        (Usage(100, 5, 64), (1, 100, 64)),
        (Usage(100, 5, 200), (1, 100, 100)),
        (Usage(100, 5, -1), (1, 100, 0)),
        (Usage(0, 0), (1, 0, 0)),
        (Usage(-1, 5, 64), (0, 0, 0)),
        (Usage(MOST_REPORTED_TOKENS, 5, 64), (0, 0, 0)),
    ],
)
def test_what_the_upstream_reports_is_counted_beside_it(usage: Usage | None, reported: tuple[int, int, int]) -> None:
    s = asked(FIRST)
    spent = spent_on(s, plan(s), None, usage)
    assert (spent.reported_requests, spent.reported_prompt, spent.reported_cached) == reported


# ---------------------------------------------------------------- how it is shown
def test_the_net_saving_is_less_what_the_summaries_cost_and_may_be_negative() -> None:
    shown = figures(800, Spent(1000.04, 600, 150, 200, 3, 900, 300), 0.1)
    assert shown == {
        "cost_if_all_sent": 1000.0,
        "cost_sent": 600,
        "cost_summaries": 150,
        "net_saved": 250.0,
        "net_saved_of_cost_if_all_sent": 0.25,
        "cached_expected": 200,
        "cached_expected_of_tokens_sent": 0.25,
        "requests_with_reported_usage": 3,
        "prompt_reported": 900,
        "cached_reported": 300,
        "cached_reported_of_prompt_reported": 0.3333,
        "cost_reported": 630.0,
    }
    assert figures(0, Spent(cost_summaries=5), 0.1)["net_saved"] == -5
    assert set(figures(0, Spent(), 0.1).values()) == {0}
