"""A plan as the admin API shows it: the answer to "what would be sent, what would not, and why?"."""

from __future__ import annotations

from collections.abc import Mapping

from ctxproxy.core.fates import Fate, fates, whys
from ctxproxy.core.messages import Message
from ctxproxy.core.planned import Plan
from ctxproxy.core.situation import Situation
from ctxproxy.core.stages.base import marker_of
from ctxproxy.core.transcript import Entry


def plan_report(s: Situation, plan: Plan) -> dict[str, object]:
    """A plan in figures, with every entry that it sends and what became of every message of the history.

    The tokens of `history` after the plan and those of the inserted entries are together the history part of what is sent.
    """
    leading = [leading_entry(message, s.count(message)) for message in s.leading]
    leading += [preload_entry(message, s.count(message)) for message in s.preload]
    entries = [view_entry(entry, why) for entry, why in zip(plan.transcript.entries, whys(s, plan), strict=True)]
    return {
        "changed": plan.changed,
        "fits": plan.fits,
        "tokens_in": plan.tokens_in,
        "tokens_sent": plan.tokens_sent,
        "budget": budget_report(plan),
        "actions": actions_report(plan),
        "failed": list(plan.failed),
        "messages": [*leading, *entries],
        "history": [fate_shown(fate, len(leading)) for fate in fates(s, plan)],
    }


def actions_report(plan: Plan) -> list[dict[str, object]]:
    """The stages that act now, with their edits and the tokens saved; what marks a rescue edits nothing itself."""
    saved = [0] * (len(plan.actions) - len(plan.saved)) + [tokens for _, tokens in plan.saved]
    return [{"stage": name, "edits": edits, "saved_tokens": tokens} for (name, edits), tokens in zip(plan.actions, saved, strict=True)]


def fate_shown(fate: Fate, leading: int) -> dict[str, object]:
    """What became of a message; `stands_in` is an index of the report's `messages`, behind the leading ones."""
    return {
        "tip": fate.tip,
        "role": fate.role,
        "state": fate.state,
        "stage": fate.stage or None,
        "why": fate.why,
        "tokens_before": fate.tokens_before,
        "tokens_after": fate.tokens_after,
        "stands_in": None if fate.entry is None else leading + fate.entry,
    }


def view_entry(entry: Entry, why: str) -> dict[str, object]:
    """An entry of the prompt."""
    shown: dict[str, object] = {
        "tip": entry.tip or None,
        "message": dict(entry.message.fields),
        "tokens": entry.tokens,
        "origin": entry.origin,
        "stage": entry.stage or None,
        "why": why,
    }
    if entry.origin == "edited":
        shown["marker"] = marker_of(entry.tip)
    if entry.covers:
        shown["covers"] = list(entry.covers)
    return shown


def leading_entry(message: Message, tokens: int) -> dict[str, object]:
    """A leading system message."""
    return {
        "tip": None,
        "message": dict(message.fields),
        "tokens": tokens,
        "origin": "original",
        "stage": None,
        "why": "leading system message: always sent as it is",
    }


def preload_entry(message: Message, tokens: int) -> dict[str, object]:
    """A message that the session began with."""
    why = "remembered of this user's earlier sessions: made at the session's first request, the same ever since"
    return {**leading_entry(message, tokens), "origin": "inserted", "stage": "preload", "why": why}


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
