"""What is known of a user as a graph (003-51, 003-52): nodes with attributes, edges with a relation.

The part that comes from memory points is made of them each time it is asked for, so that it is true after each correction and erasure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxproxy.core.facts import Kind
from ctxproxy.core.points import MemoryPoint, PointKind

MAX_NAME_CHARS = 200
MAX_ATTRIBUTES = 50
MAX_NODES, MAX_EDGES = 1000, 5000
"""Given of one user by hand."""
USER, SESSION = "user", "session"
PLACES = frozenset(("home", "住址", "city", "hometown", "home town", "address", "城市", "地址"))
RELATIONS: dict[PointKind, str] = {
    "preference": "prefers",
    "decision": "decided",
    "number": "has",
    "date": "has",
    "rule": "asks for",
    "note": "noted",
}


@dataclass(frozen=True, slots=True)
class Node:
    """Something with a name: the user, a session, an entity."""

    name: str
    kind: str = "entity"
    attributes: Mapping[str, str] = field(default_factory=dict)
    given: bool = False
    """By hand, not from memory points."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What one node has to do with another."""

    source: str
    relation: str
    target: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    given: bool = False


class Graph(NamedTuple):
    """Nodes by name, and edges by their ends and relation."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()


def derived(user: str, points: Iterable[MemoryPoint]) -> Graph:
    """The graph that memory points in force tell of."""
    nodes = {user: Node(user, USER)}
    edges: dict[tuple[str, str, str], Edge] = {}
    for one in points:
        for part in _parts(user, one):
            if isinstance(part, Edge):
                edges.setdefault((part.source, part.relation, part.target), part)
            else:
                known = nodes.get(part.name, part)
                nodes[part.name] = Node(part.name, known.kind, {**part.attributes, **known.attributes})
    return Graph(tuple(nodes.values()), tuple(edges.values()))


def _parts(user: str, one: MemoryPoint) -> Iterator[Node | Edge]:
    """The nodes and edges of one point; the session that tells it is a node, too."""
    point, session = one.point, one.session.name
    yield Node(session, SESSION, {"id": one.session.id})
    yield Edge(user, "has session", session)
    match point.kind:
        case "anchor":
            yield from _of_anchor(user, session, point.key, point.value)
        case "action":
            yield from _of_action(point.key, point.value)
        case "entity" | "place" if point.key not in PLACES:
            yield Node(user, USER, {point.key: point.value})
        case "entity" | "place":
            yield Node(point.value, "place")
            yield Edge(user, "lives in", point.value)
        case "number" | "date":
            yield Node(point.key, point.kind, {"value": point.value})
            yield Edge(user, RELATIONS[point.kind], point.key)
        case _:
            yield Node(point.value, point.kind)
            yield Edge(user, RELATIONS.get(point.kind, "said"), point.value)


def _of_anchor(user: str, session: str, name: str, kind: Kind | str) -> Iterator[Node | Edge]:
    yield Node(name, kind)
    yield Edge(session, "mentions", name)
    if kind == "path":
        yield Edge(user, "works on", name)


def _of_action(key: str, goal: str) -> Iterator[Node | Edge]:
    """`a | b: action` for a goal: the first does it to the others."""
    names, _, action = key.partition(": ")
    first, *others = names.split(" | ")
    yield from (Node(name) for name in (first, *others))
    yield from (Edge(first, action, other, {"goal": goal}) for other in others)
    if not others:
        yield Node(goal, "goal")
        yield Edge(first, action, goal)


def joined(made: Graph, given: Graph) -> Graph:
    """Both graphs as one; what was given by hand wins, attribute by attribute. An edge's ends are nodes."""
    nodes = {node.name: node for node in made.nodes}
    for node in given.nodes:
        under = nodes[node.name].attributes if node.name in nodes else {}
        nodes[node.name] = Node(node.name, node.kind, {**under, **node.attributes}, given=True)
    edges = {(e.source, e.relation, e.target): e for e in (*made.edges, *given.edges)}
    for edge in given.edges:
        for end in (edge.source, edge.target):
            nodes.setdefault(end, Node(end, given=True))
    return Graph(tuple(nodes.values()), tuple(edges.values()))


def nodes_like(graph: Graph, kind: str, query: str) -> list[Node]:
    """The nodes of a kind whose name or an attribute holds a text; empty ones ask for nothing."""
    low = query.casefold()
    return [n for n in graph.nodes if kind in ("", n.kind) and any(low in text.casefold() for text in (n.name, *n.attributes.values()))]


def edges_of(graph: Graph, node: str, relation: str) -> Sequence[Edge]:
    """The edges at a node, on either end, of a relation; empty ones ask for nothing."""
    return [e for e in graph.edges if node in ("", e.source, e.target) and relation in ("", e.relation)]
