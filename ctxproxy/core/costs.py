"""What prompts cost where the upstream remembers the front of the one before, and whether a change is worth the front that it breaks.

The unit is one prompt token that is not cached. A price list in money would only scale it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol

from ctxproxy.core.budget import Budget
from ctxproxy.core.pipeline import Outcome
from ctxproxy.core.policy import Policy
from ctxproxy.core.recall_titles import BESIDE
from ctxproxy.core.records import Checkpoint
from ctxproxy.core.sessions import Reconciled
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.transcript import Transcript

OUTPUT_PRICE = 4.0
"""What a token that a summarizer writes costs: vendors' lists have 4 to 8 times a prompt token (OpenAI), 5 (Anthropic), 1.5 (DeepSeek)."""
FEWEST_REQUESTS, MOST_REQUESTS = 20, 50
"""How many more requests a conversation is expected to make: as many as it has made so far (the Lindy rule, where nothing is known of
its end), but within these. At 20 compacting from 80 % to 55 % pays for itself even with nothing of the front kept, so a whole compaction
is never put off, only one that gains little for all that it breaks (others found 12, lean-ctx#1195); after 50 the next one is near.
"""

WEIGHED = frozenset({"adaptive", "lossless"})
"""The presets that weigh costs; the others reproduce systems that do not, and a user's own pipeline is the user's to weigh."""


class Case(Protocol):
    """What is weighed of a `plan.Situation`."""

    @property
    def reconciled(self) -> Reconciled: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def idle_s(self) -> float: ...


def cost(tokens: int, cached: int, cached_price: float) -> float:
    """What a prompt of so many tokens costs, `cached` of them remembered by the upstream."""
    return tokens - cached + cached_price * cached


def summary_cost(prompt_tokens: int, written_tokens: int) -> float:
    """What a call of the summarizer costs: nothing of it is cached, for it begins as no other call does."""
    return prompt_tokens + OUTPUT_PRICE * written_tokens


def sent_before(reconciled: Reconciled) -> int:
    """How many messages of a history an earlier request has sent: those stored, without the answer at their end, which nobody has sent yet."""
    at = reconciled.fresh_from
    while at and reconciled.history[at - 1].role == "assistant":
        at -= 1
    return at


def shared_tokens(before: Transcript, after: Transcript) -> int:
    """The tokens of the entries that two transcripts begin with, byte for byte."""
    pairs = takewhile(lambda pair: pair[0].message.raw == pair[1].message.raw, zip(before.entries, after.entries, strict=False))
    return sum(new.tokens for _, new in pairs)


def seen_part(transcript: Transcript, reconciled: Reconciled) -> Transcript:
    """The front of a transcript that an earlier request has sent, had it been sent like this."""
    fresh = frozenset(reconciled.tips[sent_before(reconciled) :])
    return Transcript(tuple(takewhile(lambda entry: entry.tip not in fresh, transcript.entries)))


def trigger(case: Case, checkpoint: Checkpoint | None) -> int:
    """Where a prompt is compacted: after a decision of reversible stages only, not before it is to be summarized, or the cache would be
    broken again for the little that has grown old since; while nothing is cached, an edited one halfway between there and the target.
    """
    budget = case.budget
    if checkpoint is None or all(name in BESIDE for name, _ in checkpoint.actions):
        return budget.trigger
    usual = budget.summarize if _reversible(checkpoint.actions) else budget.trigger
    return (budget.target + usual) // 2 if is_cold(case) else usual


def worth_it(case: Case, before: Transcript, outcome: Outcome) -> bool:
    """Whether a change gains enough for the cache that it breaks (002-S3).

    What must fit always does. What is nearly too long asks for `min_gain` only: it will have to be changed soon, and a count may be
    wrong. Below the trigger, nothing is lost for good only because the cache is cold.
    """
    budget, after = case.budget, outcome.transcript
    if before.tokens > budget.limit:
        return True
    if before.tokens - after.tokens < case.policy.min_gain * budget.limit:
        return False
    if is_cold(case):
        return before.tokens >= budget.trigger or _reversible(outcome.actions)
    return not _weighs(case.policy) or before.tokens >= budget.summarize or _pays(case, before, after)


def is_cold(case: Case) -> bool:
    """Whether the upstream has forgotten the prompt before this one, so that changing it breaks nothing.

    A request that came before is never cold: sent again it gets the plan that it had.
    """
    is_new = case.reconciled.fresh_from < len(case.reconciled.tips)
    return case.idle_s > case.policy.cache_ttl_s and is_new and _weighs(case.policy)


def _weighs(policy: Policy) -> bool:
    return policy.pipeline is None and policy.preset in WEIGHED


def _pays(case: Case, before: Transcript, after: Transcript) -> bool:
    """Whether what a smaller prompt saves in the requests to come is worth what it costs now to have its changed part read anew."""
    seen, price = seen_part(before, case.reconciled), case.policy.cached_price
    now = cost(after.tokens, shared_tokens(seen, after), price) - cost(before.tokens, seen.tokens, price)
    made = sum(1 for message in case.reconciled.history if message.role == "assistant")
    expected = max(FEWEST_REQUESTS, min(made, MOST_REQUESTS))
    return now <= expected * price * (before.tokens - after.tokens)


def _reversible(actions: Sequence[tuple[str, int]]) -> bool:
    return all(name in BESIDE or (name in REGISTRY and REGISTRY[name].loss == "reversible") for name, _ in actions)
