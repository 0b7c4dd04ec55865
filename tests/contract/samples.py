"""Sessions and chains of messages to store."""

from __future__ import annotations

import json

from ctxproxy.core.dues import Due, DueNote
from ctxproxy.core.effects import AppendMessages, Effect, MoveTip, OpenSession
from ctxproxy.core.messages import ROOT, Tip, digest, next_tip
from ctxproxy.core.records import Checkpoint, FrozenEntry, LeftOut, SessionKey, StoredMessage, Summary

KEY = SessionKey("0f" * 16, "talk")
OTHER = SessionKey("0f" * 16, "other talk")


def message(text: str, parent: Tip = ROOT, *, partial: bool = False, created: float = 1.0) -> StoredMessage:
    """A user message; its tip depends on parent and text alone, as a real one's does."""
    raw = json.dumps({"role": "user", "content": text}).encode()
    return StoredMessage(next_tip(parent, digest(text.encode("utf-8", "surrogatepass"))), parent, raw, "user", len(raw), created, partial)


def chain(*texts: str, parent: Tip = ROOT) -> list[StoredMessage]:
    """Messages that follow one another."""
    made: list[StoredMessage] = []
    for text in texts:
        made.append(message(text, made[-1].tip if made else parent))
    return made


def begun(key: SessionKey, messages: list[StoredMessage], now: float = 1.0) -> list[Effect]:
    """The effects of a first turn."""
    return [OpenSession(key, now), AppendMessages(key, tuple(messages)), MoveTip(key, None, messages[-1].tip)]


def checkpoint(tip: Tip, text: str = "shortened", variant: str = "model/adaptive", created: float = 1.0) -> Checkpoint:
    entries = (FrozenEntry(tip="ab" * 16, tokens=3), FrozenEntry(raw=text.encode(), tokens=5, stage="summarize", covers=(tip,), reason="summary"))
    left = (LeftOut(("cd" * 16, "ef" * 16), "drop_oldest", "the oldest go first"),)
    return Checkpoint(tip, variant, entries, created, wants="ab" * 16, actions=(("summarize", 1),), left=left)


def due(tip: Tip) -> Due:
    return DueNote((tip,), "trimmed", "ann", 1.0)


def summary(tip: Tip, text: str = "what was said", kind: str = "llm") -> Summary:
    return Summary(tip, text, kind, "model", 4, 20, 1.0, 2.0, 3.0)  # type: ignore[arg-type]
