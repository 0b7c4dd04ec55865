"""The next compaction is worked out in a pause: kept in memory, bounded, gone with what it tells of."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest

from ctxproxy.core import foresight as core
from ctxproxy.core.effects import Forget, OpenSession
from ctxproxy.core.records import Foreseen, FrozenEntry, LeftOut, SessionKey
from ctxproxy.proxy import foresight
from ctxproxy.proxy.foresight import Foresight
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.store import MemoryStore
from tests.core.chains import Step
from tests.core.test_foresight import HISTORY, LIMIT, Policy, foreseen, until_soon
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
        running.state.foresight._keep(name, made, 0)
    await running.admin("DELETE", "sessions/s")
    assert made_for(running) == []
    assert running.state.foresight._left == foresight.MAX_BYTES


async def test_a_message_that_is_erased_while_an_answer_is_awaited_is_not_told_of_in_memory(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=CONTEXT)
    history = await grown_until_foreseen(running, upstream)
    _, told = await running.admin("GET", "sessions/s/messages")
    gate = asyncio.Event()
    upstream.script = Stall(gate, Answer("an answer"))
    asking = asyncio.create_task(running.chat(history[:-1], session="s"))  # the same request again
    await upstream.call(len(upstream.calls))
    await running.admin("DELETE", f"sessions/s/messages/{told['data'][2]['tip']}?erase=true")
    gate.set()
    await asking
    await running.settled()
    assert made_for(running) == []


# --- the desk by itself ------------------------------------------------------------------------------------------------------------


async def no_summary() -> None:
    return None


def soon() -> Step:
    return until_soon(Policy(), HISTORY)[0].steps[-1]


async def desk_of(tasks: Tasks, lull: Lull, *names: str) -> Foresight:
    """A desk, and a store with these sessions."""
    store = MemoryStore()
    await store.apply([OpenSession(SessionKey("t", name), 1.0) for name in names])
    return Foresight(store, tasks, lull)


async def begun(desk: Foresight, tasks: Tasks, *names: str, step: Step | None = None) -> None:
    step = step or soon()
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
    desk = await desk_of(tasks, lull, "a", "b", "c")
    await begun(desk, tasks, "a", "b", "a", "c")
    assert [name.name for name, _ in desk._made] == ["b", "c"]
    assert desk.of(SessionKey("t", "c"), step.situation.variant) is not None
    assert desk.of(SessionKey("u", "c"), step.situation.variant) is None
    assert desk.of(None, step.situation.variant) is None


async def test_what_is_erased_while_it_is_worked_out_is_not_kept() -> None:
    step, key = soon(), SessionKey("t", "a")
    tasks, lull = Tasks(), Lull()
    desk = await desk_of(tasks, lull, "a")
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
    desk = await desk_of(tasks, lull, "a", "b")
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
    desk = await desk_of(tasks, Lull(), "a")
    desk.begin(SessionKey("t", "a"), step.situation, step.plan, no_summary)
    assert not tasks._running


async def test_what_was_forgotten_or_erased_before_it_begins_is_not_kept() -> None:
    step = soon()
    tasks, lull = Tasks(), Lull()
    lull.open()
    desk = await desk_of(tasks, lull, "a")
    tip = step.situation.reconciled.tips[3]
    await desk._store.apply([Forget(SessionKey("t", "a"), tip)])
    await begun(desk, tasks, "a", "b", step=step)
    assert not desk._made
    await begun(desk, tasks, "a", step=replace(step, situation=replace(step.situation, forgotten=frozenset({tip}))))
    assert len(desk._made) == 1


async def test_nothing_is_tried_again_in_vain_until_some_more_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(core, "foresee", lambda s, _: tried.append(len(s.counts)))
    chain, end = until_soon(Policy(), HISTORY)
    tasks, lull, key = Tasks(), Lull(), SessionKey("t", "a")
    lull.open()
    desk = await desk_of(tasks, lull, "a")
    later = Step(chain.situation(HISTORY[: end + 2], LIMIT), chain.steps[-1].plan)
    much = Step(chain.situation(HISTORY[: end + 10], LIMIT), chain.steps[-1].plan)
    for step in (chain.steps[-1], later, much, chain.steps[-1]):
        await begun(desk, tasks, "a", step=step)
    assert tried == [end, end + 10, end]
    assert list(desk._in_vain) == [(key, later.situation.variant)]
    monkeypatch.setattr(foresight, "MOST_IN_VAIN", 1)
    desk._keep((SessionKey("t", "b"), ""), None, 1)
    assert list(desk._in_vain) == [(SessionKey("t", "b"), "")]
    await desk.erase([SessionKey("t", "b")])
    assert not desk._in_vain


def test_what_is_kept_is_measured_with_the_names_of_all_that_it_tells_of() -> None:
    made = foreseen(soon())
    more = replace(
        made.decision, entries=(FrozenEntry(raw=b"told", covers=("t" * 32,) * 1000), *made.decision.entries), left=(LeftOut(("t" * 32,) * 500, "s"),)
    )
    assert foresight._size_of(made._replace(decision=more)) - foresight._size_of(made) >= 1500 * sys.getsizeof("t" * 32)
