"""What was stored before facts were noted is read once, at the first start that notes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy import fact_backfill
from ctxproxy.proxy.claims import claimed
from ctxproxy.proxy.fact_backfill import DONE, MARK, read_earlier
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin import question
from tests.proxy.test_facts import ANN, facts
from tests.scripted_upstream import ScriptedUpstream

STORE = {"store": {"url": "sqlite:///s.db"}}
OFF = {"memory": {"facts": False}, **STORE}
ON = {"memory": {"facts": True}, **STORE}


def mark(running: Running) -> Path:
    return Path(running.holder.current().data_dir) / MARK


async def test_what_was_stored_without_facts_is_read_at_the_first_start_that_notes_them_and_no_more(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await proxy(upstream, **OFF)
    for session, text in (("s", "My name is Ann. The budget is 4,500 €."), ("t", "The budget is now 5,000 €."), ("empty", "hm")):
        await running.chat([question(text)], session=session, headers=ANN)
    assert await facts(running) == {}
    assert not mark(running).exists()
    with mark(running).open("wb") as other:
        assert claimed(other.fileno())
        await running.restart(**ON)
        assert await facts(running) == {}, "another process is at it"
    await running.restart(**ON)
    assert {"name": "Ann", "budget": "4,500 €"}.items() <= (await facts(running)).items()
    assert (await facts(running, "users/ann/facts"))["budget"] == "5,000 €"
    assert mark(running).read_bytes() == DONE
    await running.restart(**OFF)
    await running.chat([question("The limit is 7 days.")], session="late")
    await running.restart(**ON)
    assert await facts(running, "sessions/late/facts") == {}


async def test_a_session_that_has_facts_is_left_as_it_is_and_of_a_long_one_the_newest_is_read(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fact_backfill, "MOST_BYTES", 200)
    monkeypatch.setattr(fact_backfill, "PAGE", 1)
    running = await proxy(upstream, **ON)
    await running.chat([question("My name is Ann.")], session="known")
    await facts(running, "sessions/known/facts")
    await running.restart(**OFF)
    mark(running).unlink()
    long = [question("My name is Bob. " + "x" * 200), {"role": "assistant", "content": "ok"}, question("The budget is 4,500 €.")]
    await running.chat(long, session="long")
    await running.chat([question("My name is Ann."), {"role": "assistant", "content": "ok"}, question("The budget is 9 €.")], session="known")
    await running.restart(**ON)
    long_facts, known_facts = await facts(running, "sessions/long/facts"), await facts(running, "sessions/known/facts")
    assert ("budget" in long_facts, "name" in long_facts) == (True, False)
    assert ("budget" in known_facts, "name" in known_facts) == (False, True)


async def test_what_breaks_off_is_begun_anew_at_the_next_start(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await proxy(upstream, **ON)
    await running.settled()
    mark(running).unlink()

    async def broken(*_: object) -> None:
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(running.state.store, "sessions", broken)
    await read_earlier(running.state.store, running.state.facts, mark(running).parent)
    assert "earlier conversations could not be read for facts" in caplog.text
    assert mark(running).read_bytes() == b""
