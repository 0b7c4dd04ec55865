"""What to keep of a request once its answer ended, however it ended: a list of effects for one transaction."""

from __future__ import annotations

import msgspec

from ctxproxy.core.checkpoints import anchored
from ctxproxy.core.effects import AppendMessages, CountUse, Effect, MadeOf, MoveTip, OpenSession, PutCheckpoint
from ctxproxy.core.messages import ROOT, Message, Tip, identity, next_tip
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import NOTHING_SPENT, Manner, Session, SessionKey, Spent, StoredMessage
from ctxproxy.core.sessions import Joined, moves_tip, to_store
from ctxproxy.core.situation import Situation


class Ending(msgspec.Struct, frozen=True):
    """How a request ended: `replies` has a message a choice, [] if nothing of an answer came."""

    key: SessionKey
    session: Session | None
    manner: Manner
    frame: str
    model: str
    profile: str
    fixed_tokens: int
    replies: tuple[Message, ...]
    complete: bool
    now: float
    recall: bool = False
    """The model was offered the recall tool."""
    spent: Spent = NOTHING_SPENT
    user: str = ""


def settle(s: Situation, plan: Plan, ending: Ending) -> list[Effect]:
    """The messages of the request and its answer, where the conversation stands now, the decision made, the counters.

    A partial answer is kept, but the conversation stands before it; a refused request is kept, and does not move it at all.
    """
    rows, reply_tips = _rows(s, ending)
    thin = s.reconciled.joined is Joined.THIN
    moves = bool(ending.replies) and (thin or moves_tip(ending.session, s.reconciled, ending.frame))
    effects: list[Effect] = [
        OpenSession(
            ending.key,
            ending.now,
            ending.manner,
            ending.frame if moves else "",
            tuple(m.raw for m in s.leading) if moves and s.leading else None,
            ending.model if moves or ending.session is None else None,
            ending.profile,
            ending.fixed_tokens,
            ending.recall,
            ending.user,
            ending.session.created if ending.session else None,
        ),
        AppendMessages(ending.key, rows),
        CountUse(
            ending.key,
            requests=1,
            tokens_in=plan.tokens_in,
            tokens_sent=plan.tokens_sent,
            compactions=int(plan.compacts),
            spent=ending.spent,
        ),
    ]
    if plan.checkpoint is not None:  # also for what is noted with it
        effects.append(MadeOf(ending.key, s.forgotten, tuple(s.pins)))
    if plan.checkpoint is not None and ending.replies:
        effects += [] if plan.recalled else [PutCheckpoint(ending.key, plan.checkpoint)]
        earliest = anchored(plan.checkpoint, s.reconciled.tips)
        effects += [PutCheckpoint(ending.key, earliest)] if earliest else []
    if plan.recalled is not None and ending.replies:
        effects.append(PutCheckpoint(ending.key, plan.recalled))
    if moves:
        stands_at = reply_tips[0] if ending.complete else s.reconciled.tip
        was_at = ending.session.tip if ending.session else ROOT
        effects.append(MoveTip(ending.key, was_at, stands_at, required=thin))
    return effects


def _rows(s: Situation, ending: Ending) -> tuple[tuple[StoredMessage, ...], list[Tip]]:
    asked = to_store(s.reconciled, s.counts, ending.now)
    parent = s.reconciled.tip
    replies = [
        StoredMessage(next_tip(parent, identity(m)), parent, m.raw, m.role, s.count(m), ending.now, partial=not ending.complete)
        for m in ending.replies
    ]
    return (*asked, *replies), [row.tip for row in replies]
