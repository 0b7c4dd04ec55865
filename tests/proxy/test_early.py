"""A request that surely fits by its bytes goes up while its tokens are still being counted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ctxproxy.core.messages import Message
from ctxproxy.core.pasts import Past
from ctxproxy.ports import Tokenizer
from ctxproxy.proxy import counting
from ctxproxy.proxy.counting import Counts
from tests.proxy.conftest import StartProxy
from tests.proxy.running import PATIENCE_S
from tests.scripted_upstream import Answer, ScriptedUpstream, Stall


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Counting waits until this is set, and any is long enough for a thread."""
    monkeypatch.setattr(counting, "THREAD_ABOVE_BYTES", 0)
    opened, prime = asyncio.Event(), Counts.prime

    async def wait(self: Counts, past: Past, leading: Sequence[Message], tokenizer: Tokenizer, model: str) -> None:
        await opened.wait()
        await prime(self, past, leading, tokenizer, model)

    monkeypatch.setattr(Counts, "prime", wait)
    return opened


async def test_what_surely_fits_is_sent_before_it_is_counted(proxy: StartProxy, upstream: ScriptedUpstream, gate: asyncio.Event) -> None:
    upstream.script = [Answer("hello")]
    running = await proxy(upstream)
    asking = asyncio.create_task(running.chat("hi", session="s"))
    async with asyncio.timeout(PATIENCE_S):
        call = await upstream.call(0)
    assert not asking.done()
    gate.set()
    said = await asking
    assert (said.status, said.headers["X-Context-Tokens-In"] > "0", len(upstream.calls)) == (200, True, 1)
    assert b'"hi"' in call.body
    assert await running.log("s") == ["user: hi", "assistant: hello"]


@pytest.mark.parametrize(
    ("context", "content"),
    [
        ({"max_tokens": 200}, "word " * 50),
        ({"max_turns": 3}, "hi"),
        ({"pipeline": [{"stage": "cap_messages"}]}, "hi"),
        ({}, [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}]),
    ],
)
async def test_what_may_have_to_be_changed_is_counted_first(
    proxy: StartProxy, upstream: ScriptedUpstream, gate: asyncio.Event, context: dict[str, Any], content: Any
) -> None:
    upstream.script = [Answer("hello")]
    running = await proxy(upstream, context=context)
    asking = asyncio.create_task(running.chat([{"role": "user", "content": content}], session="s"))
    await asyncio.sleep(0.05)
    assert not upstream.calls
    gate.set()
    assert (await asking).status == 200


async def test_a_client_that_leaves_while_its_request_is_counted_takes_the_call_along(
    proxy: StartProxy, upstream: ScriptedUpstream, gate: asyncio.Event
) -> None:
    never = asyncio.Event()
    upstream.script = Stall(never)
    running = await proxy(upstream)
    asking = asyncio.create_task(running.chat("hi", session="s"))
    call = await upstream.call(0)
    asking.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait([asking])
        await call.gone.wait()
    gate.set()


async def test_the_error_of_an_early_call_is_told_like_any_other(proxy: StartProxy, upstream: ScriptedUpstream, gate: asyncio.Event) -> None:
    running = await proxy(upstream)
    await upstream.stop()
    gate.set()
    said = await running.chat("hi", session="s")
    assert (said.status, said.json["error"]["code"]) == (502, "upstream_unreachable")


async def test_what_is_counted_at_once_and_what_goes_on_from_what_was_counted_waits_for_its_count(
    proxy: StartProxy, upstream: ScriptedUpstream, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "THREAD_ABOVE_BYTES", 10_000)
    long = [{"role": "user", "content": "word " * 5000}]
    running = await proxy(upstream)
    gate.set()
    said = await running.chat(long, session="s")
    gate.clear()
    more = [*long, said.message, {"role": "user", "content": "and?"}]
    asking = [asyncio.create_task(running.chat(messages, session="s")) for messages in ("hi", more)]
    await asyncio.sleep(0.05)
    assert len(upstream.calls) == 1
    gate.set()
    assert [(await one).status for one in asking] == [200, 200]
