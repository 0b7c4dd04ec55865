"""The admin API's calls about memory points and users' graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from aiohttp import web

from ctxproxy.admin.find import body_of, session_of, text_in, user_of
from ctxproxy.admin.memory import Route
from ctxproxy.core.graph import MAX_ATTRIBUTES, MAX_EDGES, MAX_NAME_CHARS, MAX_NODES, Edge, Graph, Node, derived, edges_of, joined, nodes_like
from ctxproxy.core.memory_points import in_force_for_user
from ctxproxy.core.points import MemoryPoint, PointKind
from ctxproxy.errors import BadRequest, NotFound
from ctxproxy.proxy.state import State

MOST_OF_USER = 2000
"""Points of a user that are looked through, anchors last."""


def fact_routes(state: State) -> list[Route]:
    """Method, path and handler of each."""
    facts, graph = _Facts(state), _Graph(state)
    return [
        ("GET", "sessions/{id}/facts", facts.of_session),
        ("DELETE", "sessions/{id}/facts/{n}", facts.drop),
        ("GET", "users/{id}/facts", facts.of_user),
        ("GET", "users/{id}/graph/nodes", graph.nodes),
        ("POST", "users/{id}/graph/nodes", graph.put_node),
        ("DELETE", "users/{id}/graph/nodes/{name}", graph.drop_node),
        ("GET", "users/{id}/graph/edges", graph.edges),
        ("POST", "users/{id}/graph/edges", graph.put_edge),
        ("DELETE", "users/{id}/graph/edges", graph.drop_edge),
    ]


class _Facts:
    def __init__(self, state: State) -> None:
        self._state = state

    async def of_session(self, request: web.Request) -> web.Response:
        session = await session_of(self._state.store, request.match_info["id"])
        found = await self._state.store.facts.of(session.key)
        history = request.query.get("history", "").lower() == "true"
        return _listed(request, [one for one in found if history or one.in_force])

    async def of_user(self, request: web.Request) -> web.Response:
        tenant, user = await _user(self._state, request)
        return _listed(request, in_force_for_user(await self._state.store.facts.of_user(tenant, user, MOST_OF_USER)))

    async def drop(self, request: web.Request) -> web.Response:
        store, given = self._state.store, request.match_info["n"]
        session = await session_of(store, request.match_info["id"])
        numbers = {str(one.number): one.number for one in await store.facts.of(session.key)}
        if given not in numbers:
            raise NotFound(f"session {session.key.id} has no fact {given}; GET sessions/{{id}}/facts lists them", param="n")
        await store.carryover.drop_told(session.key)  # a later session may have begun with it; its traces go with those of the fact
        await store.facts.drop(session.key, numbers[given])
        return web.json_response({"n": numbers[given], "deleted": True})


async def _user(state: State, request: web.Request) -> tuple[str, str]:
    return await user_of(state.store.facts.tenants, request.match_info["id"], "is no session")


def _listed(request: web.Request, found: Sequence[MemoryPoint]) -> web.Response:
    kind, query = request.query.get("kind", ""), request.query.get("q", "").casefold()
    if kind and kind not in get_args(PointKind):
        raise BadRequest(f"kind must be one of {', '.join(get_args(PointKind))}", param="kind")
    wanted = [one for one in found if kind in ("", one.point.kind) and _holds(one, query)]
    return web.json_response({"data": [fact_shown(one) for one in wanted], "next_cursor": None})


def _holds(one: MemoryPoint, query: str) -> bool:
    return query in one.point.key.casefold() or query in one.point.value.casefold()


def fact_shown(one: MemoryPoint) -> dict[str, object]:
    """A memory point: `tip` names the message that told it, or up to which the summary tells that did."""
    point = one.point
    return {
        "n": one.number,
        "kind": point.kind,
        "key": point.key,
        "value": point.value,
        "tip": point.tip,
        "time": point.time,
        "weight": point.weight,
        "source": point.source,
        "session": one.session.id,
        "user": one.user or None,
        "in_force": one.in_force,
        "superseded_by": one.superseded_by,
        "taken_back": one.taken_back,
    }


class _Graph:
    def __init__(self, state: State) -> None:
        self._state = state

    async def nodes(self, request: web.Request) -> web.Response:
        graph = await self._graph(*await _user(self._state, request))
        found = nodes_like(graph, request.query.get("kind", ""), request.query.get("q", ""))
        return web.json_response({"data": [_node_shown(node) for node in found], "next_cursor": None})

    async def edges(self, request: web.Request) -> web.Response:
        graph = await self._graph(*await _user(self._state, request))
        found = edges_of(graph, request.query.get("node", ""), request.query.get("relation", ""))
        return web.json_response({"data": [_edge_shown(edge) for edge in found], "next_cursor": None})

    async def put_node(self, request: web.Request) -> web.Response:
        (tenant, user), body = await _user(self._state, request), await body_of(request)
        node = Node(_name_in(body, "name"), _name_in(body, "kind", "entity"), _attributes_in(body), given=True)
        given = await self._state.store.graphs.of(tenant, user)
        _room(len(given.nodes), MAX_NODES, "nodes")
        await self._state.store.graphs.put_node(tenant, user, node)
        return web.json_response(_node_shown(node), status=201)

    async def put_edge(self, request: web.Request) -> web.Response:
        (tenant, user), body = await _user(self._state, request), await body_of(request)
        edge = Edge(_name_in(body, "source"), _name_in(body, "relation"), _name_in(body, "target"), _attributes_in(body), given=True)
        given = await self._state.store.graphs.of(tenant, user)
        _room(len(given.edges), MAX_EDGES, "edges")
        await self._state.store.graphs.put_edge(tenant, user, edge)
        return web.json_response(_edge_shown(edge), status=201)

    async def drop_node(self, request: web.Request) -> web.Response:
        (tenant, user), name = await _user(self._state, request), request.match_info["name"]
        if not await self._state.store.graphs.drop_node(tenant, user, name):
            raise NotFound(f"no node {name!r} was put in by hand; what comes from facts goes with them", param="name")
        return web.json_response({"name": name, "deleted": True})

    async def drop_edge(self, request: web.Request) -> web.Response:
        (tenant, user), query = await _user(self._state, request), dict(request.query)
        edge = Edge(_name_in(query, "source"), _name_in(query, "relation"), _name_in(query, "target"))
        if not await self._state.store.graphs.drop_edge(tenant, user, edge):
            raise NotFound("no such edge was put in by hand; what comes from facts goes with them", param="source")
        return web.json_response({"source": edge.source, "relation": edge.relation, "target": edge.target, "deleted": True})

    async def _graph(self, tenant: str, user: str) -> Graph:
        points = in_force_for_user(await self._state.store.facts.of_user(tenant, user, MOST_OF_USER))
        return joined(derived(user, points), await self._state.store.graphs.of(tenant, user))


def _room(held: int, most: int, what: str) -> None:
    if held >= most:
        raise BadRequest(f"a user's graph holds at most {most} {what} put in by hand; delete some first")


def _name_in(body: dict[str, object] | dict[str, str], key: str, default: str | None = None) -> str:
    text = text_in({**body}, key, default).strip()
    if not 1 <= len(text) <= MAX_NAME_CHARS:
        raise BadRequest(f"{key} must have 1 to {MAX_NAME_CHARS} characters", param=key)
    return text


def _attributes_in(body: dict[str, object]) -> dict[str, str]:
    given = body.get("attributes", {})
    if not isinstance(given, dict) or len(given) > MAX_ATTRIBUTES or not all(_is_short(text) for pair in given.items() for text in pair):
        complaint = f"attributes must be an object of at most {MAX_ATTRIBUTES} texts of at most {MAX_NAME_CHARS} characters"
        raise BadRequest(complaint, param="attributes")
    return given


def _is_short(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME_CHARS


def _node_shown(node: Node) -> dict[str, object]:
    return {"name": node.name, "kind": node.kind, "attributes": dict(node.attributes), "given": node.given}


def _edge_shown(edge: Edge) -> dict[str, object]:
    ends = {"source": edge.source, "relation": edge.relation, "target": edge.target}
    return {**ends, "attributes": dict(edge.attributes), "given": edge.given}
