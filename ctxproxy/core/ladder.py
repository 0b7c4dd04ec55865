"""The recovery rungs after an overflow, as a pure state machine: state, verdict and facts in, the next rung out.

    rung              taken when                                             what the caller sends
    ClampOutput       the prompt fills at most half of the window and the    the same messages, a lower max_tokens
                      output asked for is what does not fit
    Replan            always                                                 the plan for a smaller budget
    SummarizeAndTrim  a call is left for Clear afterwards                    all before the last user message summarized,
                                                                             the rest cut to `recovery`'s bounds
    Clear             always                                                 system, pins and the last user message
    ShortenLastUser   only if `recovery.shorten_last_user`                   as Clear, the last user message shortened
    GiveUp            nothing left, no time left, or shrinking helps nothing the upstream's own error

Each rung at most once and at most `MAX_CALLS` upstream calls for one request. When fewer calls are left than rungs, the strongest are kept:
a client must not see an overflow while a legal smaller request exists. A rung whose prompt would be `too_little` smaller is `skipped`: its
call is not counted.
No clock: the caller says how much time has passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ctxproxy.core.overflow import Verdict
from ctxproxy.core.policy import Recovery

MAX_CALLS = 4
"""Upstream calls for one request, the first included."""
MIN_SHRINK = 0.05
"""A rung has to make the prompt at least this much smaller than the one last sent."""
MAX_OF_SENT = 0.85
"""A new budget is never above this share of what was just sent, whatever the stated figures say."""
OF_SENT_WITHOUT_FIGURES = 0.6
MARGIN = 0.03
"""Kept free of a budget worked out from stated figures: counts of ours are off by so much after calibration."""
MARGIN_WITHOUT_COUNT = 0.1
"""The same where the upstream has not said how it counts the prompt."""
MIN_SCALE, MAX_SCALE = 0.25, 4.0
"""Our count over the upstream's; beyond these the stated figure is not of this prompt."""
CLAMP_MARGIN = 0.01
MIN_CLAMP_MARGIN_TOKENS = 16
MAX_PROMPT_SHARE_FOR_CLAMP = 0.5

Reason: TypeAlias = Literal["disabled", "shrinking_helps_nothing", "calls", "deadline", "no_rung_left"]
Step: TypeAlias = Literal["clamp", "replan", "summarize", "clear", "shorten"]


@dataclass(frozen=True, slots=True)
class ClampOutput:
    """Send the same messages with this max_tokens (1 or more, lower than what was asked for)."""

    max_tokens: int


@dataclass(frozen=True, slots=True)
class Replan:
    """Plan again for a prompt of at most so many tokens by our count, everything (system, tools) included."""

    budget_tokens: int


@dataclass(frozen=True, slots=True)
class SummarizeAndTrim:
    """Summarize all before the last user message and cut what remains; `may_wait` False: without asking a summarizer that has just failed."""

    budget_tokens: int
    may_wait: bool = True


@dataclass(frozen=True, slots=True)
class Clear:
    """Send system messages, pins and the last user message only."""


@dataclass(frozen=True, slots=True)
class ShortenLastUser:
    """As Clear, and the last user message is shortened to the budget."""

    budget_tokens: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Pass the upstream's own error on."""

    reason: Reason


Rung: TypeAlias = ClampOutput | Replan | SummarizeAndTrim | Clear | ShortenLastUser | GiveUp


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is known of the call that was just refused."""

    prompt_tokens: int
    """What was sent, by our count."""
    elapsed_s: float
    """Since the request came in."""
    max_tokens: int | None = None
    """The output asked for; None if the request says nothing."""
    reserve_tokens: int = 0
    """Room to keep for the reply."""
    window_tokens: int | None = None
    """The window believed, after what this error taught."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Where a request stands on the ladder."""

    recovery: Recovery
    calls: int = 1
    """Upstream calls made or handed out, the first included."""
    taken: frozenset[Step] = frozenset()
    summarizer_failed: bool = False


def start(recovery: Recovery, *, summarizer_failed: bool = False) -> Ladder:
    """The state after the first call."""
    return Ladder(recovery, summarizer_failed=summarizer_failed)


def next_rung(state: Ladder, verdict: Verdict, facts: Attempt) -> tuple[Ladder, Rung]:
    """The next rung for a refused call, and the state in which its call is counted; GiveUp leaves the state as it is."""
    reason = _reason_to_stop(state, verdict, facts)
    if reason is not None:
        return state, GiveUp(reason)
    clamp = _clamp(verdict, facts)
    for step in _steps_left(state, may_clamp=clamp is not None):
        return replace(state, calls=state.calls + 1, taken=state.taken | {step}), _rung(step, state, verdict, facts, clamp)
    return state, GiveUp("no_rung_left")


