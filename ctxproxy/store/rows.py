"""Rows of a SQL store to records and back.

Texts from outside travel as bytes (UTF-8, lone surrogates passed), tips as the ASCII that they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import msgspec

from ctxproxy.core.dues import Due, DueOf, kind_of
from ctxproxy.core.effects import Choose, OpenSession
from ctxproxy.core.messages import Tip, digest
from ctxproxy.core.records import (
    Checkpoint,
    Located,
    Pin,
    Session,
    SessionKey,
    Spent,
    StoredMessage,
    Summary,
    Totals,
    WindowBelief,
)
from ctxproxy.store.decisions import decided, decision_of

Row: TypeAlias = Sequence[Any]
Values: TypeAlias = dict[str, Any]


NONE_FORGOTTEN, NO_OVERRIDES = "[]", "{}"
"""What nearly all sessions have there."""
SYSTEM = msgspec.msgpack.Decoder(tuple[bytes, ...])
NO_SYSTEM = msgspec.msgpack.encode(())


def pack(text: str) -> bytes:
    """Any string as bytes."""
    return text.encode("utf-8", "surrogatepass")


def unpack(raw: bytes) -> str:
    """The string that `pack` was given."""
    return raw.decode("utf-8", "surrogatepass")


def plain(tip: str) -> str:
    """A tip to look up; what cannot be one becomes something that matches none."""
    return tip if tip.isascii() else "?"


def key_values(key: SessionKey) -> Values:
    """The parameters that name a session."""
    return {"tenant": plain(key.tenant), "name": pack(key.name)}


def tips_value(tips: Collection[Tip]) -> str:
    """Tips as the JSON list that the queries take."""
    return json.dumps([plain(tip) for tip in tips])


def session_of(row: Row) -> Session:
    name, tenant, tip, manner, frame, system, model, profile, fixed_tokens, recall, *chosen, created, last_used = row[:17]
    *counts, forgotten, has_decisions, is_leaf, _ = row[17:]
    user, kept, cleared, overrides, tag = chosen
    requests, tokens_in, tokens_sent, compactions, messages, turns, *spent = counts
    return Session(
        key=SessionKey(tenant, unpack(name)),
        tip=tip,
        manner=manner,
        frame=frame,
        system=SYSTEM.decode(system),
        model=unpack(model),
        profile=unpack(profile),
        fixed_tokens=fixed_tokens,
        recall=bool(recall),
        created=created,
        last_used=last_used,
        requests=requests,
        tokens_in=tokens_in,
        tokens_sent=tokens_sent,
        compactions=compactions,
        spent=Spent(*spent),
        messages=messages,
        turns=turns,
        forgotten=frozenset(json.loads(forgotten)) if forgotten != NONE_FORGOTTEN else frozenset(),
        has_decisions=bool(has_decisions),
        is_leaf=bool(is_leaf),
        user=unpack(user),
        kept=bool(kept),
        cleared=tuple(cleared.split()),
        overrides=json.loads(overrides) if overrides != NO_OVERRIDES else {},
        tag=unpack(tag),
    )


def opening_values(effect: OpenSession) -> Values:
    """What is kept of a request; NULL where it leaves what is known. For a new session `profile` and `fixed_tokens` go with `model` too."""
    return {
        **key_values(effect.key),
        "now": effect.now,
        "manner": effect.manner,
        "frame": effect.frame,
        "system": None if effect.system is None else msgspec.msgpack.encode(effect.system),
        "no_system": NO_SYSTEM,
        "model": None if effect.model is None else pack(effect.model),
        "profile": pack("" if effect.model is None else effect.profile),
        "fixed_tokens": 0 if effect.model is None else effect.fixed_tokens,
        "recall": effect.recall,
        "user": pack(effect.user),
    }


def choice_values(effect: Choose) -> Values:
    """What is chosen; NULL leaves what is known."""
    return {
        "kept": effect.kept,
        "cleared": None if effect.cleared is None else " ".join(map(plain, effect.cleared)),
        "overrides": None if effect.overrides is None else json.dumps(effect.overrides),
        "tag": None if effect.tag is None else pack(effect.tag),
    }


def message_of(row: Row) -> StoredMessage:
    """A message; a tombstone's `raw` is b""."""
    tip, parent, raw, role, tokens, created, partial = row[:7]
    return StoredMessage(tip, parent, raw or b"", unpack(role), tokens, created, bool(partial))


def message_values(message: StoredMessage) -> Values:
    return {
        "tip": message.tip,
        "parent": message.parent,
        "digest": digest(message.raw),
        "role": pack(message.role),
        "tokens": message.tokens,
        "created": message.created,
        "partial": message.partial,
    }


def located_of(row: Row) -> Located:
    return Located(SessionKey(row[8], unpack(row[7])), message_of(row))


def checkpoint_of(row: Row) -> Checkpoint:
    tip, variant, decision, created, wants = row
    entries, actions, left = decided(decision)
    return Checkpoint(tip, unpack(variant), entries, created, wants, actions, left)


def checkpoint_values(checkpoint: Checkpoint) -> Values:
    return {
        "tip": checkpoint.tip,
        "variant": pack(checkpoint.variant),
        "decision": decision_of(checkpoint),
        "created": checkpoint.created,
        "wants": checkpoint.wants,
    }


def summary_of(row: Row) -> Summary:
    tip, text, kind, model, messages, tokens, start, end, created = row
    return Summary(tip, unpack(text), kind, unpack(model), messages, tokens, start, end, created)


def summary_values(summary: Summary) -> Values:
    return {
        "tip": summary.tip,
        "text": pack(summary.text),
        "kind": summary.kind,
        "model": pack(summary.model),
        "messages": summary.messages,
        "tokens": summary.tokens,
        "start": summary.start,
        "end": summary.end,
        "created": summary.created,
    }


def due_of(row: Row) -> DueOf:
    tenant, name, due = row
    return DueOf(SessionKey(tenant, unpack(name)), msgspec.convert(json.loads(due), Due))


def due_values(due: Due) -> Values:
    """As JSON that is all ASCII, which has lone surrogates too."""
    return {"kind": kind_of(due), "tip": due.tip, "due": json.dumps(msgspec.to_builtins(due))}


def pin_of(row: Row) -> Pin:
    number, text, created = row
    return Pin(number, unpack(text), created)


def window_of(row: Row) -> WindowBelief:
    upstream, model, window, source, confidence, updated = row
    return WindowBelief(unpack(upstream), unpack(model), window, source, confidence, updated)


def window_values(belief: WindowBelief) -> Values:
    return {
        "upstream": pack(belief.upstream),
        "model": pack(belief.model),
        "window": belief.window,
        "source": belief.source,
        "confidence": belief.confidence,
        "updated": belief.updated,
    }


def totals_of(row: Row) -> Totals:
    sessions, messages, requests, tokens_in, tokens_sent, compactions, *spent = row
    return Totals(sessions, messages, requests, tokens_in, tokens_sent, compactions, Spent(*spent))
