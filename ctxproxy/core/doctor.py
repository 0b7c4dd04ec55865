"""Why a model may have forgotten (003-30): is the working window empty, can the past be read whole, does compaction take out too much?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ctxproxy.core.fates import Fate, fates
from ctxproxy.core.forgetting import CLEARED, RESTORED, STAGE
from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import Session, StoredMessage
from ctxproxy.core.situation import Situation

WANTED = frozenset({STAGE, CLEARED, RESTORED})
"""What somebody wanted out of the prompt is no fault of compaction."""
MOST_DROPPED = 0.5
"""Of what left the prompt: more than this without anything that stands for it is too much."""
LEAST_FILLED = 0.25
"""Of the budget: less than this after a compaction is too little."""
OFTEN_REQUESTS, OFTEN = 10, 0.34
"""A session of so many requests of which more than a third compacted has no room to work in."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An answer to one question."""

    question: str
    ok: bool
    why: str


def examined(
    s: Situation, plan: Plan, session: Session, rows: Sequence[StoredMessage], indexed: Collection[Tip], trouble: str
) -> tuple[Finding, ...]:
    """The answers for a session as its next request would meet it; `rows` is its log up to where it stands, `indexed` what of it has pieces in
    the search index, `trouble` what keeps the store from writing.
    """
    return _window(s, plan, session), _log(session, rows, indexed, trouble), _eviction(s, plan, session)


def _window(s: Situation, plan: Plan, session: Session) -> Finding:
    question = "Is the working window empty?"
    history, kept = len(s.reconciled.history), sum(1 for entry in plan.transcript.entries if entry.tip)
    if session.messages and not history:
        return Finding(question, False, f"{session.messages} messages are stored, but the conversation stands before the first: none was answered")
    if history and not kept:
        return Finding(question, False, f"none of {history} messages is sent: they were cleared, forgotten or compacted away")
    return Finding(question, True, f"{kept} of {history} messages are sent as they are or shortened, {plan.transcript.tokens} tokens")


def _log(session: Session, rows: Sequence[StoredMessage], indexed: Collection[Tip], trouble: str) -> Finding:
    question = "Can the past be read, and is it whole?"
    if trouble:
        return Finding(question, False, f"the last write failed, so the newest messages may be missing: {trouble}")
    if session.tip != ROOT and (not rows or rows[0].parent != ROOT):
        return Finding(question, False, "the log does not reach back to the conversation's beginning")
    erased = sum(1 for row in rows if not row.raw)
    found = sum(1 for row in rows if row.tip in indexed)
    told = f"{len(rows)} messages from the beginning on{f', {erased} of them erased' if erased else ''}; {found} have pieces in the search index"
    return Finding(question, True, told)


def _eviction(s: Situation, plan: Plan, session: Session) -> Finding:
    question = "Does compaction take out too much?"
    out = [fate for fate in fates(s, plan) if _was_taken_out(fate)]
    dropped = [fate for fate in out if fate.state == "dropped"]
    full, sent = sum(s.counts) > s.budget.limit, plan.transcript.tokens
    checks = (
        (len(dropped) > MOST_DROPPED * len(out), f"{len(dropped)} of the {len(out)} messages that left the prompt have nothing that stands for them"),
        (
            full and 0 < sent < LEAST_FILLED * s.budget.limit,
            f"{sent} of {s.budget.limit} tokens are used although more was said: context.target is low",
        ),
        (
            session.requests >= OFTEN_REQUESTS and session.compactions > OFTEN * session.requests,
            f"{session.compactions} of {session.requests} requests compacted: the budget is small for such turns, or target too near compact_at",
        ),
    )
    found = next((why for wrong, why in checks if wrong), "")
    return Finding(
        question, not found, found or f"{len(out)} messages left the prompt, {len(out) - len(dropped)} of them are told by what stands there"
    )


def _was_taken_out(fate: Fate) -> bool:
    return fate.state in ("summarized", "dropped") and fate.stage not in WANTED
