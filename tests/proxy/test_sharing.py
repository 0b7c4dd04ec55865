"""Graphs, grants, tags and ratings over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from ctxproxy.core.graph import MAX_NODES, Node
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin import APPEND, got, question
from tests.scripted_upstream import ScriptedUpstream

ANN = {"X-User-Id": "ann"}


async def rows(running: Running, path: str) -> list[dict[str, Any]]:
    await running.settled()
    return (await got(running, path))["data"]  # type: ignore[no-any-return]


# ---------------------------------------------------------------- the graph


async def test_003_52_a_users_graph_is_made_of_facts_and_of_what_is_added(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("My name is Ann. I live in Berlin. I prefer tabs over spaces. See src/app/main.py", session="s", headers=ANN)
    nodes = {node["name"]: node for node in await rows(running, "users/ann/graph/nodes")}
    assert nodes["ann"] == {"name": "ann", "kind": "user", "attributes": {"name": "Ann"}, "given": False}
    found = {(edge["relation"], edge["target"]) for edge in await rows(running, "users/ann/graph/edges?node=ann")}
    assert found == {("has session", "s"), ("lives in", "Berlin"), ("prefers", "I prefer tabs over spaces."), ("works on", "src/app/main.py")}
    assert [edge["source"] for edge in await rows(running, "users/ann/graph/edges?relation=mentions")] == ["s"]

    made = await got(running, "users/ann/graph/nodes", "POST", {"name": "crew", "kind": "team", "attributes": {"size": "5"}}, status=201)
    await got(running, "users/ann/graph/edges", "POST", {"source": "ann", "relation": "leads", "target": "crew"}, status=201)
    assert await rows(running, "users/ann/graph/nodes?kind=team&q=CRE") == [made]
    (edge,) = await rows(running, "users/ann/graph/edges?relation=leads")
    assert (edge["target"], edge["given"]) == ("crew", True)
    ends = "source=ann&relation=leads&target=crew"
    assert (await got(running, f"users/ann/graph/edges?{ends}", "DELETE"))["deleted"]
    await got(running, f"users/ann/graph/edges?{ends}", "DELETE", status=404)
    assert (await got(running, "users/ann/graph/nodes/crew", "DELETE"))["deleted"]
    await got(running, "users/ann/graph/nodes/ann", "DELETE", status=404)

    await got(running, "sessions/s", "DELETE")
    await got(running, "users/ann/graph/nodes", status=404)


async def test_graphs_of_two_tenants_are_two(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("I live in Berlin.", session="a", headers=ANN)
    await running.chat("I live in Paris.", session="b", headers=ANN, key="sk-other")
    await running.settled()
    await got(running, "users/ann/graph/nodes", status=409)
    tenant = (await running.session("a")).key.tenant[:8]
    await got(running, f"users/{tenant}:ann/graph/nodes", "POST", {"name": "crew"}, status=201)
    places = [node["name"] for node in await rows(running, f"users/{tenant}:ann/graph/nodes?kind=place")]
    other = (await running.session("b")).key.tenant[:8]
    assert places == ["Berlin"]
    assert "crew" not in [node["name"] for node in await rows(running, f"users/{other}:ann/graph/nodes")]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("nodes", {}, "name"),
        ("nodes", {"name": " "}, "name"),
        ("nodes", {"name": "x" * 201}, "name"),
        ("nodes", {"name": "x", "attributes": ["a"]}, "attributes"),
        ("nodes", {"name": "x", "attributes": {"a": 1}}, "attributes"),
        ("edges", {"source": "x", "relation": "r"}, "target"),
    ],
)
async def test_what_cannot_be_part_of_a_graph_is_refused(proxy: StartProxy, upstream: ScriptedUpstream, path: str, body: Any, param: str) -> None:
    running = await proxy(upstream)
    await running.chat("hello", session="s", headers=ANN)
    await running.settled()
    answer = await got(running, f"users/ann/graph/{path}", "POST", body, status=400)
    assert answer["error"]["param"] == param


async def test_a_graph_has_a_bound(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("hello", session="s", headers=ANN)
    tenant = (await running.session("s")).key.tenant
    for n in range(MAX_NODES):
        await running.state.store.graphs.put_node(tenant, "ann", Node(str(n)))
    answer = await got(running, "users/ann/graph/nodes", "POST", {"name": "one more"}, status=400)
    assert "at most 1000 nodes" in answer["error"]["message"]


# ---------------------------------------------------------------- grants


async def talked(running: Running, session: str, *texts: str, **more: Any) -> list[str]:
    """The tips of the user's messages in a session of these."""
    for text in texts:
        await running.chat(text, session=session, headers={**APPEND, **more.pop("headers", {})}, **more)
    return [row["tip"] for row in await rows(running, f"sessions/{session}/messages") if row["role"] == "user"]


async def test_003_53_without_a_grant_nothing_is_shared_and_with_one_only_what_it_names(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store={"url": "sqlite:///s.db"})
    first, _ = await talked(running, "own", "The budget is 4,500 €.", "a secret")
    await talked(running, "reader", "hello")
    refused = await got(running, "sessions/reader/shared?from=own", status=403)
    assert refused["error"]["code"] == "forbidden"
    assert await rows(running, "sessions/reader/shared") == []

    (fact,) = await rows(running, "sessions/own/facts?kind=number")
    made = await got(running, "sessions/own/grants", "POST", {"to": "reader", "tips": [first], "facts": [fact["n"]], "expires_s": 60}, status=201)
    own, reader = [(await running.session(name)).key.id for name in ("own", "reader")]
    assert (made["n"], made["to"], made["expires"] - made["created"]) == (1, {"session": reader}, 60)
    assert await rows(running, "sessions/own/grants") == [made]
    (shared,) = await rows(running, "sessions/reader/shared?from=own")
    assert shared["from"] == own
    assert [one["message"]["content"] for one in shared["messages"]] == ["The budget is 4,500 €."]
    assert [one["value"] for one in shared["facts"]] == ["4,500 €"]
    await got(running, "sessions/own/shared?from=reader", status=403)

    await got(running, f"sessions/own/messages/{first}", "DELETE")
    (shared,) = await rows(running, "sessions/reader/shared")
    assert (shared["messages"], shared["facts"]) == ([], [])
    assert (await got(running, "sessions/own/grants/1", "DELETE"))["deleted"]
    await got(running, "sessions/own/grants/1", "DELETE", status=404)
    await got(running, "sessions/reader/shared?from=own", status=403)


