"""Export and import of a session: nothing is lost, nothing is half done, nothing is held whole in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.config.schema import Settings
from ctxproxy.core.effects import AppendMessages, CountUse, Effect, Forget, MoveTip, OpenSession, PutCheckpoint, PutPin, PutSummary
from ctxproxy.core.messages import ROOT, identity, next_tip
from ctxproxy.core.records import Pin, StoredMessage
from ctxproxy.core.wire import from_log
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy import exporting
from ctxproxy.proxy.erasing import Eraser
from ctxproxy.proxy.exporting import export_lines
from ctxproxy.proxy.importing import import_session
from ctxproxy.proxy.memory_files import MemoryFiles
from ctxproxy.proxy.sections import sections_of
from ctxproxy.proxy.state import State
from ctxproxy.store import MemoryStore
from tests.contract.samples import KEY, checkpoint, summary
from tests.core.test_portable import texts
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running, path_of
from tests.proxy.test_erasing import EVERYTHING, PLANTED, left, told
from tests.scripted_upstream import ScriptedUpstream

POINT = {"kind": "note", "key": "k", "value": "v", "tip": "", "time": 1, "weight": 1}
FACTS = json.dumps({"record": "facts", "value": [{"number": 1, "point": POINT}] * 2}).encode()


async def exported(running: Running, name: str) -> bytes:
    status, raw = await running.admin("GET", f"{path_of(name)}/export")
    assert status == 200
    return bytes(raw)


async def imported(running: Running, content: bytes, query: str = "", *, status: int = 201) -> Any:
    async with running.http.post(f"{running.url}/ctxproxy/api/import{query}", data=content) as answer:
        value = await answer.json()
        assert answer.status == status, value
        return value


async def test_what_is_exported_erased_and_imported_is_exported_again_alike(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **EVERYTHING)
    asked = await told(running, upstream)
    name = PLANTED["name"]
    await running.chat([*asked[:6], {"role": "user", "content": "another branch\0"}], session=name)
    await running.settled()
    tip = (await running.admin("GET", f"{path_of(name)}/messages"))[1]["data"][-2]["tip"]
    await running.admin("DELETE", f"{path_of(name)}/messages/{tip}")
    await running.chat([*asked, {"role": "user", "content": "on the first one again"}], session=name)
    await running.settled()
    content = await exported(running, name)
    assert {json.loads(line)["record"] for line in content.splitlines()} >= {
        "session",
        "message",
        "checkpoint",
        "summary",
        "pin",
        "note",
        "digest",
        "facts",
    }
    before = await running.session(name)
    view = (await running.admin("GET", f"{path_of(name)}/view"))[1]
    branches = await running.branches(name)
    await running.admin("DELETE", path_of(name))
    assert left(running, "question", "pin") == []
    answer = await imported(running, content)
    assert answer == {"id": before.key.id, "name": name, "tip": before.tip, "messages": before.messages, "known_tenant": True}
    assert await running.session(name) == before
    assert await running.branches(name) == branches
    assert (await running.admin("GET", f"{path_of(name)}/view"))[1] == view
    assert await exported(running, name) == content


async def test_a_session_that_is_there_is_never_overwritten_but_another_name_can_be_given(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("hello", session="s")
    await running.settled()
    content = await exported(running, "s")
    refused = (await imported(running, content, status=409))["error"]
    assert "?as=NAME" in refused["message"]
    assert (await imported(running, content, "?as=copy"))["name"] == "copy"
    assert await running.log("copy") == await running.log("s")
    assert (await imported(running, content, "?as=no%20name", status=400))["error"]["param"] == "as"
    assert (await imported(running, content, "?as=", status=400))["error"]["param"] == "as"


async def test_a_tenant_can_be_chosen_among_those_that_are_there(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running, elsewhere = await proxy(upstream), await proxy(upstream)
    await running.chat("hello", session="s")
    await elsewhere.chat("mine", session="mine")
    await running.settled()
    content = await exported(running, "s")
    assert (await imported(elsewhere, content))["known_tenant"] is False
    own = (await elsewhere.session("mine")).key.tenant
    assert (await imported(elsewhere, content, f"?tenant={own[:8]}"))["id"] == f"{own[:8]}:s"
    await elsewhere.chat("and more", session="s", headers={"X-Context-Mode": "append"})
    assert [message["content"] for message in upstream.calls[-1].messages] == ["hello", "ok", "and more"]
    assert (await imported(elsewhere, content, "?tenant=&as=x", status=404))["error"]["param"] == "tenant"
    assert (await imported(elsewhere, content, "?tenant=zz&as=x", status=404))["error"]["param"] == "tenant"
    await elsewhere.chat("other", session="other", key="sk-other")
    await elsewhere.settled()
    both = {session.key.tenant for session in (await elsewhere.state.store.sessions(10, None, "")).sessions}
    assert len(both) == 3
    elsewhere.state.store.tenants = lambda prefix: asyncio.sleep(0, sorted(both))  # type: ignore[method-assign]
    assert "3 tenants" in (await imported(elsewhere, content, "?tenant=0&as=x", status=409))["error"]["message"]


async def test_a_file_that_was_changed_is_refused_with_its_line_and_leaves_nothing(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("hello", session="s")
    await running.settled()
    content = (await exported(running, "s")).replace(b"hello", b"howdy")
    error = (await imported(running, content, "?as=copy", status=400))["error"]
    assert (error["param"], error["code"]) == ("line 2", "invalid_value")
    assert "does not match its bytes" in error["message"]
    note = json.dumps({"record": "note", "value": {"day": "../../x", "tip": "", "heading": "", "text": ""}}).encode()
    others = [b'{"record":"facts","value":[{}]}', b'{"record":"facts","value":7}', b'{"record":"rating","value":{"rating":9,"text":"","created":1}}']
    others += [b'{"record":"note","value":[]}', b'{"record":"preload","value":{"messages":["e30"]}}', FACTS]
    for bad in (note, note.replace(b"../../x", b"20261130"), *others):
        error = (await imported(running, content.splitlines()[0] + b"\n" + bad, "?as=copy", status=400))["error"]
        assert error["param"] == "line 2"
    assert [session.key.name for session in (await running.state.store.sessions(10, None, "")).sessions] == ["s"]


async def test_a_file_that_is_too_large_is_refused(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, listen={"max_body_mb": 0.001})
    await running.chat("hello", session="s")
    await running.settled()
    content = await exported(running, "s")
    for much in (b" " * 3000, b"\n".join([b" " * 100] * 500)):
        error = (await imported(running, content + much, "?as=copy", status=413))["error"]
        assert "listen.max_body_mb" in error["message"]
    assert (await imported(running, content + b"\n \n", "?as=copy", status=400))["error"]["param"] == "line 5"
    await imported(running, content.rstrip(b"\n"), "?as=copy")


async def test_an_old_session_counts_as_used_now_where_a_sweep_would_take_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("hello", session="s")
    await running.settled()
    content = await exported(running, "s")
    running.state.clock = lambda: 2e9
    await imported(running, content, "?as=copy")
    assert (await running.session("copy")).last_used == 2e9


async def test_a_store_that_fails_in_between_is_left_without_a_part_of_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("hello", session="s")
    await running.settled()
    content, apply, calls = await exported(running, "s"), running.state.store.apply, 0

    async def failing(effects: Any) -> bool:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise StoreUnavailable("the disk is full")
        return await apply(effects)

    running.state.store.apply = failing  # type: ignore[method-assign]
    await imported(running, content, "?as=copy", status=503)
    assert await running.state.store.find("copy") == []


async def test_an_export_comes_page_by_page(proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second page is asked for only when the first one has left."""
    monkeypatch.setattr(exporting, "PAGE_MESSAGES", 1)
    running = await proxy(upstream)
    await running.chat("hello", session="s")
    await running.settled()
    log, gate, sizes = running.state.store.log, asyncio.Event(), []

    async def slow(key: Any, after: int, limit: int) -> Any:
        sizes.append(limit)
        if after:
            await gate.wait()
        return await log(key, after, limit)

    running.state.store.log = slow  # type: ignore[method-assign]
    async with running.http.get(f"{running.url}/ctxproxy/api/sessions/s/export") as answer:
        assert json.loads(await answer.content.readline())["record"] == "session"
        assert json.loads(await answer.content.readline())["message"]["content"] == "hello"
        gate.set()
        assert json.loads((await answer.read()).splitlines()[-1]) == {"record": "end", "lines": 3}
    assert sizes == [1, 1]


