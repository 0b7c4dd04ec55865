"""The seams between the core and the world: what a store, an upstream and a tokenizer must offer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Protocol

import msgspec

from ctxproxy.core.dues import DueOf
from ctxproxy.core.effects import Effect
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import (
    Checkpoint,
    Located,
    LogPage,
    Owned,
    Page,
    Pin,
    Session,
    SessionKey,
    Span,
    StoredMessage,
    Summary,
    Totals,
    WindowBelief,
)
from ctxproxy.ports.memory import Carryover, Chunks, Facts, Grants, Graphs, Ratings

Headers = Sequence[tuple[str, str]]
"""Header names and values in order, repeated ones repeated."""


class Tokenizer(Protocol):
    """Counts the tokens of texts; `name` is the encoding's. Special-token spellings count as plain text."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int:
        """Tokens of any string, lone surrogates and a million blanks included; never raises, never takes seconds."""
        ...


class Call(msgspec.Struct, frozen=True):
    """A request to an upstream; `url` is absolute, hop-by-hop headers and Host are already left out."""

    method: str
    url: str
    headers: Headers
    body: bytes | AsyncIterator[bytes] | None
    first_byte_timeout_s: float
    idle_timeout_s: float


class Response(Protocol):
    """An upstream's answer: status and headers are there, the body still comes, in raw chunks as they arrive (still encoded)."""

    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def headers(self) -> Headers: ...
    def chunks(self) -> AsyncIterator[bytes]:
        """The body's chunks, not decoded; raises UpstreamTimeout when idle for too long, UpstreamUnreachable when it breaks."""
        ...

    async def close(self) -> None:
        """Give the connection up; an unread rest cancels the upstream's work. May be called at any time, also twice."""
        ...


class Upstream(Protocol):
    """Sends calls; knows nothing of conversations."""

    async def send(self, call: Call) -> Response:
        """The answer as soon as its head is there, whatever the status; raises UpstreamUnreachable or UpstreamTimeout."""
        ...

    async def close(self) -> None: ...


class Retention(Protocol):
    """Erases sessions that were not used for long; kept ones and those with a pin are exempt."""

    async def unused(self, before: float, limit: int) -> list[Owned]:
        """Sessions last used before a time, the oldest first."""
        ...

    async def erase(self, key: SessionKey, before: float) -> bool:
        """Erase a session unless it was used, kept or pinned meanwhile; some of its bytes may stay in the files until `compact`."""
        ...

    async def compact(self) -> None:
        """Give the room of what was erased back, so that nothing of it is left in the files."""
        ...


class Store(Protocol):
    """Keeps sessions. Every method raises StoreUnavailable if the store does not answer."""

    @property
    def carryover(self) -> Carryover: ...
    @property
    def retention(self) -> Retention: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def grants(self) -> Grants: ...
    @property
    def ratings(self) -> Ratings: ...
    @property
    def graphs(self) -> Graphs: ...
    @property
    def chunks(self) -> Chunks: ...

    async def session(self, key: SessionKey) -> Session | None: ...

    async def known(self, key: SessionKey, tips: Sequence[Tip]) -> int:
        """How many of these tips, which are one chain from the root on, are stored: the length of the stored prefix."""
        ...

    async def history(self, key: SessionKey, tip: Tip) -> list[StoredMessage]:
        """The messages from the root to `tip`, oldest first; [] for the root or an unknown tip."""
        ...

    async def span(self, key: SessionKey, span: Span, max_bytes: int) -> list[StoredMessage]:
        """The first messages of a span, oldest first: so many bytes at most, but one at least; [] where it does not begin on the way to its end."""
        ...

    async def heard(self, key: SessionKey, tip: Tip, limit: int) -> list[StoredMessage]:
        """The newest messages of users in the history up to `tip`, at most `limit`, oldest first."""
        ...

    async def log(self, key: SessionKey, after: int, limit: int) -> LogPage:
        """At most `limit` messages of all branches in the order of writing, every parent before its children; `after` 0 begins at the first."""
        ...

    async def leaves(self, key: SessionKey) -> list[Tip]:
        """The tips without a child: the branches, the one written last first."""
        ...

    async def checkpoints(self, key: SessionKey, tips: Sequence[Tip], most: int | None) -> list[Checkpoint]:
        """The checkpoints at these tips of a chain, newest first; of each variant only the `most` that reach furthest, None: all."""
        ...

    async def all_checkpoints(self, key: SessionKey) -> list[Checkpoint]:
        """Every checkpoint of a session, newest first."""
        ...

    async def summaries(self, key: SessionKey, tips: Collection[Tip] | None) -> list[Summary]:
        """The summaries named by any of these tips; None: all of the session."""
        ...

    async def dues(self, limit: int) -> list[DueOf]:
        """What is still to be made of what is stored, over all sessions."""
        ...

    async def pins(self, key: SessionKey) -> list[Pin]: ...

    async def windows(self) -> list[WindowBelief]: ...

    async def locate(self, tip_prefix: str) -> list[Located]:
        """The messages whose tip begins with these hex digits (16 or more), at most 10."""
        ...

    async def sessions(self, limit: int, cursor: str | None, query: str, tag: str = "") -> Page:
        """A page of sessions, last used first, whose name holds `query`, with this tag if one is given."""
        ...

    async def find(self, name: str) -> list[Session]:
        """The sessions of any tenant with this name."""
        ...

    async def tenants(self, prefix: str) -> list[str]:
        """The tenants that have a session and begin with these hex digits, at most 10."""
        ...

    async def of_user(self, tenant: str, user: str, limit: int) -> list[Session]:
        """The sessions of a user, last used first."""
        ...

    async def totals(self) -> Totals: ...

    async def apply(self, effects: Sequence[Effect]) -> bool:
        """Carry all out in one durable transaction; False if a MoveTip found another tip (all the rest is still carried out, unless that is
        required), or an OpenSession not the session that it goes on with (then nothing is).
        """
        ...

    async def erase(self, key: SessionKey) -> bool:
        """Erase a session so that nothing of it is left in the store's files; False if it was not there."""
        ...

    async def ping(self) -> None:
        """Answer, or raise StoreUnavailable."""
        ...

    async def close(self) -> None: ...
