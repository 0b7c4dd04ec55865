"""003-40: a new session of a known user starts with a block of what is remembered, once, at a stable place, and nobody else's."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.core.memory_points import HEADINGS
from ctxproxy.errors import StoreUnavailable
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin import got
from tests.proxy.test_admin_changes import holding
from tests.proxy.test_background import FILLER, SUMMARY, scripted, talk
from tests.scripted_upstream import Answer, Overflow, ScriptedUpstream

ANN = {"X-User-Id": "ann"}
SQLITE = {"url": "sqlite:///s.db"}
TITLE = "[Background: remembered from earlier conversations with this user, not a new request]"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def told(running: Running, *sessions: str, headers: dict[str, str] = ANN) -> None:
    """Short sessions of a user, one after the other, each with a host of its own."""
    for name in sessions:
        await running.chat(f"The host of {name} is db-{name}.example.net, never touch it.", session=name, headers=headers)
        await running.settled()


async def test_003_40_a_new_session_starts_with_the_last_three_sessions_once_at_its_head(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await told(running, "one", "two", "three", "four")
    first = [{"role": "system", "content": "Be brief."}, user("hello")]
    said = await running.chat(first, session="new", headers=ANN)
    assert said.actions == {"preload": 1}
    system, block, noted, asked = upstream.calls[-1].messages
    assert (system, asked) == (first[0], first[1])
    assert noted["role"] == "assistant"
    assert block["content"].startswith(TITLE)
    sessions = block["content"].partition("Earlier conversations, the newest first:")[2]
    assert re.findall(r"db-(\w+)", sessions) == ["four", "three", "two"]
    assert int(said.headers["X-Context-Tokens-Sent"]) > 60


@pytest.mark.parametrize("append", [True, False])
async def test_the_block_is_the_same_at_every_request_whatever_is_said_elsewhere_and_after_a_restart(
    proxy: StartProxy, upstream: ScriptedUpstream, *, append: bool
) -> None:
    running = await proxy(upstream, store=SQLITE)
    await told(running, "one", "two")
    headers = {**ANN, **({"X-Context-Mode": "append"} if append else {})}
    history: list[dict[str, Any]] = []
    sent = []
    for turn in range(4):
        history.append(user(f"question {turn}"))
        said = await running.chat(history[-1:] if append else history, session="new", headers=headers)
        history.append(said.message)
        await running.settled()
        sent.append(upstream.calls[-1].body)
        await told(running, f"later {turn}".replace(" ", "-"))
        if turn == 1:
            await running.restart()
    arrays = [body[body.index(b'"messages"') : body.rindex(b"]")].replace(b'": [', b'":[').replace(b"}, {", b"},{") for body in sent]
    assert all(later.startswith(earlier) for earlier, later in pairwise(arrays))
    assert TITLE.encode() in arrays[0]
    assert TITLE not in str(await running.log("new"))


async def test_a_fork_begins_as_its_session_did(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await told(running, "one")
    said = await running.chat([user("hello")], session="new", headers=ANN)
    await running.settled()
    first = upstream.calls[-1].messages
    _, fork = await running.admin("POST", "sessions/new/fork", {})
    await running.chat([user("hello"), said.message, user("and now?")], session=fork["name"])
    assert upstream.calls[-1].messages[: len(first)] == first
    assert first[0]["content"].startswith(TITLE)


async def test_two_first_requests_at_once_start_alike(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store=SQLITE)
    await told(running, "one")
    await asyncio.gather(*(running.chat(f"hello {n}", session="new", headers=ANN) for n in range(4)))
    assert len({str(call.messages[0]) for call in upstream.calls[-4:]}) == 1
    assert upstream.calls[-1].messages[0]["content"].startswith(TITLE)


@pytest.mark.parametrize(
    ("headers", "key", "sections"),
    [
        ({"X-User-Id": "bob"}, "sk-tested", {}),
        ({}, "sk-tested", {}),
        (ANN, "sk-another", {}),
        (ANN, "sk-tested", {"memory": {"preload": {"sessions": 0, "chunks": 0}}}),
        (ANN, "sk-tested", {"context": {"preset": "off"}}),
        (ANN, "sk-tested", {"context": {"observe": True}}),
    ],
)
async def test_nobody_elses_past_and_none_where_it_is_not_wanted(
    proxy: StartProxy, upstream: ScriptedUpstream, headers: dict[str, str], key: str, sections: dict[str, Any]
) -> None:
    running = await proxy(upstream, **sections)
    await told(running, "one")
    said = await running.chat("hello", session="new", headers=headers, key=key)
    assert upstream.calls[-1].body == said.sent


async def test_a_session_that_was_there_before_and_a_conversation_that_began_elsewhere_go_on_byte_for_byte(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await proxy(upstream)
    await told(running, "one", "two")
    for session in ("one", "from-elsewhere"):
        said = await running.chat([user("a"), {"role": "assistant", "content": "b"}, user("c")], session=session, headers=ANN)
        assert upstream.calls[-1].body == said.sent


async def test_a_models_summary_tells_of_its_session(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 4000, "pipeline": [{"stage": "summarize"}]})
    upstream.script = scripted
    await running.chat(talk(40), session="long", headers=ANN)
    await running.settled()
    await running.chat("hello", session="new", headers=ANN)
    assert SUMMARY in upstream.calls[-1].messages[0]["content"]


async def test_what_is_known_of_the_user_stands_first_and_a_fact_that_is_erased_goes_from_there_too(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await proxy(upstream, store=SQLITE)
    await running.chat("My name is Zebrafinch. I prefer answers in French from now on.", session="one", headers=ANN)
    await running.settled()
    await running.chat("hello", session="new", headers=ANN)
    block = upstream.calls[-1].messages[0]["content"]
    assert HEADINGS["en"] in block
    assert "French" in block[block.index(HEADINGS["en"]) : block.index("Earlier conversations")]
    number = (await got(running, "sessions/one/facts"))["data"][0]["n"]
    await got(running, f"sessions/one/facts/{number}", "DELETE")
    await running.chat([user("hello"), {"role": "assistant", "content": "ok"}, user("again")], session="new", headers=ANN)
    assert TITLE not in str(upstream.calls[-1].messages)


async def test_what_is_erased_is_taken_out_of_what_other_sessions_began_with(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store=SQLITE)
    await told(running, "one")
    await running.chat("hello", session="new", headers=ANN)
    await running.settled()
    folder = Path(running.holder.current().data_dir)
    assert holding(folder, "db-one.example.net")
    await got(running, "sessions/one", "DELETE")
    assert holding(folder, "db-one.example.net") == []
    said = await running.chat([user("hello"), {"role": "assistant", "content": "ok"}, user("again")], session="new", headers=ANN)
    assert upstream.calls[-1].body == said.sent


async def test_the_view_shows_the_block_and_the_stored_system_message_is_the_clients(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await told(running, "one")
    await running.chat([{"role": "system", "content": "Be brief."}, user("hello")], session="new", headers=ANN)
    await running.settled()
    shown = (await got(running, "sessions/new/view"))["messages"]
    assert [entry["stage"] for entry in shown] == [None, "preload", "preload", None, None]
    assert len((await running.session("new")).system) == 1


async def test_a_window_that_turns_out_small_is_not_filled_with_the_past(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    for name in ("one", "two", "three"):
        await running.chat(f"{name}: {FILLER}{' '.join(f'host db-{n}.example.net' for n in range(200))}", session=name, headers=ANN)
        await running.settled()
    refused = iter([Overflow(1000, requested=3000)])
    upstream.script = lambda call: next(refused, Answer("an answer"))
    said = await running.chat("hello", session="new", headers=ANN)
    await running.settled()
    assert said.status == 200
    assert TITLE in str(upstream.calls[-2].messages)
    assert upstream.calls[-1].messages == [user("hello")]
    again = [user("hello"), said.message, user("again")]
    await running.chat(again, session="new", headers=ANN)
    assert upstream.calls[-1].messages == again


async def test_a_store_that_cannot_write_lets_the_session_begin_without(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await proxy(upstream)
    await told(running, "one")

    async def refused(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(running.state.store.carryover, "begin", refused)
    said = await running.chat("hello", session="new", headers=ANN)
    assert upstream.calls[-1].body == said.sent
    assert "begins without what is remembered of its user: the disk is full" in caplog.text
