"""The next compaction is worked out in a pause: kept in memory, bounded, gone with what it tells of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ctxproxy.core.records import Foreseen, SessionKey
from ctxproxy.proxy import foresight
from ctxproxy.proxy.foresight import Foresight
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.tasks import Tasks
from tests.core.chains import Step
from tests.core.test_foresight import HISTORY, Policy, foreseen, until_soon
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_background import FILLER, SUMMARY, asked, is_summary
from tests.scripted_upstream import Answer, ScriptedUpstream, Stall

CONTEXT = {"max_tokens": 16_000, "keep_recent_turns": 2}


@pytest.fixture(autouse=True)
def of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "LEAST_TOKENS", 1)


def made_for(running: Running) -> list[Foreseen]:
    return list(running.state.foresight._made.values())


async def grown_until_foreseen(running: Running, upstream: ScriptedUpstream) -> list[dict[str, Any]]:
    """Ask on until the next compaction is foreseen."""
    upstream.script = lambda call: Answer(SUMMARY if is_summary(call) else "an answer")
    history: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for turn in range(200):
        history.append({"role": "user", "content": f"question {turn}: {FILLER}"})
        said = await running.chat(history, session="s")
        history.append(said.message)
        await running.settled()
        if made_for(running):
            assert "summarize" not in said.actions
            return history
    raise AssertionError("nothing was foreseen")


async def test_the_request_that_needs_a_compaction_finds_it_worked_out(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=CONTEXT)
    history = await grown_until_foreseen(running, upstream)
    made = made_for(running)[0]
    for turn in range(3):
        history.append({"role": "user", "content": f"and {turn}: {FILLER}"})
        said = await running.chat(history, session="s")
        history.append(said.message)
        if "summarize" in said.actions:
            break
    frame = next(entry.raw for entry in made.decision.entries if entry.raw and SUMMARY.encode() in entry.raw)
    assert frame in asked(upstream)[-1].body
    assert b"and 0: " in asked(upstream)[-1].body


async def test_as_soon_as_a_summary_is_there_the_decision_made_without_it_is_worked_out_again(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=CONTEXT)
    gate = asyncio.Event()
    upstream.script = lambda call: Stall(gate, Answer(SUMMARY)) if is_summary(call) else Answer("an answer")
    history = [{"role": ("user", "assistant")[n % 2], "content": f"{n} {FILLER}"} for n in range(201)]
    said = await running.chat(history, session="s")
    assert "summarize" in said.actions
    assert made_for(running) == []
    gate.set()
    await running.settled()
    (made,) = made_for(running)
    history += [said.message, {"role": "user", "content": "and now?"}]
    said = await running.chat(history, session="s")
    frame = next(entry.raw for entry in made.decision.entries if entry.raw and SUMMARY.encode() in entry.raw)
    assert frame in asked(upstream)[-1].body
    assert "summarize" in said.actions


async def test_a_summary_that_could_not_be_had_leaves_nothing_to_foresee(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=CONTEXT)
    upstream.script = lambda call: Answer("I cannot.") if is_summary(call) else Answer("an answer")
    history = [{"role": ("user", "assistant")[n % 2], "content": f"{n} {FILLER}"} for n in range(201)]
    assert "summarize" in (await running.chat(history, session="s")).actions
    await running.settled()
    assert made_for(running) == []


async def test_it_goes_with_the_session_and_with_each_message_that_is_forgotten(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=CONTEXT)
    await grown_until_foreseen(running, upstream)
    kept = dict(running.state.foresight._made)
    _, told = await running.admin("GET", "sessions/s/messages")
    await running.admin("DELETE", f"sessions/s/messages/{told['data'][2]['tip']}")
    assert made_for(running) == []
    for name, made in kept.items():
        running.state.foresight._keep(name, made)
    await running.admin("DELETE", "sessions/s")
    assert made_for(running) == []
    assert running.state.foresight._left == foresight.MAX_BYTES


# --- the desk by itself ------------------------------------------------------------------------------------------------------------


async def no_summary() -> None:
    return None


def soon() -> Step:
    return until_soon(Policy(), HISTORY)[0].steps[-1]


async def begun(desk: Foresight, tasks: Tasks, *names: str) -> None:
    step = soon()
    for name in names:
        desk.begin(SessionKey("t", name), step.situation, step.plan, no_summary)
    while tasks._running:
        await asyncio.wait(set(tasks._running))


async def test_the_sessions_that_were_foreseen_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    step = soon()
    size = foresight._size_of(foreseen(step))
    monkeypatch.setattr(foresight, "MAX_BYTES", 2 * size)
    tasks, lull = Tasks(), Lull()
    lull.open()
    desk = Foresight(tasks, lull)
    await begun(desk, tasks, "a", "b", "a", "c")
    assert [name.name for name, _ in desk._made] == ["b", "c"]
    assert desk.of(SessionKey("t", "c"), step.situation.variant) is not None
    assert desk.of(SessionKey("u", "c"), step.situation.variant) is None
    assert desk.of(None, step.situation.variant) is None


async def test_what_is_erased_while_it_is_worked_out_is_not_kept() -> None:
    step, key = soon(), SessionKey("t", "a")
    tasks, lull = Tasks(), Lull()
    desk = Foresight(tasks, lull)
    with lull.request():
        desk.begin(key, step.situation, step.plan, no_summary)
        await asyncio.sleep(0)
        desk.begin(key, step.situation, step.plan, no_summary)
        assert len(tasks._running) == 1
        await desk.erase([key])
    lull.open()
    await asyncio.wait(set(tasks._running))
    assert desk.of(key, step.situation.variant) is None


async def test_no_more_than_some_sessions_wait_for_a_lull(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "MOST_AT_WORK", 1)
    step = soon()
    tasks, lull = Tasks(), Lull()
    desk = Foresight(tasks, lull)
    with lull.request():
        for name in ("a", "b"):
            desk.begin(SessionKey("t", name), step.situation, step.plan, no_summary)
            await asyncio.sleep(0)
        assert len(tasks._running) == 1
    lull.open()
    await asyncio.wait(set(tasks._running))
    assert [name.name for name, _ in desk._made] == ["a"]


async def test_short_histories_are_not_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    step = soon()
    monkeypatch.setattr(foresight, "LEAST_TOKENS", sum(step.situation.counts) + 1)
    tasks = Tasks()
    Foresight(tasks, Lull()).begin(SessionKey("t", "a"), step.situation, step.plan, no_summary)
    assert not tasks._running
