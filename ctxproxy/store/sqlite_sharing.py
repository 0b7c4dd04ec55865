"""Grants, ratings and graphs given by hand in the database file: `ports.Grants`, `ports.Ratings` and `ports.Graphs`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ctxproxy.core.graph import Edge, Graph, Node
from ctxproxy.core.records import SessionKey
from ctxproxy.core.sharing import MAX_RATINGS, Grant, Rating, RatingTotals
from ctxproxy.store.queries import named_queries
from ctxproxy.store.rows import Row, Values, key_values, pack, plain, unpack
from ctxproxy.store.sqlite_effects import EffectWriter
from ctxproxy.store.sqlite_readers import SqliteReaders
from ctxproxy.store.sqlite_writer import SqliteWriter

QUERIES = named_queries("sharing.sql")


class SqliteGrants:
    """`ports.Grants`."""

    def __init__(self, writer: SqliteWriter, readers: SqliteReaders) -> None:
        self._writer = writer
        self._readers = readers

    async def put(self, grant: Grant) -> int | None:
        made: list[int] = []
        await self._writer.submit(lambda writer: _put_grant(writer, grant, made.append))
        return made[0] if made else None

    async def of(self, owner: SessionKey) -> list[Grant]:
        return [_grant_of(row) for row in await self._readers.rows(QUERIES["grants"], key_values(owner))]

    async def to(self, key: SessionKey, user: str, now: float) -> list[Grant]:
        values = {**key_values(key), "user": pack(user), "now": now}
        return [_grant_of(row) for row in await self._readers.rows(QUERIES["grants_to"], values)]

    async def drop(self, owner: SessionKey, number: int) -> bool:
        return await self._writer.submit(lambda writer: _on(writer, owner, "drop_grant", number=number))


class SqliteRatings:
    """`ports.Ratings`."""

    def __init__(self, writer: SqliteWriter, readers: SqliteReaders) -> None:
        self._writer = writer
        self._readers = readers

    async def put(self, key: SessionKey, rating: Rating) -> bool:
        return await self._writer.submit(lambda writer: _put_rating(writer, key, rating))

    async def of(self, key: SessionKey) -> list[Rating]:
        return [Rating(rating, unpack(text), created) for rating, text, created in await self._readers.rows(QUERIES["ratings"], key_values(key))]

    async def totals(self) -> RatingTotals:
        return RatingTotals(*(await self._readers.rows(QUERIES["rating_totals"], {}))[0])


class SqliteGraphs:
    """`ports.Graphs`."""

    def __init__(self, writer: SqliteWriter, readers: SqliteReaders) -> None:
        self._writer = writer
        self._readers = readers

    async def of(self, tenant: str, user: str) -> Graph:
        whose = _whose(tenant, user)
        nodes = await self._readers.rows(QUERIES["nodes"], whose)
        edges = await self._readers.rows(QUERIES["edges"], whose)
        return Graph(tuple(map(_node_of, nodes)), tuple(map(_edge_of, edges)))

    async def put_node(self, tenant: str, user: str, node: Node) -> None:
        values = {"node": pack(node.name), "kind": pack(node.kind), "attributes": json.dumps(dict(node.attributes))}
        await self._writer.submit(lambda writer: _run(writer, "put_node", **_whose(tenant, user), **values) > 0)

    async def put_edge(self, tenant: str, user: str, edge: Edge) -> None:
        values = {**_ends(edge), "attributes": json.dumps(dict(edge.attributes))}
        await self._writer.submit(lambda writer: _run(writer, "put_edge", **_whose(tenant, user), **values) > 0)

    async def drop_node(self, tenant: str, user: str, name: str) -> bool:
        whose = {**_whose(tenant, user), "node": pack(name)}
        return await self._writer.submit(lambda writer: _erased(writer, ("drop_node", "drop_edges_of"), whose), erases=True)

    async def drop_edge(self, tenant: str, user: str, edge: Edge) -> bool:
        whose = {**_whose(tenant, user), **_ends(edge)}
        return await self._writer.submit(lambda writer: _erased(writer, ("drop_edge",), whose), erases=True)


def _run(writer: EffectWriter, query: str, **values: Any) -> int:
    return writer.connection.execute(QUERIES[query], values).rowcount


def _on(writer: EffectWriter, key: SessionKey, query: str, **values: Any) -> bool:
    session = writer.session_id(key)
    return session is not None and _run(writer, query, session=session, **values) > 0


def _put_grant(writer: EffectWriter, grant: Grant, made: Callable[[int], None]) -> bool:
    session = writer.session_id(grant.owner)
    receiver = writer.session_id(grant.to_session) if grant.to_session else None
    if session is None or (grant.to_session and receiver is None):
        return False
    values = {"tips": json.dumps(grant.tips), "facts": json.dumps(grant.facts), "created": grant.created, "expires": grant.expires}
    row = writer.connection.execute(QUERIES["put_grant"], {"session": session, "to_session": receiver, "to_user": pack(grant.to_user), **values})
    made(int(row.fetchone()[0]))
    return True


def _put_rating(writer: EffectWriter, key: SessionKey, rating: Rating) -> bool:
    values = {"rating": rating.rating, "text": pack(rating.text), "created": rating.created}
    put = _on(writer, key, "put_rating", **values)
    _on(writer, key, "prune_ratings", most=MAX_RATINGS)
    return put


def _erased(writer: EffectWriter, queries: tuple[str, ...], values: Values) -> bool:
    gone = sum(_run(writer, query, **values) for query in queries)
    if gone:
        writer.note_erasure()
    return gone > 0


def _whose(tenant: str, user: str) -> Values:
    return {"tenant": plain(tenant), "user": pack(user)}


def _ends(edge: Edge) -> Values:
    return {"source": pack(edge.source), "relation": pack(edge.relation), "target": pack(edge.target)}


def _grant_of(row: Row) -> Grant:
    number, to_user, tips, facts, created, expires, tenant, name, receiver = row
    to_session = None if receiver is None else SessionKey(tenant, unpack(receiver))
    pieces = tuple(json.loads(tips)), tuple(json.loads(facts))
    return Grant(number, SessionKey(tenant, unpack(name)), to_session, unpack(to_user), *pieces, created, expires)


def _node_of(row: Row) -> Node:
    name, kind, attributes = row
    return Node(unpack(name), unpack(kind), json.loads(attributes), given=True)


def _edge_of(row: Row) -> Edge:
    source, relation, target, attributes = row
    return Edge(unpack(source), unpack(relation), unpack(target), json.loads(attributes), given=True)