# ---------------------------------------------------------------- any session at all


def alone(folder: Path) -> State:
    """What export and import need of a state."""
    store, files = MemoryStore(), MemoryFiles(folder)
    made = {"store": store, "settings": lambda: Settings(data_dir=str(folder)), "clock": lambda: 0.0, "eraser": Eraser(store, [files])}
    return cast("State", SimpleNamespace(**made, sections=sections_of(store, files)))


async def bytes_of(state: State) -> bytes:
    session = await state.store.session(KEY)
    return b"".join([piece async for piece in export_lines(state, session)]) if session else b""


async def in_pieces(content: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


@st.composite
def stored(draw: st.DrawFn) -> list[Effect]:
    """What made a session: a tree of messages, then anything on top of it."""
    rows: dict[str, StoredMessage] = {}
    for text in draw(st.lists(texts, max_size=6)):
        raw = json.dumps({"role": draw(st.sampled_from(["user", "assistant"])), "content": text}, ensure_ascii=draw(st.booleans())).encode(
            "utf-8", "replace"
        )
        parent, message = draw(st.sampled_from([ROOT, *rows])), from_log(raw)
        tip = next_tip(parent, identity(message))
        rows.setdefault(tip, StoredMessage(tip, parent, raw, message.role, len(text), 1.0, draw(st.booleans())))
    tips = st.sampled_from([ROOT, *rows])
    more = st.one_of(
        st.builds(Forget, st.just(KEY), tips.filter(bool) if rows else st.just("ab" * 16), st.booleans()),
        st.builds(PutCheckpoint, st.just(KEY), st.builds(checkpoint, tips, st.just('{"role":"user"}'), texts, st.floats(0, 9))),
        st.builds(PutSummary, st.just(KEY), st.builds(summary, tips, texts, st.sampled_from(["llm", "extractive"]))),
        st.builds(PutPin, st.just(KEY), st.builds(Pin, st.integers(0, 3), texts, st.floats(0, 9))),
        st.builds(CountUse, st.just(KEY), st.integers(0, 5), st.integers(0, 5)),
        st.builds(MoveTip, st.just(KEY), st.none(), tips),
    )
    opened = OpenSession(KEY, draw(st.floats(0, 9)), draw(st.sampled_from(["thin", "full"])), draw(texts), (b"{}",), draw(texts), draw(texts), 3)
    return [opened, AppendMessages(KEY, tuple(rows.values())), *draw(st.lists(more, max_size=8)), OpenSession(KEY, draw(st.floats(9, 99)))]


@given(effects=stored(), size=st.integers(1, 400))
@settings(max_examples=60, deadline=None)
async def test_whatever_a_session_holds_its_second_export_is_its_first(
    tmp_path_factory: pytest.TempPathFactory, effects: list[Effect], size: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    one, other = alone(folder), alone(folder)
    await one.store.apply(effects)
    content = await bytes_of(one)
    done = await import_session(other, in_pieces(content, size), name=None, tenant=None)
    assert done.session == await one.store.session(KEY)
    assert await bytes_of(other) == content
    assert await other.store.leaves(KEY) == await one.store.leaves(KEY)
