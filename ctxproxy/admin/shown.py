"""How stored records look in the admin API's answers. Times are seconds since the epoch, UTC; those of a summary ISO 8601 (002-13)."""

from __future__ import annotations

from datetime import UTC, datetime

from ctxproxy.core.fates import Fate
from ctxproxy.core.records import Checkpoint, Session, StoredMessage, Summary
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


def _iso(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds")
