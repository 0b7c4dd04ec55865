"""The closed union of what a decision may want kept: the store carries out a list of them in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from ctxproxy.core.dues import Due, DueKind
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import NOTHING_SPENT, Checkpoint, Manner, Pin, SessionKey, Spent, StoredMessage, Summary, WindowBelief


class OpenSession(msgspec.Struct, frozen=True):
    """Make the session if it is not there; else note its use. `manner` "unknown", `frame` "" and `system` None leave what is known."""

    key: SessionKey
    now: float
    manner: Manner = "unknown"
    frame: str = ""
    system: tuple[bytes, ...] | None = None
    model: str | None = None
    profile: str = ""
    fixed_tokens: int = 0
    """`profile` and `fixed_tokens` are kept where `model` is given."""
    recall: bool = False
    """Kept where this makes the session."""
    user: str = ""
    """`""` leaves what is known."""
    made: float | None = None
    """When the session was made that this goes on with: where it is not there any more, nothing of the list that this is in is carried out."""


@dataclass(frozen=True, slots=True)
class Choose:
    """Change what has been chosen for a session (see `Session`); None leaves it."""

    key: SessionKey
    kept: bool | None = None
    cleared: tuple[Tip, ...] | None = None
    overrides: Mapping[str, Any] | None = None
    tag: str | None = None


class AppendMessages(msgspec.Struct, frozen=True):
    """Add messages to the raw log, oldest first; those already there stay as they are, but a whole one replaces a partial one."""

    key: SessionKey
    messages: tuple[StoredMessage, ...]


class MoveTip(msgspec.Struct, frozen=True):
    """Let the conversation stand at `to`, if it stands at `expected` (compare-and-set; None: wherever it stands).

    With `required`, nothing of the list that it is in is carried out if it stands elsewhere.
    """

    key: SessionKey
    expected: Tip | None
    to: Tip
    required: bool = False


class CountUse(msgspec.Struct, frozen=True):
    """Add to the session's counters."""

    key: SessionKey
    requests: int = 0
    tokens_in: int = 0
    tokens_sent: int = 0
    compactions: int = 0
    spent: Spent = NOTHING_SPENT


@dataclass(frozen=True, slots=True)
class MadeOf:
    """What checkpoints, summaries and dues behind it in the list were made from: none is kept of a history with a message that was forgotten
    since, no checkpoint where a pin has gone since.
    """

    key: SessionKey
    forgotten: frozenset[Tip]
    pins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PutCheckpoint:
    """Keep a checkpoint; one of the same tip and variant is replaced."""

    key: SessionKey
    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class PutSummary:
    """Keep a summary; an llm one replaces an extractive one of the same tip, never the other way round."""

    key: SessionKey
    summary: Summary


@dataclass(frozen=True, slots=True)
class PutDue:
    """Keep what is still to be made of something in this list; one of the same kind and tip is replaced."""

    key: SessionKey
    due: Due


@dataclass(frozen=True, slots=True)
class DropDue:
    """It is made, or not wanted any more."""

    key: SessionKey
    kind: DueKind
    tip: Tip


@dataclass(frozen=True, slots=True)
class PutPin:
    """Keep a text verbatim for good."""

    key: SessionKey
    pin: Pin


@dataclass(frozen=True, slots=True)
class DropPin:
    """Let a pin go, and the checkpoints, which may hold its text."""

    key: SessionKey
    number: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Never send this message again: checkpoints, summaries and dues of histories that it is part of go, for they may hold its text.

    With `erase`, its bytes go too (a tombstone keeps the chain whole).
    """

    key: SessionKey
    tip: Tip
    erase: bool = False


@dataclass(frozen=True, slots=True)
class PutWindow:
    """Keep what is believed of a window."""

    belief: WindowBelief


SessionEffect: TypeAlias = (
    Choose | AppendMessages | MoveTip | CountUse | MadeOf | PutCheckpoint | PutSummary | PutDue | DropDue | PutPin | DropPin | Forget
)
"""Those that change a session that is there."""

Effect: TypeAlias = OpenSession | SessionEffect | PutWindow
