"""What was under way behind the answers when the process was killed is done at the next start, once, and nothing that was paid for is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as with_keys

from ctxproxy import wiring
from ctxproxy.core.memory_notes import Note, notes_in
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy import preloading
from ctxproxy.proxy.catching_up import CLAIM, catch_up
from ctxproxy.proxy.claims import Claims
from ctxproxy.proxy.notes import Notes
from ctxproxy.store.sqlite import SqliteStore
from ctxproxy.workers import Seat
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin import got
from tests.proxy.test_background import SUMMARY, is_summary, scripted, talk
from tests.proxy.test_facts import summary_with
from tests.proxy.test_memory_files import DROPPING, folder_of, written
from tests.proxy.test_preload import user
from tests.scripted_upstream import Answer, Received, ScriptedUpstream, Stall

SQLITE = {"store": {"url": "sqlite:///s.db"}}
SUMMARIZED = {"context": {"max_tokens": 4000, "pipeline": [{"stage": "summarize", "fill": False}]}, **SQLITE}
WITH_POINTS = {**SUMMARIZED, "summarizer": {"memory_points": True}}
EVENTS = {"context": DROPPING, "memory": {"daily_text": "events"}, **SQLITE}
SEARCHED = {"retrieval": {"kind": "keyword"}, **SQLITE}
BY_TRAIN = summary_with({"memory_points": [{"kind": "decision", "key": "Way", "value": "by train"}]})
ANN = {"X-User-Id": "ann"}


async def ways(running: Running) -> list[str]:
    """The memory points of the session that a summary told."""
    await running.settled()
    return [one["value"] for one in (await got(running, "sessions/s/facts?kind=decision"))["data"] if one["source"] == "summary"]


def notes(running: Running) -> list[Note]:
    return [note for file in written(folder_of(running)) for note in notes_in(file.read_text())]


async def found(running: Running, term: str, session: str = "s") -> list[int]:
    """The parts of the search index of a session that hold a term; those of summaries count below 0."""
    key = (await running.session(session)).key
    return [posting.place[1] for posting in (await running.state.store.chunks.postings(key, [term])).by_term.get(term, ())]


async def is_done(running: Running) -> bool:
    await running.settled()
    return not await running.state.store.dues(9)


# ---------------------------------------------------------------- points that came with a summary


async def killed_with_points(proxy: StartProxy, upstream: ScriptedUpstream, **then: Any) -> Running:
    """A proxy that was killed when a summary was stored and its points were not kept yet."""
    running = await proxy(upstream, **WITH_POINTS)
    upstream.script = lambda call: BY_TRAIN if is_summary(call) else Answer("ok")
    running.state.facts._add = lambda *_: None  # type: ignore[method-assign]
    await running.chat(talk(40), session="s")
    await running.settled()
    assert len((await got(running, "sessions/s"))["summaries"]) == 1
    assert await ways(running) == []
    await running.kill(**then)
    return running


async def test_points_of_a_summary_are_kept_though_the_process_was_killed_before(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await killed_with_points(proxy, upstream)
    calls = len(upstream.calls)
    assert await ways(running) == ["by train"]
    assert (await is_done(running), len(upstream.calls)) == (True, calls)


async def test_points_that_are_kept_twice_are_there_once(proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    running = await killed_with_points(proxy, upstream)
    ((key, due),) = await running.state.store.dues(9) or [(None, None)]
    assert await ways(running) == ["by train"]
    assert key and due
    monkeypatch.setattr(running.state.store, "dues", lambda _: asyncio.sleep(0, [(key, due)]))
    await catch_up(running.state)
    assert await ways(running) == ["by train"]


async def test_points_wait_while_no_facts_are_wanted(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await killed_with_points(proxy, upstream, memory={"facts": False})
    assert not await is_done(running)
    await running.restart(memory={"facts": True})
    assert await ways(running) == ["by train"]


async def test_points_go_with_a_message_that_their_summary_may_tell_of(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await killed_with_points(proxy, upstream, memory={"facts": False})
    session = await running.session("s")
    first = (await running.state.store.history(session.key, session.tip))[0]
    await running.state.eraser.message(session.key, first, erase=True)
    await running.restart(memory={"facts": True})
    assert await ways(running) == []
    assert await is_done(running)


# ---------------------------------------------------------------- a summary that the first request waits for


async def test_a_first_requests_summary_is_not_asked_for_again_though_the_process_was_killed_before_the_answer(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await proxy(upstream, **{**SUMMARIZED, "summarizer": {"background": False}})
    asking = asyncio.Event()

    def script(call: Received) -> Answer | Stall:
        if is_summary(call):
            return Answer(SUMMARY)
        asking.set()
        return Stall(asyncio.Event(), Answer("too late"))

    upstream.script = script
    chatting = asyncio.create_task(running.chat(talk(40), session="s", headers=ANN))
    await asking.wait()
    await running.kill()
    await asyncio.gather(chatting, return_exceptions=True)
    upstream.script = scripted
    said = await running.chat(talk(40), session="s", headers=ANN)
    assert said.actions["summarize"]
    assert SUMMARY in str(upstream.calls[-1].messages)
    assert sum(map(is_summary, upstream.calls)) == 1
    assert len(await running.branches("s")) == 1


# ---------------------------------------------------------------- notes in memory files


def stalling(call: Received) -> Answer | Stall:
    return Stall(asyncio.Event(), Answer("- They chose db-9.")) if is_summary(call) else Answer("an answer")


@pytest.mark.parametrize("keys", [EVENTS, SUMMARIZED])
async def test_a_note_under_way_is_written_at_the_next_start_once(proxy: StartProxy, upstream: ScriptedUpstream, keys: dict[str, Any]) -> None:
    running = await proxy(upstream, **keys)
    upstream.script = stalling
    await running.chat(talk(40), session="s", headers=ANN)
    assert notes(running) == []
    await running.kill()
    assert await is_done(running)
    (note,) = notes(running)
    assert note.heading.startswith("Trimmed ")
    assert "question" in note.text
    assert written(folder_of(running))[0].parent.name == "@ann"
    await running.restart()
    assert len(notes(running)) == 1


async def test_a_compaction_by_hand_is_noted_though_the_process_was_killed(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream, **SQLITE)
    await running.chat(talk(40), session="s")
    await running.settled()
    with monkeypatch.context() as patched:
        patched.setattr(Notes, "begin", lambda *_: None)
        assert (await running.admin("POST", "sessions/s/manage", {}))[0] == 200
    assert notes(running) == []
    await running.kill()
    assert await is_done(running)
    assert [note.heading.partition(" ")[0] for note in notes(running)] == ["Compacted"]


async def test_a_note_that_another_process_is_writing_is_left_to_it(proxy: StartProxy, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    gate = asyncio.Event()
    shared = {**EVENTS, "data_dir": str(tmp_path / "shared")}
    running = await proxy(upstream, **shared)
    upstream.script = lambda call: Stall(gate, Answer("- They chose db-9.")) if is_summary(call) else Answer("an answer")
    await running.chat(talk(40), session="s")
    other = await proxy(upstream, **shared)
    await other.settled()
    assert notes(other) == []
    gate.set()
    assert await is_done(running)
    assert [note.text for note in notes(other)] == ["- They chose db-9."]


@pytest.mark.parametrize("gone", ["session", "wanted"])
async def test_a_note_that_nobody_wants_any_more_is_not_written(proxy: StartProxy, upstream: ScriptedUpstream, gone: str) -> None:
    running = await proxy(upstream, **EVENTS)
    upstream.script = stalling
    await running.chat(talk(40), session="s")
    await running.kill(memory={"daily_files": False}) if gone == "wanted" else await running.admin("DELETE", "sessions/s")
    assert await is_done(running) if gone == "wanted" else await running.state.store.dues(9) == []
    await running.kill(memory={})
    await running.settled()
    assert notes(running) == []


async def test_a_note_that_cannot_be_written_waits_for_the_next_start(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=DROPPING, **SQLITE)
    folder_of(running).write_text("a file where the folder should be")
    await running.chat(talk(40), session="s")
    assert not await is_done(running)
    folder_of(running).unlink()
    await running.restart()
    assert await is_done(running)
    assert len(notes(running)) == 1


# ---------------------------------------------------------------- the search index


async def test_messages_and_summaries_that_were_not_indexed_are_found_by_other_sessions_after_the_next_start(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await proxy(upstream, context={"max_tokens": 4000, "pipeline": [{"stage": "summarize"}]}, **SEARCHED)
    upstream.script = scripted
    running.state.index._begin = lambda: None  # type: ignore[method-assign]
    await running.chat(talk(40), session="s", headers=ANN)
    await running.chat("A zebra stood in the yard.", session="t", headers=ANN)
    await running.settled()
    assert (await found(running, "row"), await found(running, "zebra", "t")) == ([], [])
    await running.kill()
    assert ({*await found(running, "row")}, await found(running, "zebra", "t")) == ({-1}, [0])
    assert await running.state.store.chunks.behind(9) == []


async def test_a_branch_is_caught_up_with_from_where_it_is_not_in_the_index(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **SEARCHED)
    await running.chat("hello", session="s")
    await running.settled()
    running.state.index._begin = lambda: None  # type: ignore[method-assign]
    for text in ("a zebra", "a zebu"):
        await running.chat([user("hello"), {"role": "assistant", "content": "ok"}, user(text)], session="s")
    await running.settled()
    await running.kill()
    assert [len(await found(running, term)) for term in ("hello", "zebra", "zebu")] == [1, 1, 1]
    session = await running.session("s")
    pieces = await running.state.store.chunks.indexed(session.key)
    store = running.state.store
    histories = [await store.history(session.key, leaf) for leaf in await store.leaves(session.key)]
    assert {row.tip for rows in histories for row in rows} == pieces


async def test_nothing_is_indexed_where_nothing_is_retrieved(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **SQLITE)
    await running.chat("a zebra", session="s")
    await running.kill()
    assert await found(running, "zebra") == []


# ---------------------------------------------------------------- what later sessions begin with


@pytest.mark.parametrize(("sessions", "told"), [(3, True), (0, False)])
async def test_what_later_sessions_begin_with_is_made_up_for(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, sessions: int, *, told: bool
) -> None:
    running = await proxy(upstream, memory={"preload": {"sessions": sessions}}, **SQLITE)
    with monkeypatch.context() as patched:
        patched.setattr(preloading, "_is_due", lambda *_: False)
        for session, headers in (("s", ANN), ("t", {})):
            await running.chat("The host is db-9.example.net, never touch it.", session=session, headers=headers)
        await running.settled()
    await running.kill()
    digests = [await running.state.store.carryover.digest((await running.session(name)).key) for name in ("s", "t")]
    assert [one is not None for one in digests] == [told, False]


# ---------------------------------------------------------------- who does it, and what breaks off


async def test_every_worker_catches_up_when_it_is_started_unless_another_one_is_at_it(
    proxy: StartProxy, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    running = await killed_with_points(proxy, upstream, memory={"facts": False})
    settings = running.holder.current()
    wanted = with_keys(settings, memory=with_keys(settings.memory, facts=True))
    await running.stop()

    async def dues_after_a_start() -> int:
        async with wiring.running_state(lambda: wanted, Seat(1, 0.0, (), tmp_path, -1, lambda: None)) as state:
            while state.tasks._running:
                await asyncio.wait(state.tasks._running)
            return len(await state.store.dues(9))

    with Claims(Path(settings.data_dir)).tried(CLAIM):
        assert await dues_after_a_start() == 1
    assert await dues_after_a_start() == 0


async def test_what_breaks_off_is_told_and_keeps_nothing_else_from_being_done(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await proxy(upstream, **SEARCHED)
    running.state.index._begin = lambda: None  # type: ignore[method-assign]
    await running.chat("a zebra", session="s")

    async def broken(*_: object) -> None:
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(SqliteStore, "dues", broken)
    await running.kill()
    assert await found(running, "zebra") == [0]
    told = [line.getMessage() for line in caplog.records if "caught up" in line.getMessage()]
    assert told == [f"{name} could not be caught up with: the disk is gone" for name in ("facts", "memory files")]
