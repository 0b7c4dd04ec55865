"""What is kept of a conversation, as values: the rows that a store holds, without a word of how.

Times are seconds since the epoch, UTC. All are immutable but for a session's tip and counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from operator import add
from typing import Any, Literal, NamedTuple, TypeAlias

from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.wire import from_log

Manner: TypeAlias = Literal["unknown", "full", "thin"]
WindowSource: TypeAlias = Literal["config", "learned", "upstream", "builtin", "default"]


class SessionKey(NamedTuple):
    """`tenant`: 32 hex digits (a keyed digest of credential and upstream); `name`: what the client calls it."""

    tenant: str
    name: str

    @property
    def id(self) -> str:
        """The public id: `<8 hex of the tenant>:<name>`."""
        return f"{self.tenant[:8]}:{self.name}"


@dataclass(frozen=True, slots=True)
class Spent:
    """What requests cost, as sums; costs in prompt tokens that are not cached (see `costs`), the rest in tokens and requests."""

    cost_all: float = 0.0
    """Had all been sent, by our model of the upstream's cache."""
    cost_sent: float = 0.0
    """What was sent, by the same model."""
    cost_summaries: float = 0.0
    """The summarizer's calls."""
    cached_expected: int = 0
    """Tokens sent that the upstream should have had in its cache, by that model."""
    reported_requests: int = 0
    """Requests of which the upstream reported `usage`."""
    reported_prompt: int = 0
    """Their prompt tokens as it reported them."""
    reported_cached: int = 0
    """How many of these it had cached; an upstream that says nothing of its cache has none."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(*map(add, astuple(self), astuple(other)))


NOTHING_SPENT = Spent()


@dataclass(frozen=True, slots=True)
class Session:
    """A session's one mutable row."""

    key: SessionKey
    tip: Tip = ""
    """Where the conversation stands: what a thin client goes on from."""
    manner: Manner = "unknown"
    frame: str = ""
    """Digest of model, stream, tools and system of its first request: a thin client repeats it."""
    system: tuple[bytes, ...] = ()
    """The leading system messages last seen, as raw JSON."""
    model: str = ""
    """The model asked last."""
    profile: str = ""
    """The `X-Context-Preset` of the last request; "" if it had none."""
    fixed_tokens: int = 0
    """Tokens of tools and response format in the last request."""
    recall: bool = False
    """The model is offered the recall tool: said with the first request, for good."""
    created: float = 0.0
    last_used: float = 0.0
    requests: int = 0
    tokens_in: int = 0
    """Logical prompt tokens over all requests."""
    tokens_sent: int = 0
    """Prompt tokens really sent over all requests."""
    compactions: int = 0
    spent: Spent = NOTHING_SPENT
    messages: int = 0
    """Messages recorded, over all branches."""
    turns: int = 0
    """User messages among them."""
    forgotten: frozenset[Tip] = frozenset()
    """Messages that are never sent again (`DELETE …/messages/{tip}`)."""
    has_decisions: bool = False
    """Any checkpoint, summary or pin is kept of it."""
    is_leaf: bool = False
    """It stands at a message behind which none is stored."""
    user: str = ""
    """The `X-User-Id` that it came with; "" if it had none."""
    kept: bool = False
    """Retention leaves it alone."""
    cleared: tuple[Tip, ...] = ()
    """Nothing up to any of these messages is sent any more (`/context clear`), one for each branch that was cleared."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Context settings of its own by key (`/config <key> <value>`), as JSON values."""
    tag: str = ""
    """What somebody called the kind of conversation that it is."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of the raw log; `raw` is the JSON text as it came."""

    tip: Tip
    parent: Tip
    raw: bytes
    role: str
    tokens: int
    created: float
    partial: bool = False
    """The answer broke off: it is kept, and never taken for a whole one."""
    _message: Message | None = field(default=None, init=False, compare=False, hash=False, repr=False)

    @property
    def message(self) -> Message:
        """The message, read once; of an erased one only its role is left."""
        message = self._message
        if message is None:
            message = from_log(self.raw) if self.raw else Message(b"", {"role": self.role})
            object.__setattr__(self, "_message", message)
        return message


@dataclass(frozen=True, slots=True)
class Span:
    """Messages of a log that follow each other, named by its ends: those behind `after` up to `tip`."""

    after: Tip
    tip: Tip


def runs_of(rows: Iterable[StoredMessage]) -> list[list[StoredMessage]]:
    """Newly written messages parted where one does not follow the one before: an answer with several choices has as many ends."""
    runs: list[list[StoredMessage]] = []
    for row in rows:
        if runs and row.parent == runs[-1][-1].tip:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def span_of(run: Sequence[StoredMessage]) -> Span:
    """The span that these messages, one at least, are."""
    return Span(run[0].parent, run[-1].tip)


@dataclass(frozen=True, slots=True)
class FrozenEntry:
    """An entry of a checkpoint: an original by its tip (`raw` None), or a text of ours with its bytes."""

    tip: Tip = ""
    raw: bytes | None = None
    tokens: int = 0
    stage: str = ""
    covers: tuple[Tip, ...] = ()
    reason: str = ""
    """Why the stage did so."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """History messages in whose place nothing was put: which stage took them out, and why, in its own words."""

    tips: tuple[Tip, ...]
    stage: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A decision: in the variant (model, preset) named, the history up to `tip` is sent as these entries."""

    tip: Tip
    variant: str
    entries: tuple[FrozenEntry, ...]
    created: float
    wants: Tip = ""
    """The tip of a summary that it was made without: void as soon as a model's summary of that tip is there."""
    actions: tuple[tuple[str, int], ...] = ()
    left: tuple[LeftOut, ...] = ()
    """What none of the entries is or stands in for."""


class Foreseen(NamedTuple):
    """A decision made before it is needed (`foresight`)."""

    decision: Checkpoint
    saved: tuple[tuple[str, int], ...]
    """Tokens that each of its actions saves."""
    terms: tuple[object, ...]
    """What it depends on beside the history and the budget."""
    limit: int
    """The budget that it was made for."""
    target: int
    """Where it stopped in that."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for the history up to `tip`; named by that tip, so it cannot be stale."""

    tip: Tip
    text: str
    kind: Literal["llm", "extractive"]
    model: str
    messages: int
    """How many messages it covers."""
    tokens: int
    start: float
    end: float
    created: float


@dataclass(frozen=True, slots=True)
class Pin:
    """A text that is kept verbatim for good."""

    number: int
    text: str
    created: float


@dataclass(frozen=True, slots=True)
class WindowBelief:
    """What is believed of a model's window (tokens), from where, how surely (0 to 1), since when."""

    upstream: str
    model: str
    window: int
    source: WindowSource
    confidence: float
    updated: float


@dataclass(frozen=True, slots=True)
class Page:
    """A page of sessions, the last used first; `next_cursor` None at the end."""

    sessions: tuple[Session, ...]
    next_cursor: str | None = None


class Owned(NamedTuple):
    """A session and its user; "" if it has none."""

    key: SessionKey
    user: str


@dataclass(frozen=True, slots=True)
class LogPage:
    """A piece of a session's log in the order of writing; `following` is what to go on from, None at the end."""

    messages: tuple[StoredMessage, ...]
    following: int | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """A stored message and the session it belongs to."""

    key: SessionKey
    message: StoredMessage


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all sessions."""

    sessions: int = 0
    messages: int = 0
    requests: int = 0
    tokens_in: int = 0
    tokens_sent: int = 0
    compactions: int = 0
    spent: Spent = NOTHING_SPENT
