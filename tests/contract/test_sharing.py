"""Grants, ratings and graphs given by hand, in every store."""

from __future__ import annotations

from pathlib import Path

from ctxproxy.core.effects import Choose, OpenSession
from ctxproxy.core.graph import Edge, Graph, Node
from ctxproxy.core.records import SessionKey
from ctxproxy.core.sharing import MAX_RATINGS, Grant, Rating, RatingTotals
from ctxproxy.store import open_store
from tests.contract.conftest import Handles, no_damage
from tests.contract.samples import KEY, OTHER

THIRD = SessionKey(KEY.tenant, "third")
FOREIGN = SessionKey("1e" * 16, "talk")


def grant(owner: SessionKey = KEY, to: SessionKey | None = OTHER, user: str = "", expires: float | None = None, created: float = 1.0) -> Grant:
    return Grant(0, owner, to, user, ("ab" * 16,), (1, 2), created, expires)


async def open_all(stores: Handles, *keys: SessionKey) -> None:
    await stores.write.apply([OpenSession(key, 1.0) for key in keys])


async def test_grants_are_numbered_per_owner_and_found_from_both_sides(stores: Handles) -> None:
    await open_all(stores, KEY, OTHER, THIRD, FOREIGN)
    to_session, to_user = grant(), grant(to=None, user="ann\ud83c", created=2.0)
    assert [await stores.write.grants.put(one) for one in (to_session, to_user)] == [1, 2]
    first, second = await stores.read.grants.of(KEY)
    assert (first, second) == (
        Grant(1, KEY, OTHER, "", ("ab" * 16,), (1, 2), 1.0, None),
        Grant(2, KEY, None, "ann\ud83c", ("ab" * 16,), (1, 2), 2.0, None),
    )
    assert await stores.read.grants.to(OTHER, "", 5.0) == [first]
    assert await stores.read.grants.to(OTHER, "ann\ud83c", 5.0) == [first, second]
    assert await stores.read.grants.to(THIRD, "ann\ud83c", 5.0) == [second]
    assert await stores.read.grants.to(THIRD, "", 5.0) == []
    assert await stores.read.grants.to(FOREIGN, "ann\ud83c", 5.0) == []


async def test_a_grant_ends_when_it_expires_or_is_revoked(stores: Handles) -> None:
    await open_all(stores, KEY, OTHER)
    await stores.write.grants.put(grant(expires=10.0))
    assert len(await stores.read.grants.to(OTHER, "", 9.9)) == 1
    assert await stores.read.grants.to(OTHER, "", 10.0) == []
    assert await stores.write.grants.drop(KEY, 1)
    assert not await stores.write.grants.drop(KEY, 1)
    assert await stores.read.grants.of(KEY) == []


async def test_a_grant_needs_both_sessions_and_goes_with_either(stores: Handles) -> None:
    await open_all(stores, KEY)
    assert await stores.write.grants.put(grant()) is None
    assert await stores.write.grants.put(grant(owner=OTHER, to=KEY)) is None
    assert not await stores.write.grants.drop(OTHER, 1)
    await open_all(stores, OTHER)
    await stores.write.grants.put(grant())
    await stores.write.grants.put(grant(owner=OTHER, to=KEY))
    await stores.write.erase(OTHER)
    assert await stores.read.grants.of(KEY) == []
    assert await stores.read.grants.to(KEY, "", 1.0) == []


async def test_ratings_are_kept_in_order_and_add_up(stores: Handles) -> None:
    assert not await stores.write.ratings.put(KEY, Rating(5, "", 1.0))
    assert await stores.read.ratings.totals() == RatingTotals()
    await open_all(stores, KEY, OTHER)
    ratings = [Rating(5, "good\ud83c", 1.0), Rating(2, "", 2.0)]
    for one in ratings:
        assert await stores.write.ratings.put(KEY, one)
    await stores.write.ratings.put(OTHER, Rating(1, "", 3.0))
    assert await stores.read.ratings.of(KEY) == ratings
    totals = await stores.read.ratings.totals()
    assert (totals.ratings, totals.points, totals.mean) == (3, 8, 2.67)
    await stores.write.erase(KEY)
    assert await stores.read.ratings.of(KEY) == []
    assert await stores.read.ratings.totals() == RatingTotals(1, 1)


