"""What was stored and not read for facts is read at the next start that notes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxproxy.core.effects import AppendMessages, MoveTip, OpenSession
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy import fact_backfill
from ctxproxy.proxy.catching_up import CLAIM
from ctxproxy.proxy.claims import Claims
from ctxproxy.proxy.counting import Readings
from ctxproxy.proxy.fact_backfill import read_earlier
from ctxproxy.proxy.fact_desk import FactDesk
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.store.memory import MemoryStore
from ctxproxy.store.sqlite_facts import SqliteFacts
from tests.contract.samples import KEY, chain
from tests.proxy.conftest import StartProxy
from tests.proxy.test_admin import question
from tests.proxy.test_facts import ANN, facts
from tests.scripted_upstream import ScriptedUpstream

STORE = {"store": {"url": "sqlite:///s.db"}}
OFF = {"memory": {"facts": False}, **STORE}
ON = {"memory": {"facts": True}, **STORE}
OK = {"role": "assistant", "content": "ok"}


async def test_what_was_stored_without_facts_is_read_at_the_next_start_that_notes_them(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **OFF)
    for session, text in (("s", "My name is Ann. The budget is 4,500 €."), ("t", "The budget is now 5,000 €."), ("empty", "hm")):
        await running.chat([question(text)], session=session, headers=ANN)
    assert await facts(running) == {}
    with Claims(Path(running.holder.current().data_dir)).tried(CLAIM):
        await running.restart(**ON)
        assert await facts(running) == {}, "another process is at it"
    await running.restart(**ON)
    assert {"name": "Ann", "budget": "4,500 €"}.items() <= (await facts(running)).items()
    assert (await facts(running, "users/ann/facts"))["budget"] == "5,000 €"


async def test_what_waited_when_the_process_died_is_read_at_the_next_start_and_nothing_before_it_again(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="ctxproxy")
    running = await proxy(upstream, **ON)
    await running.chat([question("My name is Ann.")], session="s")
    assert (await facts(running))["name"] == "Ann"
    running.state.facts._add = lambda *_: None  # type: ignore[method-assign]  # it ends before it has read what comes now
    await running.chat([question("My name is Ann."), OK, question("My dog is called Zebulon.")], session="s")
    assert "dog" not in str(await facts(running))
    await running.restart(**ON)
    assert {"Ann", "Zebulon"} <= set((await facts(running)).values())
    assert "1 earlier conversations were read for facts" in caplog.text
    caplog.clear()
    await running.restart(**ON)
    await running.settled()
    assert "earlier conversations" not in caplog.text


async def test_of_a_long_conversation_the_newest_is_read_and_of_one_that_was_read_only_what_came_since(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fact_backfill, "MOST_BYTES", 200)
    running = await proxy(upstream, **ON)
    await running.chat([question("My name is Ann.")], session="known")
    (old,) = (await facts(running, "sessions/known/facts")).items()
    await running.restart(**OFF)
    await running.chat([question("My name is Bob. " + "x" * 200), OK, question("The budget is 4,500 €.")], session="long")
    await running.chat([question("My name is Ann."), OK, question("The budget is 9 €.")], session="known")
    await running.restart(**ON)
    long_facts, known_facts = await facts(running, "sessions/long/facts"), await facts(running, "sessions/known/facts")
    assert ("budget" in long_facts, "name" in long_facts) == (True, False)
    assert known_facts["budget"] == "9 €"
    assert old == ("name", known_facts["name"])


async def test_a_newest_message_that_is_too_much_by_itself_is_read_and_does_not_wait_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_backfill, "MOST_BYTES", 50)
    store, tasks, lull, rows = MemoryStore(), Tasks(), Lull(), chain("hi", "My name is Ann. " + "x" * 50)
    await store.apply([OpenSession(KEY, 1.0), AppendMessages(KEY, tuple(rows)), MoveTip(KEY, None, rows[1].tip)])
    lull.open()
    await read_earlier(store, FactDesk(store, Readings(1000), Metrics(), tasks, lull))
    assert [one.point.value for one in await store.facts.of(KEY) if one.point.key == "name"] == ["Ann"]
    assert await store.facts.unread(9) == []
    await tasks.close(10.0)


async def test_what_breaks_off_goes_on_at_the_next_start(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await proxy(upstream, **OFF)
    await running.chat([question("My name is Ann.")], session="s")

    async def broken(*_: object) -> None:
        raise StoreUnavailable("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteFacts, "unread", broken)
        await running.restart(**ON)
        await running.settled()
    assert "facts could not be caught up with: the disk is gone" in caplog.text
    await running.restart()
    assert (await facts(running))["name"] == "Ann"
