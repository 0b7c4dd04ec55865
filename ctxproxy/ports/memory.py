"""What a store must offer beside the log of its sessions: what is remembered beyond one prompt. All of it goes with its session."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from ctxproxy.core.carryover import Digest, Preload, Restore
from ctxproxy.core.chunks import Chunk, Indexed, Piece, StoredVector
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.graph import Edge, Graph, Node
from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.points import MemoryPoint, PointChanges, Unread
from ctxproxy.core.records import SessionKey
from ctxproxy.core.sharing import Grant, Rating, RatingTotals
from ctxproxy.core.text_index import Place, Postings


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

    async def copy_preload(self, key: SessionKey, to: SessionKey) -> None:
        """Have another session begin as this one did; it goes with the same sources. Nothing happens where either is not there."""
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

    async def put(self, key: SessionKey, user: str, changes: PointChanges, read_to: Tip = ROOT) -> bool:
        """Carry changes out in one transaction, and keep that the session was read up to the message `read_to`, if one is given.

        The newest of a kind and key is in force. False if the session is not there.
        """
        ...

    async def unread(self, limit: int) -> list[Unread]:
        """The conversations with messages that were stored behind the last one that was read, last used first."""
        ...

    async def take(self, key: SessionKey, points: Sequence[MemoryPoint]) -> bool:
        """Keep points as they are told, numbers and all, in place of those that the session has, whose messages then count as read.

        False if it is not there.
        """
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
        """Take the pieces of a message out, and those of summaries, which may tell of it."""
        ...

    async def indexed(self, key: SessionKey) -> frozenset[Tip]:
        """The messages of a session that have pieces of their own in the index: a summary up to one is not it."""
        ...

    async def behind(self, sessions: int) -> list[SessionKey]:
        """Those of the sessions used last of which the newest message of a branch, or a summary, has no pieces in the index, last used first."""
        ...

    async def postings(self, key: SessionKey, terms: Sequence[str]) -> Postings:
        """Where these terms stand in a session, over all its branches, and how often answers have quoted what holds them."""
        ...

    async def without_vector(self, key: SessionKey, embedder: str, limit: int) -> list[Chunk]:
        """Pieces of messages that have no vector of this embedder, in the order of writing; their role is left out."""
        ...

    async def put_vectors(self, key: SessionKey, embedder: str, vectors: Mapping[Place, bytes]) -> None:
        """Put vectors beside the pieces that are there, in place of another embedder's; b"": the embedder cannot read the piece."""
        ...

    async def vectors(self, key: SessionKey, embedder: str, after: int, limit: int) -> list[StoredVector]:
        """The newest of this embedder's vectors with a number above `after`, by number; empty ones are left out."""
        ...

    async def texts(self, key: SessionKey, places: Collection[Place]) -> list[Piece]:
        """The pieces at these places, in this order, as far as they are there."""
        ...

    async def touch(self, key: SessionKey, places: Collection[Place]) -> None:
        """Count that these pieces were recalled."""
        ...

    async def note_quoted(self, key: SessionKey, places: Collection[Place]) -> None:
        """Count that an answer made use of these pieces, which were recalled for it (003-50)."""
        ...

    async def hottest(self, tenant: str, user: str, limit: int) -> list[Piece]:
        """The pieces of a user's sessions that were recalled most often, none that never was (003-40)."""
        ...
