"""Promise 7: a fault of ours, or a store that is down, never breaks a request that the upstream would have served."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ctxproxy.core.stages.compact_tool_results import CompactToolResults
from ctxproxy.errors import StoreUnavailable
from tests.proxy.conftest import StartProxy
from tests.proxy.running import MODEL, Running
from tests.scripted_upstream import Answer, Json, ScriptedUpstream, completion

APPEND = {"X-Context-Mode": "append"}


class Down:
    """A store that does not answer; `but` still works."""

    def __init__(self, works: Any = None, *but: str) -> None:
        self._works = works
        self._but = but

    def __getattr__(self, name: str) -> Any:
        if name in ("close", *self._but):
            return getattr(self._works, name)

        async def unavailable(*_: object) -> None:
            raise StoreUnavailable("the disk is gone")

        return unavailable


def take_down(running: Running, *but: str) -> None:
    """From now on the store does not answer, for no part of the program."""
    down: Any = Down(running.state.store, *but)
    running.state.store = down
    running.state.windows._store = down
    running.state.summaries._store = down


async def metric(running: Running, name: str) -> float:
    async with running.http.get(f"{running.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


@pytest.mark.parametrize("stream", [True, False])
async def test_without_the_store_a_full_history_passes_untouched(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream)
    take_down(running)
    said = await running.chat([{"role": "system", "content": "x"}, {"role": "user", "content": "hi"}], session="s", stream=stream)
    assert (said.status, said.text, said.headers["X-Context-Actions"]) == (200, "ok", "store_unavailable")
    assert upstream.calls[0].body == said.sent
    assert await metric(running, "ctxproxy_store_errors_total") == 1


async def test_what_has_no_session_is_planned_without_the_store(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, sessions={"derive": False})
    take_down(running)
    running.state.windows._read_at = float("-inf")
    assert (await running.chat("hi")).headers["X-Context-Actions"] == "none"


async def test_without_the_store_a_compressed_body_passes_untouched(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    upstream.script = Json(200, completion("ok"))
    running = await proxy(upstream)
    take_down(running)
    packed = gzip.compress(b'{"model":"m","messages":[{"role":"user","content":"hi"}]}')
    assert (await running.send(packed, {"Content-Encoding": "gzip"})).status == 200
    assert (upstream.calls[0].body, upstream.calls[0].header("Content-Encoding")) == (packed, "gzip")


async def test_without_the_store_a_thin_client_is_told_to_come_again(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    take_down(running)
    said = await running.chat("hi", session="s", headers=APPEND)
    assert (said.status, said.json["error"]["code"], upstream.calls) == (503, "store_unavailable", [])
    assert int(said.headers["Retry-After"]) > 0


async def test_an_answer_is_given_even_if_it_cannot_be_kept(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    take_down(running, "session", "known", "history", "checkpoints", "summaries", "pins")
    for stream in (True, False):
        assert (await running.chat("hi", session="s", stream=stream)).text == "ok"
    assert await metric(running, "ctxproxy_store_errors_total") == 2


async def test_a_store_that_is_locked_for_long_holds_no_answer_back_and_loses_nothing(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store={"url": "sqlite:///s.db"})
    await running.chat("one", session="s", headers=APPEND)
    await running.settled()
    with contextlib.closing(sqlite3.connect(Path(running.holder.current().data_dir) / "s.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        said = await running.chat("two", session="s", headers=APPEND)  # comes while the lock is held
        assert (said.status, said.text) == (200, "ok")
        other.rollback()
    assert await running.log("s") == ["user: one", "assistant: ok", "user: two", "assistant: ok"]


async def test_a_store_that_is_down_is_told_to_whoever_asks(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    take_down(running)
    async with running.http.get(f"{running.url}/readyz") as ready, running.http.get(f"{running.url}/healthz") as alive:
        assert (ready.status, (await ready.json())["reason"], alive.status) == (503, "the disk is gone", 200)
    status, body = await running.admin("GET", "sessions")
    assert (status, body["error"]["code"]) == (503, "store_unavailable")


BROKEN = [
    "ctxproxy.core.wire.parse",
    "ctxproxy.proxy.reading.front_of",
    "ctxproxy.proxy.exchange.identify",
    "ctxproxy.proxy.identify.derived_name",
    "ctxproxy.proxy.identify.tenant_of",
    "ctxproxy.proxy.exchange.prepare",
    "ctxproxy.proxy.counting.fixed_tokens",
    "ctxproxy.proxy.prepare.budget",
    "ctxproxy.proxy.counting.message_tokens",
    "ctxproxy.proxy.rescue.plan",
    "ctxproxy.proxy.rescue.Rescue._ready",
    "ctxproxy.proxy.attempt.plain_answer",
    "ctxproxy.proxy.attempt.reply_from_body",
    "ctxproxy.proxy.attempt.classify",
    "ctxproxy.proxy.attempt.classify_event",
    "ctxproxy.core.reply.ReplyAssembler.feed",
    "ctxproxy.core.sse.SseReader.feed",
    "ctxproxy.proxy.keeping.settle",
    "ctxproxy.proxy.keeping.background_tip",
    "ctxproxy.proxy.foresight.Foresight.begin",
    "ctxproxy.proxy.window_book.observe",
]
"""Where a fault is put; none of them may reach the client."""


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    def fault(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(request.param, fault)
    yield request.param


@pytest.mark.parametrize("stream", [True, False])
async def test_a_fault_of_ours_reaches_no_client(proxy: StartProxy, upstream: ScriptedUpstream, broken: str, *, stream: bool) -> None:
    running = await proxy(upstream)
    body = json.dumps({"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}).encode()
    said = await running.send(body)
    assert said.status == 200
    assert b"ok" in said.body
    assert [call.body for call in upstream.calls] == [body]
    await running.settled()


@pytest.mark.parametrize("where", ["ctxproxy.proxy.rescue.plan", "ctxproxy.proxy.prepare.budget", "ctxproxy.proxy.identify.derived_name"])
async def test_failing_open_is_said(proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def fault(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(where, fault)
    running = await proxy(upstream)
    said = await running.chat("hi")
    assert (said.text, said.headers["X-Context-Actions"]) == ("ok", "failed_open")
    assert await metric(running, "ctxproxy_failed_open_total") == 1


async def test_a_stage_that_fails_is_left_out_and_the_others_do_their_work(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(CompactToolResults, "propose", fault)
    running = await proxy(upstream, context={"max_tokens": 2000}, summarizer={"kind": "off"})
    upstream.script = Answer("ok")
    long = [{"role": role, "content": f"{n} " + "some words that say little " * 30} for n in range(20) for role in ("user", "assistant")]
    said = await running.chat([*long, {"role": "user", "content": "and now?"}])
    assert said.status == 200
    assert said.actions["failed_compact_tool_results"] >= 1
    assert said.actions["drop_oldest"] >= 1
    assert upstream.calls[0].messages[-1]["content"] == "and now?"


@pytest.mark.parametrize("where", ["ctxproxy.proxy.exchange.context_headers", "ctxproxy.proxy.exchange.final_answer"])
async def test_a_fault_behind_the_answer_is_told_and_leaves_the_server_well(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    running = await proxy(upstream)
    with monkeypatch.context() as broken:
        broken.setattr(where, fault)
        said = await running.chat("hi", stream=True)
        assert (said.status, said.json["error"]["code"]) == (500, "internal_error")
        assert "a fault of ours" not in said.body.decode()
    assert (await running.chat("hi", stream=True)).text == "ok"


async def test_a_fault_within_a_stream_breaks_it_off_and_leaves_the_server_well(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    running = await proxy(upstream)
    with monkeypatch.context() as broken:
        broken.setattr("ctxproxy.proxy.attempt.Pump.rest", fault)
        with pytest.raises(aiohttp.ClientPayloadError):
            await running.chat("hi", stream=True)
    assert (await running.chat("hi", stream=True)).text == "ok"


async def test_errors_are_in_openais_shape(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    for path, status in (("/ctxproxy/none", 404), ("/ctxproxy/api/none", 404), ("/favicon.ico", 404)):
        async with running.http.get(running.url + path) as answer:
            error = (await answer.json())["error"]
            assert (answer.status, set(error)) == (status, {"message", "type", "param", "code"})
    assert upstream.calls == []
