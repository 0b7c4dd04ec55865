"""How many tokens the history of a prompt may have, and at how many what is done about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ctxproxy.core.policy import Policy

DEFAULT_RESERVE_TOKENS = 4096
"""Room for a reply whose length the request does not bound (INTERFACE.md §3)."""
BACKGROUND_AT = 0.70
"""Where a summary is begun in the background, to be there when it is needed (ARCHITECTURE.md §5)."""

AHEAD_REQUESTS = 40
"""At a tenth of the price for what is cached, reading a prompt anew each 40 requests makes it a quarter dearer."""
MOST_LEFT = 0.75
"""Of the budget: under 80 %, so that a compaction is never followed by another one at once."""
LEAST_BESIDE = 0.25
"""Of the budget: compaction leaves room in it for the output that is asked for, as if it were the whole window (field case 055), unless less
than this would be left for the history."""


@dataclass(frozen=True, slots=True)
class Budget:
    """All in tokens; what is compared with the history part (without system, tools and response format) is below `fixed`."""

    window: int
    reserve: int
    """Kept free for the reply."""
    prompt_tokens: int
    """What the whole prompt may have."""
    fixed: int
    """What no stage may touch: system messages, tools, response format, the primer of the reply."""
    limit: int
    """What the history may have: the effective budget. 0: the fixed part alone is too large, nothing fits."""
    with_recalled: int
    """What it may have with passages of the past in it: they never take the place of output that is asked for, unless that is most of the window."""
    trigger: int
    """A history of more is compacted."""
    summarize: int
    """A history of more is summarized too."""
    target: int
    """Where compaction stops."""
    background: int
    """A history of more has its summary begun in the background."""


def budget(policy: Policy, window_tokens: int, max_output: int | None, fixed_tokens: int) -> Budget:
    """The budget of a request: `max_output` is its `max_completion_tokens` or `max_tokens`, None if it has neither."""
    reserve = reserve_tokens(policy, window_tokens, max_output)
    wanted = policy.pre_rot_tokens if policy.max_tokens == "auto" else policy.max_tokens
    prompt = max(0, min(wanted, window_tokens - reserve))
    limit = max(0, prompt - fixed_tokens)
    target = share(limit, min(policy.target, policy.compact_at))
    beside = limit - (max_output or 0)
    whole = window_tokens - (max_output or 0) - fixed_tokens
    return Budget(
        window=window_tokens,
        reserve=reserve,
        prompt_tokens=prompt,
        fixed=fixed_tokens,
        limit=limit,
        with_recalled=min(limit, whole) if whole >= limit * LEAST_BESIDE else limit,
        trigger=share(limit, policy.compact_at),
        summarize=share(limit, policy.summarize_at),
        target=min(target, beside) if beside >= limit * LEAST_BESIDE else target,
        background=share(limit, min(BACKGROUND_AT, policy.compact_at)),
    )


def reserve_tokens(policy: Policy, window_tokens: int, max_output: int | None) -> int:
    """Room for the reply, never over half of the window (a client that asks for all of it still has to send a prompt)."""
    if policy.reserve_tokens != "auto":
        wanted = policy.reserve_tokens
    elif max_output is not None and max_output > 0:
        wanted = max_output
    else:
        wanted = min(DEFAULT_RESERVE_TOKENS, window_tokens // 4)
    return min(wanted, window_tokens // 2)


def reachable(budget: Budget, kept_tokens: int) -> int:
    """Where compaction stops where so many tokens must stay whatever it does: the target's share of all else is not given up for them."""
    if not 0 < kept_tokens < budget.limit:
        return budget.target
    return kept_tokens + budget.target * (budget.limit - kept_tokens) // budget.limit


def unhurried(budget: Budget, target: int, pace_tokens: int) -> int:
    """Where compaction stops in a conversation that grows by so many tokens a request: above the target, if the next one is `AHEAD_REQUESTS`
    away even then. What is read anew once for so many requests costs less than leaving it out is worth.
    """
    return max(target, min(budget.summarize - AHEAD_REQUESTS * pace_tokens, int(MOST_LEFT * budget.limit)))


def tightened(old: Budget, prompt_tokens: int) -> Budget:
    """The budget with at most so many tokens for the whole prompt, all shares in proportion: what is tried after an overflow."""
    prompt = max(0, min(old.prompt_tokens, prompt_tokens))
    limit = max(0, prompt - old.fixed)
    part = limit / old.limit if old.limit else 0.0
    return replace(
        old,
        prompt_tokens=prompt,
        limit=limit,
        with_recalled=share(old.with_recalled, part),
        trigger=share(old.trigger, part),
        summarize=share(old.summarize, part),
        target=share(old.target, part),
        background=share(old.background, part),
    )


def share(tokens: int, part: float) -> int:
    """A part of some tokens, rounded down; binary fractions are forgiven (0.29 of 100 is 29)."""
    return math.floor(tokens * part + 1e-6)
