"""Grants, ratings and graphs given by hand in dictionaries: the same contract as in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from ctxproxy.core.graph import Edge, Graph, Node
from ctxproxy.core.records import SessionKey
from ctxproxy.core.sharing import MAX_RATINGS, Grant, Rating, RatingTotals


@dataclass(slots=True)
class KeptSharing:
    """The grants and ratings of one session."""

    grants: dict[int, Grant] = field(default_factory=dict)
    ratings: list[Rating] = field(default_factory=list)

    def copy(self) -> KeptSharing:
        return KeptSharing(self.grants.copy(), self.ratings.copy())

    def forget_receiver(self, key: SessionKey) -> None:
        """Drop the grants to a session that is erased."""
        self.grants = {number: grant for number, grant in self.grants.items() if grant.to_session != key}


Of = Callable[[SessionKey], KeptSharing | None]


class MemoryGrants:
    """`ports.Grants` over what the store keeps of each session; both functions raise StoreUnavailable once it is closed."""

    def __init__(self, of: Of, everyone: Callable[[], Iterable[KeptSharing]]) -> None:
        self._of = of
        self._everyone = everyone

    async def put(self, grant: Grant) -> int | None:
        kept = self._of(grant.owner)
        if kept is None or (grant.to_session and self._of(grant.to_session) is None):
            return None
        number = max(kept.grants, default=0) + 1
        kept.grants[number] = replace(grant, number=number)
        return number

    async def of(self, owner: SessionKey) -> list[Grant]:
        kept = self._of(owner)
        return list(kept.grants.values()) if kept else []

    async def to(self, key: SessionKey, user: str, now: float) -> list[Grant]:
        found = [grant for kept in self._everyone() for grant in kept.grants.values() if _is_to(grant, key, user)]
        return sorted((grant for grant in found if grant.expires is None or grant.expires > now), key=lambda grant: grant.created)

    async def drop(self, owner: SessionKey, number: int) -> bool:
        kept = self._of(owner)
        return kept is not None and kept.grants.pop(number, None) is not None


def _is_to(grant: Grant, key: SessionKey, user: str) -> bool:
    return grant.owner.tenant == key.tenant and (grant.to_session == key or (user != "" and grant.to_user == user))


class MemoryRatings:
    """`ports.Ratings`, alike."""

    def __init__(self, of: Of, everyone: Callable[[], Iterable[KeptSharing]]) -> None:
        self._of = of
        self._everyone = everyone

    async def put(self, key: SessionKey, rating: Rating) -> bool:
        kept = self._of(key)
        if kept is None:
            return False
        kept.ratings = [*kept.ratings, rating][-MAX_RATINGS:]
        return True

    async def of(self, key: SessionKey) -> list[Rating]:
        kept = self._of(key)
        return list(kept.ratings) if kept else []

    async def totals(self) -> RatingTotals:
        points = [rating.rating for kept in self._everyone() for rating in kept.ratings]
        return RatingTotals(len(points), sum(points))


class MemoryGraphs:
    """`ports.Graphs`; `check` raises StoreUnavailable once the store is closed."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._nodes: dict[tuple[str, str], dict[str, Node]] = {}
        self._edges: dict[tuple[str, str], dict[tuple[str, str, str], Edge]] = {}

    async def of(self, tenant: str, user: str) -> Graph:
        self._check()
        nodes, edges = self._nodes.get((tenant, user), {}), self._edges.get((tenant, user), {})
        return Graph(tuple(nodes[name] for name in sorted(nodes)), tuple(edges[ends] for ends in sorted(edges)))

    async def put_node(self, tenant: str, user: str, node: Node) -> None:
        self._check()
        self._nodes.setdefault((tenant, user), {})[node.name] = replace(node, given=True)

    async def put_edge(self, tenant: str, user: str, edge: Edge) -> None:
        self._check()
        self._edges.setdefault((tenant, user), {})[edge.source, edge.relation, edge.target] = replace(edge, given=True)

    async def drop_node(self, tenant: str, user: str, name: str) -> bool:
        self._check()
        edges = self._edges.get((tenant, user), {})
        gone = [ends for ends in edges if name in (ends[0], ends[2])]
        for ends in gone:
            del edges[ends]
        return self._nodes.get((tenant, user), {}).pop(name, None) is not None or bool(gone)

    async def drop_edge(self, tenant: str, user: str, edge: Edge) -> bool:
        self._check()
        return self._edges.get((tenant, user), {}).pop((edge.source, edge.relation, edge.target), None) is not None