async def test_a_grant_ends_with_its_time(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    now = 1000.0
    running.state.clock = lambda: now
    (tip,) = await talked(running, "own", "hello")
    await talked(running, "reader", "hello")
    await got(running, "sessions/own/grants", "POST", {"to": "reader", "tips": [tip], "expires_s": 5}, status=201)
    assert len(await rows(running, "sessions/reader/shared?from=own")) == 1
    now = 1005.0
    await got(running, "sessions/reader/shared?from=own", status=403)


async def test_a_grant_to_a_user_is_for_all_his_sessions_and_no_other_tenants(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    (tip,) = await talked(running, "own", "hello")
    await talked(running, "anns", "hello", headers=ANN)
    await talked(running, "ann", "hello")
    await talked(running, "foreign", "hello", headers={"X-User-Id": "eve"}, key="sk-other")
    tenant = (await running.session("own")).key.tenant[:8]
    conflict = await got(running, "sessions/own/grants", "POST", {"to": "ann", "tips": [tip]}, status=409)
    assert '{"user": …}' in conflict["error"]["message"]
    made = await got(running, "sessions/own/grants", "POST", {"to": {"user": f"{tenant}:ann"}, "tips": [tip]}, status=201)
    assert made["to"] == {"user": "ann"}
    assert len(await rows(running, "sessions/anns/shared?from=own")) == 1
    assert await rows(running, "sessions/ann/shared") == []
    assert (await got(running, "sessions/own/grants", "POST", {"to": {"session": "ann"}, "tips": [tip]}, status=201))["n"] == 2
    assert len(await rows(running, "sessions/ann/shared")) == 1
    for foreign in ("foreign", "eve", (await running.session("foreign")).key.id):
        await got(running, "sessions/own/grants", "POST", {"to": foreign, "tips": [tip]}, status=403)
    await got(running, "sessions/own/grants", "POST", {"to": "nobody", "tips": [tip]}, status=404)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 400, "to"),
        ({"to": 5}, 400, "to"),
        ({"to": {"group": "x"}}, 400, "to"),
        ({"to": "own"}, 400, "tips"),
        ({"to": "own", "tips": "x"}, 400, "tips"),
        ({"to": "own", "tips": ["ab" * 16]}, 404, "tips"),
        ({"to": "own", "facts": [True]}, 400, "facts"),
        ({"to": "own", "facts": [9]}, 404, "facts"),
        ({"to": "own", "facts": [1], "expires_s": 0}, 400, "expires_s"),
        ({"to": "own", "facts": [1], "expires_s": "soon"}, 400, "expires_s"),
    ],
)
async def test_a_grant_that_makes_no_sense_is_refused(proxy: StartProxy, upstream: ScriptedUpstream, body: Any, status: int, param: str) -> None:
    running = await proxy(upstream)
    await talked(running, "own", "The budget is 4,500 €.")
    answer = await got(running, "sessions/own/grants", "POST", body, status=status)
    assert answer["error"]["param"] == param


# ---------------------------------------------------------------- tags and ratings


async def test_003_56_sessions_are_found_by_their_tag(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    for name in ("one", "two"):
        await talked(running, name, "hello")
    shown = await got(running, "sessions/one", "PATCH", {"tag": " 客服 ", "kept": True})
    assert (shown["tag"], shown["kept"]) == ("客服", True)
    assert [one["name"] for one in await rows(running, "sessions?tag=客服")] == ["one"]
    shown = await got(running, "sessions/one", "PATCH", {"kept": False})
    assert (shown["tag"], shown["kept"]) == ("客服", False)
    assert (await got(running, "sessions/one", "PATCH", {"tag": ""}))["tag"] is None
    for body in ({}, {"tag": 5}, {"kept": "yes"}, {"tag": "x" * 101}, {"tip": "aa"}):
        await got(running, "sessions/one", "PATCH", body, status=400)


async def test_001_73_what_users_think_is_stored_and_shown(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat([question("hello")], session="s")
    await running.settled()
    assert (await got(running, "sessions/s"))["feedback"] == {"ratings": 0, "mean": None, "last": None}
    await got(running, "sessions/s/feedback", "POST", {"rating": 5}, status=201)
    made = await got(running, "sessions/s/feedback", "POST", {"rating": 2, "text": "it forgot my name"}, status=201)
    assert (made["rating"], made["text"]) == (2, "it forgot my name")
    feedback = (await got(running, "sessions/s"))["feedback"]
    assert (feedback["ratings"], feedback["mean"], feedback["last"]["text"]) == (2, 3.5, "it forgot my name")
    assert (await got(running, "stats"))["feedback"] == {"ratings": 2, "mean": 3.5}
    for body in ({}, {"rating": 0}, {"rating": 6}, {"rating": True}, {"rating": 2.5}, {"rating": 1, "text": 5}, {"rating": 1, "text": "x" * 2001}):
        await got(running, "sessions/s/feedback", "POST", body, status=400)
