"""A user's graph: made of memory points, and what was put in by hand."""

from __future__ import annotations

from ctxproxy.core.graph import Edge, Graph, Node, derived, edges_of, joined, nodes_like
from ctxproxy.core.points import MemoryPoint, Point
from ctxproxy.core.records import SessionKey

KEY = SessionKey("ab" * 16, "trip")


def points(*said: tuple[str, str, str]) -> list[MemoryPoint]:
    return [MemoryPoint(n, Point(kind, key, value, "aa", float(n), 1.0), KEY, "ann") for n, (kind, key, value) in enumerate(said, 1)]  # type: ignore[arg-type]


TOLD = points(
    ("entity", "name", "Ann Lee"),
    ("place", "home", "Berlin"),
    ("entity", "job", "pilot"),
    ("number", "budget", "5,000 €"),
    ("preference", "prefer window seats", "I prefer window seats."),
    ("feedback", "hotel", "too loud"),
    ("anchor", "src/main.py", "path"),
    ("anchor", "A-4711", "id"),
    ("action", "ann | laptop: buy", "video editing"),
    ("action", "bob: book", "a flight"),
    ("entity", "name", "Annie"),
)


def test_003_52_nodes_have_attributes_and_edges_a_relation() -> None:
    graph = derived("ann", TOLD)
    assert {(e.source, e.relation, e.target) for e in graph.edges} == {
        ("ann", "has session", "trip"),
        ("ann", "lives in", "Berlin"),
        ("ann", "has", "budget"),
        ("ann", "prefers", "I prefer window seats."),
        ("ann", "said", "too loud"),
        ("ann", "works on", "src/main.py"),
        ("trip", "mentions", "src/main.py"),
        ("trip", "mentions", "A-4711"),
        ("ann", "buy", "laptop"),
        ("bob", "book", "a flight"),
    }
    nodes = {node.name: node for node in graph.nodes}
    assert nodes["ann"] == Node("ann", "user", {"name": "Ann Lee", "job": "pilot"})
    assert nodes["budget"] == Node("budget", "number", {"value": "5,000 €"})
    assert nodes["trip"] == Node("trip", "session", {"id": "abababab:trip"})
    assert nodes["src/main.py"].kind == "path"
    assert {e.attributes["goal"] for e in graph.edges if e.relation == "buy"} == {"video editing"}
    assert {end for e in graph.edges for end in (e.source, e.target)} <= nodes.keys()


def test_of_two_values_the_first_told_counts() -> None:
    """Points come newest first."""
    assert derived("ann", points(("entity", "name", "Annie"), ("entity", "name", "Ann"))).nodes[0].attributes == {"name": "Annie"}


def test_what_is_given_by_hand_wins_and_brings_its_ends_along() -> None:
    given = Graph((Node("ann", "user", {"job": "captain"}), Node("crew", "team")), (Edge("ann", "leads", "crew"), Edge("crew", "flies", "A320")))
    graph = joined(derived("ann", TOLD[:3]), given)
    nodes = {node.name: node for node in graph.nodes}
    assert nodes["ann"] == Node("ann", "user", {"name": "Ann Lee", "job": "captain"}, given=True)
    assert nodes["A320"] == Node("A320", given=True)
    assert Edge("ann", "leads", "crew") in graph.edges


def test_it_can_be_asked_by_node_relation_kind_and_text() -> None:
    graph = derived("ann", TOLD)
    assert [node.name for node in nodes_like(graph, "path", "")] == ["src/main.py"]
    assert [node.name for node in nodes_like(graph, "", "LEE")] == ["ann"]
    assert nodes_like(graph, "user", "nothing like it") == []
    assert {e.target for e in edges_of(graph, "trip", "mentions")} == {"src/main.py", "A-4711"}
    assert [e.relation for e in edges_of(graph, "Berlin", "")] == ["lives in"]
    assert len(edges_of(graph, "", "")) == len(graph.edges)
