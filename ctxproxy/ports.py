"""The seams between the core and the world: what a store, an upstream and a tokenizer must offer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from ctxproxy.core.carryover import Digest, Preload, Restore
from ctxproxy.core.chunks import Indexed, Piece
from ctxproxy.core.effects import Effect, OpenSession
from ctxproxy.core.graph import Edge, Graph, Node
from ctxproxy.core.messages import Tip
from ctxproxy.core.points import MemoryPoint, PointChanges
from ctxproxy.core.records import Checkpoint, Located, LogPage, Owned, Page, Pin, Session, SessionKey, StoredMessage, Summary, Totals, WindowBelief
from ctxproxy.core.sharing import Grant, Rating, RatingTotals
from ctxproxy.core.text_index import Place, Postings

Headers = Sequence[tuple[str, str]]
"""Header names and values in order, repeated ones repeated."""


class Tokenizer(Protocol):
    """Counts the tokens of texts; `name` is the encoding's. Special-token spellings count as plain text."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int:
        """Tokens of any string, lone surrogates and a million blanks included; never raises, never takes seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
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


class Carryover(Protocol):
    """Keeps what passes from one session to the next, and where a session goes on after a restart. All of it goes with its session."""

    async def digest(self, key: SessionKey) -> Digest | None: ...

    async def put_digest(self, key: SessionKey, digest: Digest) -> None:
        """One that is there is replaced; nothing happens without the session."""
        ...

    async def preload(self, key: SessionKey) -> Preload | None: ...

    async def begin(self, opened: OpenSession, preload: Preload, sources: Collection[SessionKey]) -> Preload | None:
        """Make the session and give it a preload, unless one of the sessions that this tells of is gone; the one that it has then.

        The first one stands; it goes with any of its sources, and when something is forgotten there.
        """
        ...

    async def drop_preload(self, key: SessionKey) -> None: ...

    async def drop_told(self, key: SessionKey) -> None:
        """Drop what other sessions began with that tells of this one; nothing of it is left in the files then."""
        ...

    async def restore(self, key: SessionKey) -> Restore | None: ...

    async def put_restore(self, key: SessionKey, restore: Restore) -> None:
        """One that is there is replaced; nothing happens without the session."""
        ...


class Facts(Protocol):
    """Keeps memory points. They go with their session, and with the message that told them."""

    async def put(self, key: SessionKey, user: str, changes: PointChanges) -> bool:
        """Carry changes out in one transaction; the newest of a kind and key is in force. False if the session is not there."""
        ...

    async def take(self, key: SessionKey, points: Sequence[MemoryPoint]) -> bool:
        """Keep points as they are told, numbers and all, in place of those that the session has; False if it is not there."""
        ...

    async def of(self, key: SessionKey) -> list[MemoryPoint]:
        """All that is kept of a session, what is no longer in force included, oldest first."""
        ...

    async def of_user(self, tenant: str, user: str, limit: int) -> list[MemoryPoint]:
        """What is in force in the sessions that a user used last, the newest first, anchors last."""
        ...

    async def drop(self, key: SessionKey, number: int) -> bool:
        """Erase a point with all that it took the place of; False if it is not there."""
        ...

    async def tenants(self, user: str) -> list[str]:
        """The tenants that have a session of a user of this name."""
        ...


class Grants(Protocol):
    """Keeps who may read which pieces of a session; a grant goes with its owner and with the session it is made to."""

    async def put(self, grant: Grant) -> int | None:
        """The number it is kept under; None if a session it names is not there."""
        ...

    async def of(self, owner: SessionKey) -> list[Grant]: ...

    async def to(self, key: SessionKey, user: str, now: float) -> list[Grant]:
        """The grants of the same tenant to a session or its user that are in force, oldest first."""
        ...

    async def drop(self, owner: SessionKey, number: int) -> bool: ...


class Ratings(Protocol):
    """Keeps what users think of sessions."""

    async def put(self, key: SessionKey, rating: Rating) -> bool:
        """False if the session is not there."""
        ...

    async def of(self, key: SessionKey) -> list[Rating]:
        """Oldest first."""
        ...

    async def totals(self) -> RatingTotals: ...


class Graphs(Protocol):
    """Keeps what was put into users' graphs by hand."""

    async def of(self, tenant: str, user: str) -> Graph: ...
    async def put_node(self, tenant: str, user: str, node: Node) -> None:
        """One of the same name is replaced."""
        ...

    async def put_edge(self, tenant: str, user: str, edge: Edge) -> None:
        """One of the same ends and relation is replaced."""
        ...

    async def drop_node(self, tenant: str, user: str, name: str) -> bool:
        """With its edges; False if there was nothing of it."""
        ...

    async def drop_edge(self, tenant: str, user: str, edge: Edge) -> bool: ...


class Chunks(Protocol):
    """The search index: what was said, in pieces. Every method raises StoreUnavailable if the store does not answer."""

    async def add(self, key: SessionKey, chunks: Sequence[Indexed]) -> None:
        """Put pieces in; those already there stay as they are. Nothing comes of it where the session is not there."""
        ...

    async def drop(self, key: SessionKey, tip: Tip) -> None:
        """Take the pieces of a message out."""
        ...

    async def indexed(self, key: SessionKey) -> frozenset[Tip]:
        """The messages of a session that have pieces in the index."""
        ...

    async def postings(self, key: SessionKey, terms: Sequence[str]) -> Postings:
        """Where these terms stand in a session, over all its branches."""
        ...

    async def texts(self, key: SessionKey, places: Collection[Place]) -> list[Piece]:
        """The pieces at these places, in this order, as far as they are there."""
        ...

    async def touch(self, key: SessionKey, places: Collection[Place]) -> None:
        """Count that these pieces were recalled."""
        ...

    async def hottest(self, tenant: str, user: str, limit: int) -> list[Piece]:
        """The pieces of a user's sessions that were recalled most often, none that never was (003-40)."""
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

    async def log(self, key: SessionKey, after: int, limit: int) -> LogPage:
        """At most `limit` messages of all branches in the order of writing, every parent before its children; `after` 0 begins at the first."""
        ...

    async def leaves(self, key: SessionKey) -> list[Tip]:
        """The tips without a child: the branches, the one written last first."""
        ...

    async def checkpoints(self, key: SessionKey, tips: Collection[Tip]) -> list[Checkpoint]:
        """The checkpoints at any of these tips."""
        ...

    async def all_checkpoints(self, key: SessionKey) -> list[Checkpoint]:
        """Every checkpoint of a session, newest first."""
        ...

    async def summaries(self, key: SessionKey, tips: Collection[Tip] | None) -> list[Summary]:
        """The summaries named by any of these tips; None: all of the session."""
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
        """Carry all out in one durable transaction; False if a MoveTip found another tip (all the rest is still carried out)."""
        ...

    async def erase(self, key: SessionKey) -> bool:
        """Erase a session so that nothing of it is left in the store's files; False if it was not there."""
        ...

    async def ping(self) -> None:
        """Answer, or raise StoreUnavailable."""
        ...

    async def close(self) -> None: ...
