"""The recovery rungs: which, when, with what figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.ladder import (
    MAX_CALLS,
    Attempt,
    ClampOutput,
    Clear,
    GiveUp,
    Ladder,
    Replan,
    Rung,
    ShortenLastUser,
    SummarizeAndTrim,
    budget_after,
    next_rung,
    skipped,
    start,
    summarizer_failed,
    too_little,
)
from ctxproxy.core.overflow import OTHER, Verdict
from ctxproxy.core.policy import Recovery

BARE = Verdict("overflow", shrink_helps=True)
FACTS = Attempt(prompt_tokens=10_000, elapsed_s=1.0)


def climb(state: Ladder, verdict: Verdict, facts: Attempt) -> list[Rung]:
    """All rungs of a request whose every call is refused alike, the final GiveUp included."""
    rungs: list[Rung] = []
    while not rungs or not isinstance(rungs[-1], GiveUp):
        state, rung = next_rung(state, verdict, facts)
        rungs.append(rung)
    return rungs


def kinds(rungs: list[Rung]) -> list[type]:
    return [type(rung) for rung in rungs]


def test_without_a_clamp_the_rungs_are_replan_summarize_clear() -> None:
    rungs = climb(start(Recovery()), BARE, FACTS)
    assert kinds(rungs) == [Replan, SummarizeAndTrim, Clear, GiveUp]
    assert rungs[-1] == GiveUp("calls")


def test_an_output_that_does_not_fit_is_clamped_first_and_a_call_is_kept_for_clear() -> None:
    verdict = Verdict("overflow", shrink_helps=True, limit_tokens=4097, prompt_tokens=116, completion_tokens=4000, requested_tokens=4116)
    rungs = climb(start(Recovery()), verdict, Attempt(prompt_tokens=120, elapsed_s=0.0, max_tokens=4000))
    assert kinds(rungs) == [ClampOutput, Replan, Clear, GiveUp]
    assert rungs[0] == ClampOutput(4097 - 116 - 40)


def test_an_output_that_fills_the_window_by_itself_is_told_to_the_client_who_asked_for_it() -> None:
    verdict = Verdict("output_cap", clamp_helps=True, limit_tokens=4000, prompt_tokens=10, completion_tokens=4096, requested_tokens=4106)
    rungs = climb(start(Recovery()), verdict, Attempt(prompt_tokens=12, elapsed_s=0.0, max_tokens=4096))
    assert rungs == [GiveUp("shrinking_helps_nothing")]


def test_a_models_own_cap_of_the_output_is_told_to_the_client() -> None:
    verdict = Verdict("output_cap", clamp_helps=True, completion_tokens=100_000)
    facts = Attempt(prompt_tokens=12, elapsed_s=0.0, max_tokens=100_000, window_tokens=64_000)
    assert next_rung(start(Recovery()), verdict, facts)[1] == GiveUp("shrinking_helps_nothing")


def test_the_last_user_message_is_shortened_only_if_configured() -> None:
    assert kinds(climb(start(Recovery(shorten_last_user=True)), BARE, FACTS)) == [Replan, Clear, ShortenLastUser, GiveUp]
    assert ShortenLastUser not in kinds(climb(start(Recovery()), BARE, FACTS))


@pytest.mark.parametrize(
    ("state", "verdict", "facts", "reason"),
    [
        (start(Recovery(enabled=False)), BARE, FACTS, "disabled"),
        (start(Recovery()), OTHER, FACTS, "shrinking_helps_nothing"),
        (Ladder(Recovery(), calls=MAX_CALLS), BARE, FACTS, "calls"),
        (start(Recovery(deadline_s=1.0)), BARE, FACTS, "deadline"),
        (Ladder(Recovery(), calls=2, taken=frozenset({"clear"})), BARE, FACTS, "no_rung_left"),
    ],
)
def test_it_gives_up_and_says_why(state: Ladder, verdict: Verdict, facts: Attempt, reason: str) -> None:
    after, rung = next_rung(state, verdict, facts)
    assert rung == GiveUp(reason)  # type: ignore[arg-type]
    assert after == state


def test_a_skipped_rung_gives_its_call_back_and_is_not_taken_again() -> None:
    state = start(Recovery())
    state, first = next_rung(state, BARE, FACTS)
    state, second = next_rung(skipped(state), BARE, FACTS)
    state, third = next_rung(skipped(state), BARE, FACTS)
    assert kinds([first, second, third]) == [Replan, SummarizeAndTrim, Clear]
    assert state.calls == 2
    assert next_rung(skipped(state), BARE, FACTS)[1] == GiveUp("no_rung_left")


def test_no_rung_waits_for_a_summarizer_that_has_just_failed() -> None:
    state, _ = next_rung(start(Recovery()), BARE, FACTS)
    assert next_rung(state, BARE, FACTS)[1] == SummarizeAndTrim(6_000, may_wait=True)
    assert next_rung(summarizer_failed(state), BARE, FACTS)[1] == SummarizeAndTrim(6_000, may_wait=False)
    assert start(Recovery(), summarizer_failed=True).summarizer_failed


@pytest.mark.parametrize(
    ("verdict", "facts"),
    [
        (Verdict("overflow", shrink_helps=True, limit_tokens=8192, prompt_tokens=5000, completion_tokens=4000), FACTS),  # over half of the window
        (Verdict("overflow", shrink_helps=True, limit_tokens=8192, prompt_tokens=100, completion_tokens=100), FACTS),  # the output fits
        (Verdict("overflow", shrink_helps=True, limit_tokens=8192, prompt_tokens=100), FACTS),  # no output was asked for
        (Verdict("overflow", shrink_helps=True, prompt_tokens=100, completion_tokens=9000), FACTS),  # no window is known
        (Verdict("overflow", shrink_helps=True, clamp_helps=False, limit_tokens=8192, prompt_tokens=100, completion_tokens=8191), FACTS),
        (Verdict("field_too_long", shrink_helps=True, limit_tokens=8192, prompt_tokens=100, completion_tokens=8191), FACTS),
        (Verdict("overflow", shrink_helps=True, limit_tokens=130, prompt_tokens=64, completion_tokens=67), Attempt(64, 0.0)),
    ],
)
def test_where_clamping_is_not_the_remedy_nothing_is_clamped(verdict: Verdict, facts: Attempt) -> None:
    rung = next_rung(start(Recovery()), verdict, facts)[1]
    assert not isinstance(rung, ClampOutput) or rung.max_tokens < (verdict.completion_tokens or 0) - 16


def test_the_clamp_uses_what_is_known_of_window_and_prompt() -> None:
    believed = Attempt(prompt_tokens=1000, elapsed_s=0.0, max_tokens=9000, window_tokens=8192)
    assert next_rung(start(Recovery()), BARE, believed)[1] == ClampOutput(8192 - 1000 - 81)
    summed = Verdict("overflow", shrink_helps=True, limit_tokens=8192, requested_tokens=9000, completion_tokens=8000)
    assert next_rung(start(Recovery()), summed, FACTS)[1] == ClampOutput(8192 - 1000 - 81)
    one_over = Verdict("overflow", shrink_helps=True, limit_tokens=8192, prompt_tokens=58, completion_tokens=8134)
    assert next_rung(start(Recovery()), one_over, FACTS)[1] == ClampOutput(8192 - 58 - 81)


@pytest.mark.parametrize(
    ("verdict", "facts", "budget"),
    [
        (BARE, Attempt(10_000, 0.0), 6_000),
        (BARE, Attempt(500_000, 0.0, window_tokens=100_000), 90_000),
        (Verdict("overflow", limit_tokens=8000, prompt_tokens=10_000), Attempt(10_000, 0.0, reserve_tokens=1000), 6790),
        (Verdict("overflow", limit_tokens=8000, prompt_tokens=20_000), Attempt(10_000, 0.0, reserve_tokens=1000), 3395),
        (Verdict("overflow", limit_tokens=8000, prompt_tokens=10_000), Attempt(10_000, 0.0, reserve_tokens=100_000), 3880),
        (Verdict("overflow", limit_tokens=8000), Attempt(10_000, 0.0), 7200),
        (Verdict("overflow", limit_tokens=8000, prompt_tokens=1), Attempt(10_000, 0.0), 7200),
        (Verdict("overflow", limit_tokens=1_000_000, prompt_tokens=10_001), Attempt(10_000, 0.0), 8_500),
        (Verdict("overflow", over_by_tokens=4000), Attempt(10_000, 0.0), 5400),
        (Verdict("overflow", over_by_tokens=40_000), Attempt(10_000, 0.0), 6000),
        (BARE, Attempt(1, 0.0), 1),
        (BARE, Attempt(0, 0.0), 1),
    ],
)
def test_the_budget_comes_from_the_stated_figures_scaled_to_our_count(verdict: Verdict, facts: Attempt, budget: int) -> None:
    assert budget_after(verdict, facts) == budget


@pytest.mark.parametrize(("planned", "is_too_little"), [(9_501, True), (9_500, False), (10_000, True), (1, False)])
def test_a_rung_must_shrink_by_five_percent(planned: int, is_too_little: bool) -> None:
    assert too_little(10_000, planned) is is_too_little


tokens = st.none() | st.integers(0, 3_000_000)
verdicts = st.builds(
    Verdict,
    st.sampled_from(["overflow", "field_too_long", "request_larger_than_tpm"]),
    shrink_helps=st.just(True),
    clamp_helps=st.sampled_from([None, True, False]),
    limit_tokens=st.none() | st.integers(128, 20_000_000),
    prompt_tokens=tokens,
    completion_tokens=tokens,
    requested_tokens=tokens,
    over_by_tokens=tokens,
)
attempts = st.builds(
    Attempt,
    st.integers(0, 3_000_000),
    st.floats(0, 200),
    max_tokens=st.none() | st.integers(1, 10**6),
    reserve_tokens=st.integers(0, 10**6),
    window_tokens=tokens,
)


@given(verdict=verdicts, facts=attempts, shorten=st.booleans())
def test_every_climb_ends_within_the_bound_and_takes_no_rung_twice(verdict: Verdict, facts: Attempt, shorten: bool) -> None:
    rungs = climb(start(Recovery(shorten_last_user=shorten)), verdict, facts)
    assert len(rungs) <= MAX_CALLS
    assert len(set(kinds(rungs))) == len(rungs)
    assert facts.elapsed_s >= 120 or Clear in kinds(rungs)


@given(verdict=verdicts, facts=attempts)
def test_a_budget_is_positive_and_below_what_was_sent_and_a_clamp_leaves_something(verdict: Verdict, facts: Attempt) -> None:
    assert 1 <= budget_after(verdict, facts) <= max(1, facts.prompt_tokens * 0.85)
    rung = next_rung(start(Recovery()), verdict, facts)[1]
    if isinstance(rung, ClampOutput):
        asked = verdict.completion_tokens or facts.max_tokens
        assert asked is not None
        assert 1 <= rung.max_tokens < asked
