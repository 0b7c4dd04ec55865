"""Thin clients live by what is stored: where nothing can be kept, they are told so; and what they say of a message is kept with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy import health
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_faults_of_ours import APPEND, take_down
from tests.scripted_upstream import ScriptedUpstream


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """`[True]` makes every write fail."""
    yield [False]


def fill(running: Running, full: list[bool]) -> None:
    write = running.state.store.apply

    async def apply(effects: Any) -> bool:
        if full[0]:
            raise StoreUnavailable("the disk is full")
        return await write(effects)

    running.state.store.apply = apply  # type: ignore[method-assign]


async def readiness(running: Running) -> int:
    async with running.http.get(f"{running.url}/readyz") as answer:
        return answer.status


async def test_after_a_failed_write_thin_clients_wait_until_writing_works_again(
    proxy: StartProxy, upstream: ScriptedUpstream, full_disk: list[bool]
) -> None:
    running = await proxy(upstream)
    fill(running, full_disk)
    await running.chat("one", session="s", headers=APPEND)
    full_disk[0] = True
    assert (await running.chat("two", session="s", headers=APPEND)).status == 200
    await running.settled()
    assert await readiness(running) == 503
    refused = await running.chat("three", session="s", headers=APPEND)
    assert (refused.status, refused.json["error"]["code"], len(upstream.calls)) == (503, "store_unavailable", 2)
    full_disk[0] = False
    assert (await running.chat("three", session="s", headers=APPEND)).status == 200
    assert await running.log("s") == ["user: one", "assistant: ok", "user: three", "assistant: ok"]
    assert await readiness(running) == 200


async def test_a_failed_write_is_forgotten_after_a_while_so_that_requests_come_and_show(
    proxy: StartProxy, upstream: ScriptedUpstream, full_disk: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream)
    fill(running, full_disk)
    full_disk[0] = True
    await running.chat("one", session="s")
    await running.settled()
    assert await readiness(running) == 503
    monkeypatch.setattr(health, "BELIEVED_S", 0.0)
    assert await readiness(running) == 200


async def test_a_session_seen_to_be_thin_is_not_passed_on_without_its_history(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("one", session="s")
    await running.settled()
    assert (await running.chat("two", session="s")).status == 200
    assert [m["content"] for m in upstream.calls[-1].messages] == ["one", "ok", "two"]
    await running.settled()
    take_down(running)
    said = await running.chat("three", session="s")
    assert (said.status, said.json["error"]["code"], len(upstream.calls)) == (503, "store_unavailable", 2)
    assert (await running.chat("hello", session="another")).status == 200


async def test_append_needs_a_name(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    said = await running.chat("hi", headers=APPEND)
    assert (said.status, said.json["error"]["param"], upstream.calls) == (400, "X-Session-Id", [])


async def test_the_header_of_the_answer_has_the_configured_name(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, sessions={"header": "X-Chat"})
    said = await running.chat("hi", headers={"X-Chat": "s"})
    assert said.headers["X-Chat"] == "s"
    assert "X-Session-Id" not in said.headers


async def test_what_a_thin_client_says_of_a_message_is_kept_with_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    note = {"role": "user", "content": "only for now", "x_context": {"expire_after_turns": 1}}
    await running.chat([note], session="s", headers=APPEND)
    assert [m["content"] for m in upstream.calls[-1].messages] == ["only for now"]
    await running.settled()
    await running.chat("and then?", session="s", headers=APPEND)
    gap, *rest = [m["content"] for m in upstream.calls[-1].messages]
    assert (gap.startswith("[part of the earlier conversation"), rest) == (True, ["ok", "and then?"])
    assert "x_context" not in upstream.calls[-1].body.decode()
    await running.settled()
    status, body = await running.admin("GET", "sessions/s/messages")
    assert (status, body["data"][0]["message"], body["data"][0]["state"]) == (200, {"role": "user", "content": "only for now"}, "dropped")


async def test_a_message_lives_as_long_as_it_was_given(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    history: list[dict[str, Any]] = []
    seen = []
    for turn in range(4):
        says = {"x_context": {"expire_after_turns": 2}} if turn == 0 else {}
        history.append({"role": "user", "content": f"turn {turn}", **says})
        history.append((await running.chat(history, session="s")).message)
        seen.append("turn 0" in upstream.calls[-1].body.decode())
        await asyncio.sleep(0)
    assert seen == [True, True, False, False]
