"""What a request cost, by our model of the upstream's cache and by the upstream's own report.

The model: what the session's last request had at its front is cached, unless that was longer ago than a cache lives. It needs nothing
but what is stored, so it is the same on every replica and after a restart.
"""

from __future__ import annotations

from ctxproxy.core.checkpoints import replay, resume
from ctxproxy.core.costs import cost, seen_part, sent_before, shared_tokens
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import Session, Spent
from ctxproxy.core.reply import Usage
from ctxproxy.core.situation import Situation, base_transcript, gone_tips

MOST_REPORTED_TOKENS = 2**31
"""A report of more, or of less than none, is no report of a prompt."""


def spent_on(s: Situation, plan: Plan, session: Session | None, usage: Usage | None) -> Spent:
    """What an answered request cost, and what all of its conversation would have; `session` is as it was before, None for a first request."""
    price = s.policy.cached_price
    warm = session is not None and s.idle_s <= s.policy.cache_ttl_s and session.system == tuple(m.raw for m in s.leading)
    cached_in = min(s.budget.fixed + sum(s.counts[: sent_before(s.reconciled)]), plan.tokens_in) if warm else 0
    cached_sent = min(s.budget.fixed + _seen_tokens(s, plan), plan.tokens_sent) if warm else 0
    reported = usage if usage and 0 <= usage.prompt_tokens < MOST_REPORTED_TOKENS else None
    return Spent(
        cost_all=cost(plan.tokens_in, cached_in, price),
        cost_sent=cost(plan.tokens_sent, cached_sent, price),
        cached_expected=cached_sent,
        reported_requests=1 if reported else 0,
        reported_prompt=reported.prompt_tokens if reported else 0,
        reported_cached=max(0, min(reported.cached_tokens or 0, reported.prompt_tokens)) if reported else 0,
    )


def _seen_tokens(s: Situation, plan: Plan) -> int:
    """The tokens at the front of what is sent that the request before had there, too: all that is not new, until a decision is made."""
    if not plan.changed:
        return sum(s.counts[: sent_before(s.reconciled)])
    if plan.checkpoint is None:
        return seen_part(plan.transcript, s.reconciled).tokens
    base = base_transcript(s)
    decision = resume(s.reconciled.tips[: sent_before(s.reconciled)], s.checkpoints, s.variant, forgotten=gone_tips(s))
    before = replay(decision, base, s.count) if decision else base
    return shared_tokens(seen_part(before, s.reconciled), plan.transcript)


def figures(tokens_sent: int, spent: Spent, cached_price: float) -> dict[str, float]:
    """The figures as they are shown: costs in prompt tokens that are not cached, shares of what their names say."""
    net = spent.cost_all - spent.cost_sent - spent.cost_summaries
    return {
        "cost_if_all_sent": round(spent.cost_all, 1),
        "cost_sent": round(spent.cost_sent, 1),
        "cost_summaries": round(spent.cost_summaries, 1),
        "net_saved": round(net, 1),
        "net_saved_of_cost_if_all_sent": _part(net, spent.cost_all),
        "cached_expected": spent.cached_expected,
        "cached_expected_of_tokens_sent": _part(spent.cached_expected, tokens_sent),
        "requests_with_reported_usage": spent.reported_requests,
        "prompt_reported": spent.reported_prompt,
        "cached_reported": spent.reported_cached,
        "cached_reported_of_prompt_reported": _part(spent.reported_cached, spent.reported_prompt),
        "cost_reported": round(cost(spent.reported_prompt, spent.reported_cached, cached_price), 1),
    }


def _part(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0
