"""The admin API over HTTP: every call of INTERFACE §1, who may make it, and what is left afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.proxy.conftest import StartProxy
from tests.proxy.raw_http import ask
from tests.proxy.running import Running, path_of
from tests.scripted_upstream import Answer, Json, ScriptedUpstream, completion

APPEND = {"X-Context-Mode": "append"}
TINY = {"max_tokens": 2000, "keep_recent_turns": 1}
SHORTENED = {**TINY, "pipeline": [{"stage": "compact_messages"}, {"stage": "drop_oldest"}]}
OFF = {"kind": "off"}
FILLER = "some words that say little " * 30
CALLS = [
    ("GET", "sessions"),
    ("GET", "sessions/s"),
    ("DELETE", "sessions/s"),
    ("GET", "sessions/s/messages"),
    ("DELETE", "sessions/s/messages/00"),
    ("GET", "sessions/s/memory"),
    ("GET", "sessions/s/doctor"),
    ("GET", "users/u/memory"),
    ("POST", "sessions/s/memory/distill"),
    ("POST", "users/u/memory/distill"),
    ("GET", "sessions/s/facts"),
    ("DELETE", "sessions/s/facts/1"),
    ("GET", "users/u/facts"),
    ("GET", "users/u/graph/nodes"),
    ("POST", "users/u/graph/nodes"),
    ("DELETE", "users/u/graph/nodes/n"),
    ("GET", "users/u/graph/edges"),
    ("POST", "users/u/graph/edges"),
    ("DELETE", "users/u/graph/edges"),
    ("POST", "sessions/s/grants"),
    ("GET", "sessions/s/grants"),
    ("DELETE", "sessions/s/grants/1"),
    ("GET", "sessions/s/shared"),
    ("PATCH", "sessions/s"),
    ("POST", "sessions/s/feedback"),
    ("GET", "sessions/s/view"),
    ("GET", "sessions/s/why?text=x"),
    ("GET", "sessions/s/export"),
    ("POST", "import"),
    ("POST", "sessions/s/manage"),
    ("POST", "sessions/s/clear"),
    ("POST", "sessions/s/fork"),
    ("POST", "sessions/s/pins"),
    ("DELETE", "sessions/s/pins/1"),
    ("GET", "expand/0123456789abcdef"),
    ("POST", "plan"),
    ("GET", "models"),
    ("GET", "stats"),
]


def turns(number: int) -> list[dict[str, Any]]:
    return [{"role": role, "content": f"{role} {n}: {FILLER}"} for n in range(number) for role in ("user", "assistant")]


def question(text: str = "last question?") -> dict[str, Any]:
    return {"role": "user", "content": text}


async def got(running: Running, path: str, method: str = "GET", body: Any = None, *, status: int = 200) -> Any:
    answered, value = await running.admin(method, path, body)
    assert answered == status, value
    return value


# ---------------------------------------------------------------- who may call


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_with_a_token_set_every_call_needs_it(proxy: StartProxy, upstream: ScriptedUpstream, method: str, path: str) -> None:
    running = await proxy(upstream, admin={"token": "admin-secret"})
    for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "admin-secret"}, {"Authorization": "Bearer admin-secretx"}):
        status, body = await running.admin(method, path, headers=given)
        assert (status, body["error"]["code"]) == (401, "invalid_api_key")
    status, _ = await running.admin(method, path, headers={"Authorization": "Bearer admin-secret"})
    assert status in (200, 400, 404)


async def test_without_a_token_only_this_machine_is_answered(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    assert (await running.admin("GET", "stats"))[0] == 200
    open_to_all = await proxy(upstream, listen={"host": "0.0.0.0"})
    open_to_all.url = open_to_all.url.replace("0.0.0.0", "127.0.0.1")
    assert (await open_to_all.admin("GET", "stats"))[0] == 401


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "127.0.0.1.evil.example:80"}])
async def test_a_page_of_another_site_is_not_answered(proxy: StartProxy, upstream: ScriptedUpstream, headers: dict[str, str]) -> None:
    running = await proxy(upstream)
    status, _ = await running.admin("GET", "stats", headers=headers)
    assert status == 401


async def test_no_answer_allows_other_origins(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    answer = await ask(running.url, "GET", "/ctxproxy/api/stats", [("Origin", "http://evil.example")])
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]


# ---------------------------------------------------------------- sessions


async def test_sessions_are_listed_in_pages_the_last_used_first(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    for n in range(5):
        await running.chat("hi", session=f"s{n}")
    await running.settled()
    found: list[str] = []
    page = await got(running, "sessions?limit=2")
    while True:
        found += [one["name"] for one in page["data"]]
        if page["next_cursor"] is None:
            break
        page = await got(running, f"sessions?limit=2&cursor={quote(page['next_cursor'])}")
    assert found == ["s4", "s3", "s2", "s1", "s0"]
    assert [one["name"] for one in (await got(running, "sessions?q=3"))["data"]] == ["s3"]
    assert (await running.admin("GET", "sessions?limit=0"))[0] == 400


async def test_a_session_is_found_by_id_and_by_its_name_while_that_is_unambiguous(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("mine", session="team/a:b", key="sk-mine")
    one = await got(running, path_of("team/a:b"))
    assert (one["name"], one["messages"], one["turns"], one["branches"]) == ("team/a:b", 2, 1, [one["tip"]])
    assert (await got(running, path_of(one["id"])))["tip"] == one["tip"]
    await running.chat("theirs", session="team/a:b", key="sk-theirs")
    refused = (await got(running, path_of("team/a:b"), status=409))["error"]
    assert refused["code"] == "ambiguous"
    assert one["id"] in refused["message"]
    assert (await got(running, path_of(one["id"])))["name"] == "team/a:b"
    assert (await got(running, "sessions/none", status=404))["error"]["code"] == "not_found"


async def test_messages_are_the_raw_log_with_what_became_of_each(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=SHORTENED)
    await running.chat([*turns(12), question()], session="s")
    await running.settled()
    rows = (await got(running, "sessions/s/messages"))["data"]
    assert [row["message"] for row in rows] == [*turns(12), question(), {"role": "assistant", "content": "ok"}]
    assert {"sent", "compacted"} <= {row["state"] for row in rows} <= {"sent", "compacted", "summarized", "dropped"}
    assert all(row["tokens"] > 0 and not row["partial"] and row["time"] > 0 for row in rows)
    branch = rows[3]["tip"]
    assert len((await got(running, f"sessions/s/messages?branch={branch}"))["data"]) == 4
    await got(running, "sessions/s/messages?branch=ffff", status=404)


@pytest.mark.parametrize("text", ["plain", "ünï 字 💥\r\n\t", "\ud83c half", ""])
async def test_expand_gives_the_original_byte_for_byte(proxy: StartProxy, upstream: ScriptedUpstream, text: str) -> None:
    upstream.script = Json(200, completion("ok"))
    running = await proxy(upstream)
    await running.send(json.dumps({"model": "m", "messages": [question(text + "x" * 500)]}).encode(), {"X-Session-Id": "s"})
    await running.settled()
    tip = (await got(running, "sessions/s/messages"))["data"][0]["tip"]
    for marker in (tip[:16], tip, tip.upper()):
        assert await got(running, f"expand/{marker}") == (text + "x" * 500).encode("utf-8", "surrogatepass")


async def test_the_markers_in_a_prompt_can_be_expanded(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=SHORTENED)
    await running.chat([*turns(12), question()], session="s")
    await running.settled()
    view = await got(running, "sessions/s/view")
    edited = [entry for entry in view["messages"] if entry["origin"] == "edited"]
    assert edited
    for entry in edited:
        original = (await got(running, f"expand/{entry['marker']}")).decode()
        assert original in [message["content"] for message in turns(12)]
        assert entry["marker"] in entry["message"]["content"]


@pytest.mark.parametrize(("marker", "status"), [("short", 400), ("zz" * 8, 400), ("f" * 16, 404), ("..%2f..%2fetc", 400)])
async def test_a_marker_that_names_nothing_is_told(proxy: StartProxy, upstream: ScriptedUpstream, marker: str, status: int) -> None:
    await got(await proxy(upstream), f"expand/{marker}", status=status)


# ---------------------------------------------------------------- view, manage, plan


async def test_the_view_is_what_is_sent_next(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 3000}, summarizer={"kind": "extractive"})
    upstream.script = Answer(f"an answer: {FILLER}")
    await running.chat([{"role": "system", "content": "Be brief."}, question("first")], session="s", headers=APPEND)
    for turn in range(30):
        await running.settled()
        view = [entry["message"] for entry in (await got(running, "sessions/s/view"))["messages"]]
        said = await running.chat(f"question {turn}: {FILLER}", session="s", headers=APPEND)
        if set(said.actions) <= {"replay"}:
            assert upstream.calls[-1].messages[:-1] == view


async def test_manage_compacts_now_and_the_next_request_shows_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 8000}, summarizer={"kind": "extractive"})
    await running.chat([*turns(16), question()], session="s")
    await running.settled()
    report = await got(running, "sessions/s/manage", "POST")
    assert report["tokens_sent"] < report["tokens_in"]
    assert report["actions"]
    view = [entry["message"] for entry in (await got(running, "sessions/s/view"))["messages"]]
    assert view == [entry["message"] for entry in report["messages"]]
    await running.chat([*turns(16), question(), {"role": "assistant", "content": "ok"}, question("next?")], session="s")
    assert upstream.calls[-1].messages == [*view, question("next?")]


async def test_a_plan_leaves_no_trace_and_says_what_would_be_sent(proxy: StartProxy, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    running = await proxy(upstream, summarizer=OFF)
    asked = [{"role": "system", "content": "Be brief."}, *turns(12), question()]
    planned = await got(running, "plan", "POST", {"messages": asked, "model": "tested-model", "max_tokens": 2000})
    assert (upstream.calls, (await got(running, "stats"))["sessions"], planned["changed"]) == ([], 0, True)
    limited = await proxy(upstream, context={"max_tokens": 2000}, summarizer=OFF)
    await limited.chat(asked)
    assert upstream.calls[-1].messages == [entry["message"] for entry in planned["messages"]]
    for wrong in ({}, {"messages": 7}, {"messages": [], "preset": "none"}, {"messages": [], "max_tokens": 0}, {"messages": [], "preset": 7}):
        await got(running, "plan", "POST", wrong, status=400)
    assert (await running.admin("POST", "plan", None))[0] == 400
