"""Summaries written behind the answers: begun early, swapped in at the next request, asked for once, kept over a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ctxproxy.core.records import Summary
from ctxproxy.proxy.summary_desk import SummaryDesk
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.scripted_upstream import Answer, Received, ScriptedUpstream, Stall

SUMMARY = "The user asked a row of small questions about words; every one was answered and nothing is open."
FILLER = "some words that say little " * 24
SUMMARIZING = {"max_tokens": 4000, "pipeline": [{"stage": "summarize"}, {"stage": "drop_oldest"}]}


def scripted(call: Received) -> Answer:
    return Answer(SUMMARY if is_summary(call) else "an answer")


def is_summary(call: Received) -> bool:
    return call.header("X-Purpose") == "summary"


def asked(upstream: ScriptedUpstream) -> list[Received]:
    """The calls that were made for the client itself."""
    return [call for call in upstream.calls if not is_summary(call)]


def talk(turns: int) -> list[dict[str, Any]]:
    turn = [{"role": "user", "content": f"question: {FILLER}"}, {"role": "assistant", "content": f"answer: {FILLER}"}]
    numbered = [{**message, "content": f"{n} {message['content']}"} for n in range(turns) for message in turn]
    return [{"role": "system", "content": "Be brief."}, *numbered, {"role": "user", "content": "last question?"}]


def array(call: Received) -> bytes:
    """The messages array without its end and without blanks between messages."""
    body = call.body.replace(b'}, {"role"', b'},{"role"').replace(b'"messages": [', b'"messages":[')
    return body[body.index(b'"messages"') : body.rindex(b"]")].rstrip()


async def grown_until(running: Running, history: list[dict[str, Any]], action: str) -> None:
    """Ask on until a stage has acted."""
    for turn in range(200):
        history.append({"role": "user", "content": f"question {turn}: {FILLER}"})
        said = await running.chat(history, session="s")
        history.append(said.message)
        await running.settled()
        if action in said.actions:
            return
    raise AssertionError(f"{action} never acted")


async def test_a_summary_is_begun_before_it_is_needed_and_nobody_waits_for_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 4000})
    upstream.script = scripted
    history: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    await grown_until(running, history, "summarize")
    compacted = asked(upstream)[-1]
    assert SUMMARY in str(compacted.messages)
    assert any(is_summary(call) for call in upstream.calls[: upstream.calls.index(compacted)])
    checkpoint = (await running.admin("GET", "sessions/s"))[1]["checkpoints"][0]
    assert "summarize" in {action["stage"] for action in checkpoint["actions"]}


async def test_a_summary_that_comes_late_takes_the_place_of_its_stand_in_at_the_next_request(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=SUMMARIZING)
    gate = asyncio.Event()
    upstream.script = lambda call: Stall(gate, Answer(SUMMARY)) if is_summary(call) else Answer("an answer")
    history = talk(20)
    for turn in range(2):
        said = await running.chat(history, session="s")
        history += [said.message, {"role": "user", "content": f"and {turn}?"}]
    assert SUMMARY not in str(asked(upstream)[1].messages)
    assert array(asked(upstream)[1]).startswith(array(asked(upstream)[0]))  # the stand-in is replayed meanwhile
    gate.set()
    await running.settled()
    for turn in range(2):
        said = await running.chat(history, session="s")
        history += [said.message, {"role": "user", "content": f"and again {turn}?"}]
        await running.settled()
    swapped, after = asked(upstream)[2:]
    assert SUMMARY in str(swapped.messages)
    assert array(after).startswith(array(swapped))
    assert sum(is_summary(call) for call in upstream.calls) == 1


async def test_a_summary_is_asked_for_once_however_many_ask_at_once(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=SUMMARIZING, summarizer={"background": False})
    upstream.script = scripted
    said = await asyncio.gather(*(running.chat(talk(20), session="s") for _ in range(5)))
    assert {one.status for one in said} == {200}
    assert sum(is_summary(call) for call in upstream.calls) == 1
    assert all(SUMMARY in str(call.messages) for call in asked(upstream))


@pytest.mark.parametrize("background", [True, False])
async def test_a_summary_that_is_there_before_the_first_answer_is_kept(proxy: StartProxy, upstream: ScriptedUpstream, *, background: bool) -> None:
    running = await proxy(upstream, context=SUMMARIZING, summarizer={"background": background}, store={"url": "sqlite:///s.db"})
    gate = asyncio.Event()
    upstream.script = lambda call: Answer(SUMMARY) if is_summary(call) else Stall(gate, Answer("an answer"))
    asyncio.get_running_loop().call_later(0.5, gate.set)  # the summary comes at once
    said = await running.chat(talk(20), session="s")
    await running.settled()
    _, shown = await running.admin("GET", "sessions/s")
    assert [(one["kind"], one["text"].startswith(SUMMARY)) for one in shown["summaries"]] == [("llm", True)]
    assert (await running.session("s")).spent.cost_summaries > 0
    await running.chat([*talk(20), said.message, {"role": "user", "content": "and?"}], session="s")
    await running.settled()
    assert sum(is_summary(call) for call in upstream.calls) == 1


async def test_a_summary_that_came_since_it_was_found_to_be_wanted_is_not_asked_for_again(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream, context=SUMMARIZING, summarizer={"background": False})
    write, turn, both_want = SummaryDesk.write, asyncio.Lock(), asyncio.Barrier(2)

    async def one_after_the_other(desk: SummaryDesk, *args: Any) -> Summary | None:
        await both_want.wait()
        async with turn:
            return await write(desk, *args)

    monkeypatch.setattr(SummaryDesk, "write", one_after_the_other)
    upstream.script = scripted
    await asyncio.gather(*(running.chat(talk(20), session="s") for _ in range(2)))
    assert sum(is_summary(call) for call in upstream.calls) == 1
    assert all(SUMMARY in str(call.messages) for call in asked(upstream))


async def test_a_failed_summarizer_is_left_alone_for_a_while(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=SUMMARIZING)
    upstream.script = lambda call: Answer("") if is_summary(call) else Answer("an answer")
    history = talk(20)
    await running.chat(history, session="s")
    await running.settled()
    calls = sum(is_summary(call) for call in upstream.calls)
    assert calls > 0
    for turn in range(5):
        history += [{"role": "assistant", "content": f"{turn} {FILLER * 4}"}, {"role": "user", "content": f"{turn}?"}]
        assert (await running.chat(history, session="s")).status == 200
        await running.settled()
    assert sum(is_summary(call) for call in upstream.calls) == calls


async def test_a_summary_outlives_a_restart(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=SUMMARIZING, store={"url": "sqlite:///s.db"})
    upstream.script = scripted
    await running.chat(talk(20), session="s")
    await running.settled()
    await running.restart()
    await running.chat([*talk(20), {"role": "assistant", "content": "an answer"}, {"role": "user", "content": "and?"}], session="s")
    assert SUMMARY in str(asked(upstream)[-1].messages)
    await running.settled()
    assert sum(is_summary(call) for call in upstream.calls) == 1


@pytest.mark.parametrize("own", [{}, {"model": "small", "api_key": "sk-own"}])
async def test_the_summarizer_asks_as_it_is_told_to(proxy: StartProxy, upstream: ScriptedUpstream, own: dict[str, str]) -> None:
    running = await proxy(upstream, context=SUMMARIZING, summarizer=own)
    upstream.script = scripted
    await running.chat(talk(20), session="s", temperature=0.7, tools=[], seed=7, headers={"X-Session-Id": "s", "Cookie": "c=1"})
    await running.settled()
    (call,) = (call for call in upstream.calls if is_summary(call))
    assert call.json["model"] == own.get("model", "tested-model")
    assert call.header("Authorization") == f"Bearer {own.get('api_key', 'sk-tested')}"
    assert call.json.keys() == {"model", "messages", "max_tokens"}
    assert (call.header("Cookie"), call.header("X-Session-Id")) == (None, None)


async def test_there_are_about_as_many_summaries_as_summarizing_compactions(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 4000})
    upstream.script = scripted
    history: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    compactions = 0
    for turn in range(60):
        history.append({"role": "user", "content": f"question {turn}: {FILLER}"})
        said = await running.chat(history, session="s")
        history.append(said.message)
        compactions += "summarize" in said.actions
        await running.settled()
    made = sum(map(is_summary, upstream.calls))
    assert compactions >= 3
    assert made <= compactions + 2