async def test_of_too_many_ratings_the_newest_stay(stores: Handles) -> None:
    await open_all(stores, KEY)
    for n in range(MAX_RATINGS + 2):
        await stores.write.ratings.put(KEY, Rating(1, str(n), float(n)))
    assert [one.text for one in await stores.read.ratings.of(KEY)] == [str(n) for n in range(2, MAX_RATINGS + 2)]


async def test_a_graph_belongs_to_a_user_of_a_tenant(stores: Handles) -> None:
    graphs = stores.write.graphs
    node, edge = Node("b\ud83c", "team", {"size": "5"}), Edge("ann", "leads", "b\ud83c", {"since": "2020"})
    await graphs.put_node(KEY.tenant, "ann", Node("b\ud83c"))
    await graphs.put_node(KEY.tenant, "ann", node)
    await graphs.put_node(KEY.tenant, "ann", Node("a"))
    await graphs.put_edge(KEY.tenant, "ann", edge)
    await graphs.put_edge(KEY.tenant, "ann", Edge("a", "knows", "c"))
    expected = Graph(
        (Node("a", given=True), Node("b\ud83c", "team", {"size": "5"}, given=True)),
        (Edge("a", "knows", "c", given=True), Edge("ann", "leads", "b\ud83c", {"since": "2020"}, given=True)),
    )
    assert await stores.read.graphs.of(KEY.tenant, "ann") == expected
    assert await stores.read.graphs.of(FOREIGN.tenant, "ann") == Graph()
    assert await stores.read.graphs.of(KEY.tenant, "bob") == Graph()


async def test_nodes_go_with_their_edges_and_edges_by_themselves(stores: Handles) -> None:
    graphs = stores.write.graphs
    for name in "ab":
        await graphs.put_node(KEY.tenant, "ann", Node(name))
    for ends in (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")):
        await graphs.put_edge(KEY.tenant, "ann", Edge(ends[0], "r", ends[1]))
    assert await graphs.drop_node(KEY.tenant, "ann", "b")
    assert await graphs.drop_edge(KEY.tenant, "ann", Edge("c", "r", "d"))
    assert not await graphs.drop_edge(KEY.tenant, "ann", Edge("c", "r", "d"))
    left = await stores.read.graphs.of(KEY.tenant, "ann")
    assert ([n.name for n in left.nodes], [(e.source, e.target) for e in left.edges]) == (["a"], [("d", "e")])
    assert await graphs.drop_node(KEY.tenant, "ann", "e")
    assert not await graphs.drop_node(KEY.tenant, "ann", "e")
    assert not await graphs.drop_node(KEY.tenant, "nobody", "a")


async def test_sessions_are_found_by_their_tag(stores: Handles) -> None:
    await open_all(stores, KEY, OTHER)
    await stores.write.apply([Choose(OTHER, tag="客服")])
    for tag, expected in (("客服", {OTHER}), ("", {KEY, OTHER}), ("客", set())):
        assert {one.key for one in (await stores.read.sessions(10, None, "", tag)).sessions} == expected


async def test_nothing_of_what_is_erased_is_left_in_any_file(tmp_path: Path) -> None:
    secret = SessionKey(KEY.tenant, "SECRET-session")
    store = await open_store(f"sqlite:///{tmp_path}/talks.db", on_damage=no_damage)
    try:
        await store.apply([OpenSession(KEY, 1.0), OpenSession(secret, 1.0)])
        await store.grants.put(grant(to=secret))
        await store.grants.put(grant(owner=secret, to=None, user="SECRET-user"))
        await store.ratings.put(secret, Rating(1, "SECRET-rating", 1.0))
        await store.graphs.put_node("0f" * 16, "ann", Node("SECRET-node", "k", {"a": "SECRET-attribute"}))
        await store.graphs.put_edge("0f" * 16, "ann", Edge("SECRET-node", "SECRET-relation", "x"))
        await store.graphs.put_edge("0f" * 16, "ann", Edge("y", "SECRET-other", "x"))
        assert await store.erase(secret)
        assert await store.graphs.drop_node("0f" * 16, "ann", "SECRET-node")
        assert await store.graphs.drop_edge("0f" * 16, "ann", Edge("y", "SECRET-other", "x"))
        assert b"SECRET" not in bytes_of(tmp_path)
        assert await store.grants.of(KEY) == []
    finally:
        await store.close()


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())
