"""What a plan says of each message: the answer to "what would be sent, and why does it stand so?"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.plan import Plan
from ctxproxy.core.stages.base import REGISTRY, marker_of
from ctxproxy.core.transcript import Entry

MessageState: TypeAlias = Literal["sent", "compacted", "summarized", "dropped"]


def states(plan: Plan, tips: Sequence[Tip]) -> dict[Tip, MessageState]:
    """For each message of a history, what the plan does with it."""
    found: dict[Tip, MessageState] = {}
    for entry in plan.transcript.entries:
        if entry.tip:
            found[entry.tip] = "sent" if entry.origin == "original" else "compacted"
        for tip in entry.covers:
            found[tip] = "summarized" if entry.stage == "summarize" else "dropped"
    return {tip: found.get(tip, "dropped") for tip in tips}


def view_entry(entry: Entry) -> dict[str, object]:
    """An entry of the prompt as the admin API shows it."""
    shown: dict[str, object] = {
        "tip": entry.tip or None,
        "message": dict(entry.message.fields),
        "tokens": entry.tokens,
        "origin": entry.origin,
        "why": reason(entry),
    }
    if entry.origin == "edited":
        shown["marker"] = marker_of(entry.tip)
    if entry.covers:
        shown["covers"] = list(entry.covers)
    return shown


def leading_entry(message: Message, tokens: int) -> dict[str, object]:
    """A leading system message as the admin API shows it."""
    return {
        "tip": None,
        "message": dict(message.fields),
        "tokens": tokens,
        "origin": "original",
        "why": "leading system message: always sent as it is",
    }


def reason(entry: Entry) -> str:
    """Why an entry stands as it does, in words."""
    if entry.origin == "original":
        return "pinned: sent as it is" if entry.pinned else "sent as it is"
    loss = REGISTRY[entry.stage].loss if entry.stage in REGISTRY else "lossy"
    if entry.origin == "edited":
        return f"shortened by {entry.stage} ({loss}); the original is kept"
    return f"inserted by {entry.stage} in place of {len(entry.covers)} messages" if entry.covers else f"inserted by {entry.stage}"


def plan_report(plan: Plan, leading: Sequence[dict[str, object]] = ()) -> dict[str, object]:
    """A plan in figures, with every message that it sends; `leading` are the entries of the system messages at its front."""
    return {
        "changed": plan.changed,
        "fits": plan.fits,
        "tokens_in": plan.tokens_in,
        "tokens_sent": plan.tokens_sent,
        "budget": budget_report(plan),
        "actions": [{"stage": name, "edits": edits} for name, edits in plan.actions],
        "failed": list(plan.failed),
        "messages": [*leading, *(view_entry(entry) for entry in plan.transcript.entries)],
    }


def budget_report(plan: Plan) -> Mapping[str, int]:
    """The budget's parts in tokens."""
    budget = plan.budget
    return {
        "window": budget.window,
        "reserve": budget.reserve,
        "prompt": budget.prompt_tokens,
        "fixed": budget.fixed,
        "history": budget.limit,
        "compact_at": budget.trigger,
        "target": budget.target,
    }