def skipped(state: Ladder) -> Ladder:
    """The state after a rung whose call was not made, since its prompt would have been `too_little` smaller."""
    return replace(state, calls=state.calls - 1)


def summarizer_failed(state: Ladder) -> Ladder:
    """The state after a summarizer has failed: no later rung waits for it."""
    return replace(state, summarizer_failed=True)


def too_little(previous_tokens: int, planned_tokens: int) -> bool:
    """Whether a planned prompt is not at least 5 % smaller than the one last sent."""
    return planned_tokens > previous_tokens * (1 - MIN_SHRINK)


def _reason_to_stop(state: Ladder, verdict: Verdict, facts: Attempt) -> Reason | None:
    if not state.recovery.enabled:
        return "disabled"
    if not verdict.shrink_helps:
        return "shrinking_helps_nothing"
    if state.calls >= MAX_CALLS:
        return "calls"
    return "deadline" if facts.elapsed_s >= state.recovery.deadline_s else None


def _steps_left(state: Ladder, *, may_clamp: bool) -> tuple[Step, ...]:
    """The steps still open, weakest first; where calls are scarce, only the strongest that all fit."""
    last: tuple[Step, ...] = ("clear", "shorten") if state.recovery.shorten_last_user else ("clear",)
    before: tuple[Step, ...] = ("clamp", "replan", "summarize") if may_clamp else ("replan", "summarize")
    spare_calls = MAX_CALLS - state.calls - len([step for step in last if step not in state.taken])
    return tuple(step for step in ((*before, *last) if spare_calls > 0 else last) if step not in state.taken and not _is_behind(step, state))


def _is_behind(step: Step, state: Ladder) -> bool:
    """A weaker rung than one already taken cannot help any more."""
    order: tuple[Step, ...] = ("clamp", "replan", "summarize", "clear", "shorten")
    return any(order.index(step) < order.index(one) for one in state.taken)


def _rung(step: Step, state: Ladder, verdict: Verdict, facts: Attempt, clamp: int | None) -> Rung:
    budget = budget_after(verdict, facts)
    if step == "clamp" and clamp is not None:
        return ClampOutput(clamp)
    if step == "replan":
        return Replan(budget)
    if step == "summarize":
        return SummarizeAndTrim(budget, may_wait=not state.summarizer_failed)
    return Clear() if step == "clear" else ShortenLastUser(budget)


def budget_after(verdict: Verdict, facts: Attempt) -> int:
    """The prompt budget in tokens of our count that should fit after this refusal: 1 or more, at most 85 % of what was sent."""
    most = int(facts.prompt_tokens * MAX_OF_SENT)
    stated = _from_window(verdict, facts)
    if stated is None and verdict.over_by_tokens is not None:
        stated = int((facts.prompt_tokens - verdict.over_by_tokens) * (1 - MARGIN_WITHOUT_COUNT))
    if stated is None or stated < 1:
        believed = int((facts.window_tokens or facts.prompt_tokens) * (1 - MARGIN_WITHOUT_COUNT))
        stated = min(int(facts.prompt_tokens * OF_SENT_WITHOUT_FIGURES), believed)
    return max(1, min(stated, most))


def _from_window(verdict: Verdict, facts: Attempt) -> int | None:
    """From the stated window less the reserve, in tokens of our count."""
    limit = verdict.limit_tokens
    if limit is None:
        return None
    room = limit - min(facts.reserve_tokens, limit // 2)
    counted = verdict.prompt_tokens
    scale = facts.prompt_tokens / counted if counted else 0.0
    if MIN_SCALE <= scale <= MAX_SCALE:
        return int(room * scale * (1 - MARGIN))
    return int(room * (1 - MARGIN_WITHOUT_COUNT))


def _clamp(verdict: Verdict, facts: Attempt) -> int | None:
    """The max_tokens that leaves the prompt, as the upstream counts it, in the window; None where clamping is not the remedy."""
    limit = verdict.limit_tokens or facts.window_tokens
    asked = verdict.completion_tokens or facts.max_tokens
    if limit is None or asked is None or verdict.kind != "overflow" or verdict.clamp_helps is False:
        return None
    prompt = _prompt_as_upstream_counts(verdict, facts)
    if prompt > limit * MAX_PROMPT_SHARE_FOR_CLAMP or prompt + asked < limit:
        return None
    room = limit - prompt - max(MIN_CLAMP_MARGIN_TOKENS, int(limit * CLAMP_MARGIN))
    return room if 1 <= room < min(asked, facts.max_tokens or asked) else None


def _prompt_as_upstream_counts(verdict: Verdict, facts: Attempt) -> int:
    if verdict.prompt_tokens is not None:
        return verdict.prompt_tokens
    if verdict.requested_tokens is not None and verdict.completion_tokens is not None:
        return verdict.requested_tokens - verdict.completion_tokens
    return facts.prompt_tokens
