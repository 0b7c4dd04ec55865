"""How stored records look in the admin API's answers. Times are seconds since the epoch, UTC; those of a summary ISO 8601 (002-13)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from urllib.parse import quote

from ctxproxy.core.fates import Fate
from ctxproxy.core.records import Checkpoint, Session, StoredMessage, Summary
from ctxproxy.core.why import Held, Step, Why
from ctxproxy.proxy.prepare import stored_message


def session_shown(session: Session) -> dict[str, object]:
    """A session's row: `turns` and `messages` count what was recorded, over all branches."""
    return {
        "id": session.key.id,
        "name": session.key.name,
        "tenant": session.key.tenant[:8],
        "created": session.created,
        "last_used": session.last_used,
        "turns": session.turns,
        "messages": session.messages,
        "tokens_in": session.tokens_in,
        "tokens_sent": session.tokens_sent,
        "requests": session.requests,
        "compactions": session.compactions,
        "model": session.model,
        "manner": session.manner,
        "tip": session.tip or None,
        "user": session.user or None,
        "kept": session.kept,
        "tag": session.tag or None,
    }


def message_shown(row: StoredMessage, fate: Fate) -> dict[str, object]:
    """A message of the raw log, and what became of it; an erased one has no message any more."""
    return {
        "tip": row.tip,
        "parent": row.parent or None,
        "message": dict(stored_message(row).fields) if row.raw else None,
        "role": row.role,
        "tokens": row.tokens,
        "time": row.created,
        "state": fate.state,
        "stage": fate.stage or None,
        "why": fate.why,
        "partial": row.partial,
    }


def checkpoint_shown(checkpoint: Checkpoint) -> dict[str, object]:
    """A decision in figures."""
    return {
        "tip": checkpoint.tip,
        "variant": checkpoint.variant,
        "entries": len(checkpoint.entries),
        "tokens": sum(entry.tokens for entry in checkpoint.entries),
        "time": checkpoint.created,
        "provisional": checkpoint.wants != "",
        "actions": [{"stage": name, "edits": edits} for name, edits in checkpoint.actions],
    }


def summary_shown(summary: Summary) -> dict[str, object]:
    """A summary with what it covers (002-13): its time range is that of the messages up to `tip`, its timestamp when it was made."""
    return {
        "tip": summary.tip,
        "text": summary.text,
        "kind": summary.kind,
        "model": summary.model,
        "messages": summary.messages,
        "tokens": summary.tokens,
        "time_range": {"start": _iso(summary.start), "end": _iso(summary.end)},
        "timestamp": _iso(summary.created),
    }


def why_shown(why: Why) -> dict[str, object]:
    """Where a phrase went; `in_prompt` and `stands_in.at` are indexes of the view's messages, `pin` is the call that brings it back."""
    return {
        "session": why.session,
        "text": why.phrase,
        "searched": why.searched,
        "in_prompt": list(why.prompt),
        "pins": list(why.pins),
        "pin": {"method": "POST", "path": f"sessions/{quote(why.session, safe='')}/pins", "body": {"text": why.pin}} if why.pin else None,
        "data": [_held_shown(one) for one in why.held],
        "left_off": why.left_off,
        "next_cursor": None,
    }


def _held_shown(held: Held) -> dict[str, object]:
    return {
        "tip": held.tip,
        "role": held.role,
        "time": held.time,
        "turn": held.turn,
        "branch": held.branch,
        "branches": held.branches,
        "place": held.found.place,
        "excerpt": held.found.excerpt,
        "sentence": held.found.sentence,
        "state": held.state,
        "stage": held.stage or None,
        "why": held.why,
        "left": _step_shown(held.left) if held.left else None,
        "steps": [_step_shown(step) for step in held.steps],
        "stands_in": asdict(held.stands_in) if held.stands_in else None,
        "marker": held.marker,
    }


def _step_shown(step: Step) -> dict[str, object]:
    return {"time": step.time, "turn": step.turn, "tip": step.tip or None, "state": step.state, "stage": step.stage or None, "why": step.why}


def _iso(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds")
