"""Nothing of what was erased is left in any file, with all switched on that keeps something."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.core.effects import Forget, PutCheckpoint, PutPin, PutSummary
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import Pin, SessionKey
from ctxproxy.proxy.erasing import Eraser, forgotten_meanwhile
from ctxproxy.store import MemoryStore
from tests.contract.samples import KEY, OTHER, begun, chain, checkpoint, message, summary
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin import got
from tests.proxy.test_admin_changes import holding
from tests.proxy.test_background import FILLER
from tests.proxy.test_recovery import TOO_LONG
from tests.scripted_upstream import Answer, Json, Received, Reply, ScriptedUpstream, Stall, tool_call

EVERYTHING: dict[str, Any] = {
    "store": {"url": "sqlite:///s.db"},
    "context": {"max_tokens": 3000, "keep_recent_turns": 1},
    "memory": {"daily_files": True, "distill": "manual"},
    "retrieval": {"kind": "hybrid"},
}
PLANTED = {
    "question": "quagga-in-the-question",
    "answer": "okapi-in-the-answer",
    "arguments": "tapir-in-the-arguments",
    "result": "lemur-in-the-result",
    "system": "gecko-in-the-system",
    "pin": "bison-in-the-pin",
    "feedback": "koala-in-the-feedback",
    "name": "moose-in-the-name",
    "user": "sloth-of-a-user",
}
HOLDING = f"The user asked of {PLANTED['question']}, the files told of {PLANTED['result']} and the answer was {PLANTED['answer']}."


def left(running: Running, *names: str) -> list[str]:
    """Which of the planted words stand in some file."""
    folder = Path(running.holder.current().data_dir)
    return [name for name in names or PLANTED if holding(folder, PLANTED[name])]


def history() -> list[dict[str, Any]]:
    calling = {"role": "assistant", "content": None, "tool_calls": [tool_call("c1", "read", {"path": f"/{PLANTED['arguments']}/a.txt"})]}
    return [
        {"role": "system", "content": f"Always answer in short. {PLANTED['system']}"},
        {"role": "user", "content": f"My name is Ann Quagga and the code is {PLANTED['question']}. I must never fly. {FILLER}"},
        calling,
        {"role": "tool", "tool_call_id": "c1", "content": f"{PLANTED['result']} = 7741 {FILLER}"},
        {"role": "assistant", "content": f"It is {PLANTED['answer']}. {FILLER}"},
    ]


async def told(running: Running, upstream: ScriptedUpstream) -> list[dict[str, Any]]:
    """A long conversation in which all was said, compacted, summarized, noted and pinned."""
    upstream.script = lambda call: Answer(HOLDING if call.header("X-Purpose") == "summary" else f"an answer {FILLER}")
    asked = history()
    for turn in range(14):
        asked.append({"role": "user", "content": f"question {turn}: {FILLER}"})
        said = await running.chat(asked, session=PLANTED["name"], headers={"X-User-Id": PLANTED["user"]})
        asked.append(said.message)
        await running.settled()
    await got(running, f"sessions/{PLANTED['name']}/pins", "POST", {"text": f"Never forget {PLANTED['pin']}"}, status=201)
    feedback = {"rating": 2, "text": f"It forgot {PLANTED['feedback']}"}
    await got(running, f"sessions/{PLANTED['name']}/feedback", "POST", feedback, status=201)
    session = await running.session(PLANTED["name"])
    assert await running.state.store.facts.of(session.key)
    assert await running.state.store.all_checkpoints(session.key)
    assert await running.state.store.summaries(session.key, None)
    assert list((Path(running.holder.current().data_dir) / "memory").rglob("*.md"))
    upstream.script = Answer(f"- {HOLDING} [n1]")
    await got(running, f"users/{PLANTED['user']}/memory/distill", "POST")
    assert "MEMORY.md" in holding(Path(running.holder.current().data_dir), PLANTED["question"])
    upstream.script = Answer("a good one")
    await running.chat("a new day", session="next", headers={"X-User-Id": PLANTED["user"]})
    await running.settled()
    assert PLANTED["question"] in str(upstream.calls[-1].messages), "a new session of the user begins with what is remembered"
    return asked


async def test_of_an_erased_session_nothing_is_left_in_any_file(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **EVERYTHING)
    await told(running, upstream)
    await running.chat("something else", session="other")
    await running.settled()
    assert left(running) == list(PLANTED)
    await got(running, f"sessions/{PLANTED['name']}", "DELETE")
    assert left(running) == ["user"], "whose other sessions are still there"
    await got(running, "sessions/next", "DELETE")
    assert left(running) == []
    assert await running.log("other")


async def test_of_an_erased_message_nothing_is_left_in_any_file(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **EVERYTHING)
    asked = await told(running, upstream)
    path = f"sessions/{PLANTED['name']}"
    rows = {row["role"]: row["tip"] for row in reversed((await got(running, f"{path}/messages"))["data"][:4])}
    await got(running, f"{path}/pins", "POST", {"text": f"the code is {PLANTED['question']}"}, status=201)
    erased = await got(running, f"{path}/messages/{rows['user']}?erase=true", "DELETE")
    assert erased["pins_dropped"] == [2]
    for role in ("assistant", "tool"):
        await got(running, f"{path}/messages/{rows[role]}?erase=true", "DELETE")
    gone = ["question", "result", "arguments"]
    assert left(running, *gone) == []
    upstream.script = Answer(f"an answer {FILLER}")
    asked.append({"role": "user", "content": f"and now? {FILLER}"})
    await running.chat(asked, session=PLANTED["name"], headers={"X-User-Id": PLANTED["user"]})
    await running.settled()
    assert not [word for word in gone if PLANTED[word] in str(upstream.calls[-1].messages)]
    assert left(running, *gone) == [], "a client that sends it again does not bring it back"


def filled(turns: int) -> list[dict[str, Any]]:
    return [*history(), *({"role": role, "content": f"{n} {FILLER}"} for n in range(turns) for role in ("user", "assistant"))]


async def test_what_an_answer_decides_while_a_message_is_erased_goes_too(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **EVERYTHING, summarizer={"kind": "extractive"})
    await running.chat([*filled(4), {"role": "user", "content": "first"}], session="s")
    await running.settled()
    tip = (await got(running, "sessions/s/messages"))["data"][0]["tip"]
    gate = asyncio.Event()
    upstream.script = Stall(gate, Answer("an answer"))
    asking = asyncio.create_task(running.chat([*filled(14), {"role": "user", "content": "again"}], session="s"))
    assert PLANTED["question"] in str((await upstream.call(1)).messages)
    await got(running, f"sessions/s/messages/{tip}?erase=true", "DELETE")
    gate.set()
    assert "summarize" in (await asking).actions
    await running.settled()
    assert left(running, "question") == []


@pytest.mark.parametrize("headers", [{}, {"X-Context-Mode": "append"}])
@pytest.mark.parametrize("anew", [False, True])
async def test_a_request_whose_session_is_erased_while_it_is_answered_brings_nothing_back(
    proxy: StartProxy, upstream: ScriptedUpstream, headers: dict[str, str], *, anew: bool
) -> None:
    running = await proxy(upstream, **EVERYTHING, summarizer={"kind": "extractive"})
    await running.chat([*filled(4), {"role": "user", "content": "first"}], session="s", headers=headers)
    await running.settled()
    gate = asyncio.Event()
    upstream.script = Stall(gate, Answer("an answer"))
    asking = asyncio.create_task(running.chat([*filled(14), {"role": "user", "content": "again"}], session="s", headers=headers))
    await upstream.call(1)
    await got(running, "sessions/s", "DELETE")
    upstream.script = Answer("another answer")
    if anew:
        await running.chat("something else", session="s", headers=headers)
    gate.set()
    said = await asking
    assert (said.text, "summarize" in said.actions) == ("an answer", True)
    await running.settled()
    assert left(running) == []
    assert len(await running.state.store.find("s")) == anew
    if anew:
        assert await running.branches("s") == [["user: something else", "assistant: another answer"]]


async def test_nor_does_one_that_came_before_the_session_was_there(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **EVERYTHING, summarizer={"kind": "extractive"})
    gate = asyncio.Event()
    upstream.script = Stall(gate, Answer("an answer"))
    asking = asyncio.create_task(running.chat([*filled(14), {"role": "user", "content": "at once"}], session="s"))
    await upstream.call(0)
    upstream.script = Answer("another answer")
    await running.chat([*filled(4), {"role": "user", "content": "at once, too"}], session="s")
    await got(running, "sessions/s", "DELETE")
    gate.set()
    assert "summarize" in (await asking).actions
    await running.settled()
    assert (left(running), await running.state.store.find("s")) == ([], [])


async def _began(running: Running, upstream: ScriptedUpstream) -> None:
    upstream.script = Answer("an answer")
    await running.chat([*history(), {"role": "user", "content": "first"}], session="s")


@pytest.mark.parametrize("first", [False, True])
async def test_a_summary_that_is_begun_after_its_session_was_erased_does_not_come_into_the_next_of_its_name(
    proxy: StartProxy, upstream: ScriptedUpstream, *, first: bool
) -> None:
    running = await proxy(upstream, **{**EVERYTHING, "context": {"keep_recent_turns": 1}})
    gate = asyncio.Event()

    def script(call: Received) -> Reply:
        return Answer(HOLDING) if call.header("X-Purpose") == "summary" else Stall(gate, Json(400, TOO_LONG))

    if not first:
        await _began(running, upstream)
    upstream.script = script
    asking = asyncio.create_task(running.chat([*filled(30), {"role": "user", "content": "again"}], session="s"))
    assert (await upstream.call(0 if first else 1)).header("X-Purpose") != "summary"
    if first:
        await _began(running, upstream)
        upstream.script = script
    await got(running, "sessions/s", "DELETE")
    gate.set()
    await asking
    await running.settled()
    assert any(call.header("X-Purpose") == "summary" for call in upstream.calls), "the rescue has asked for one"
    upstream.script = Answer("another answer")
    await running.chat("something else", session="s")
    await running.settled()
    (session,) = await running.state.store.find("s")
    assert (await running.state.store.summaries(session.key, None), left(running)) == ([], [])


async def test_what_an_answer_decides_while_a_pin_is_let_go_of_does_not_keep_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **EVERYTHING, summarizer={"kind": "extractive"})
    await running.chat([*filled(4), {"role": "user", "content": "first"}], session="s")
    await got(running, "sessions/s/pins", "POST", {"text": PLANTED["pin"]}, status=201)
    gate = asyncio.Event()
    upstream.script = Stall(gate, Answer("an answer"))
    told = [*filled(14), {"role": "user", "content": "again"}]
    asking = asyncio.create_task(running.chat(told, session="s"))
    assert PLANTED["pin"] in str((await upstream.call(1)).messages)
    await got(running, "sessions/s/pins/1", "DELETE")
    gate.set()
    said = await asking
    assert "summarize" in said.actions
    await running.settled()
    upstream.script = Answer("another answer")
    await running.chat([*told, said.message, {"role": "user", "content": "and now?"}], session="s")
    assert PLANTED["pin"] not in str(upstream.calls[-1].messages)


async def test_a_summary_that_is_written_while_a_message_is_erased_goes_too(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **EVERYTHING)
    begun, gate = asyncio.Event(), asyncio.Event()

    def script(call: Received) -> Reply:
        if call.header("X-Purpose") != "summary":
            return Answer("an answer")
        begun.set()
        return Stall(gate, Answer(HOLDING))

    upstream.script = script
    for turns in range(3, 30):
        await running.chat([*filled(turns), {"role": "user", "content": "again"}], session="s")
        if begun.is_set():
            break
    session = await running.state.store.find("s")
    row = (await running.state.store.log(session[0].key, 0, 1)).messages[0]
    await got(running, f"sessions/s/messages/{row.tip}?erase=true", "DELETE")
    gate.set()
    await running.settled()
    assert 'summaries_total{result="made"}' in running.state.metrics.text().decode()
    assert (await running.state.store.summaries(session[0].key, None), left(running, "question")) == ([], [])


async def test_a_note_that_comes_after_its_session_was_erased_goes_again(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **EVERYTHING)
    await told(running, upstream)
    key = (await running.session(PLANTED["name"])).key
    add = running.state.notes.files.add

    async def slow(*values: Any) -> bool:
        await running.state.eraser.session(key)
        return await add(*values)

    running.state.notes.files.add = slow  # type: ignore[method-assign]
    await running.chat([*history(), *history()[1:] * 9, {"role": "user", "content": "other branch"}], session=PLANTED["name"])
    await running.settled()
    assert not list((Path(running.holder.current().data_dir) / "memory").rglob("*.md"))


# ---------------------------------------------------------------- the eraser itself


class Noting:
    """A part that notes what it was asked and whether the store still had the session."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.asked: list[tuple[str, object, bool]] = []

    async def erase(self, keys: Collection[SessionKey]) -> None:
        self.asked.append(("erase", list(keys), await self.store.session(KEY) is not None))

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        session = await self.store.session(key)
        self.asked.append(("forget", set(tips), bool(session and session.forgotten)))


async def test_each_part_is_asked_before_and_after_the_store() -> None:
    store = MemoryStore()
    part = Noting(store)
    await store.apply([*begun(KEY, chain("a", "b"))])
    eraser = Eraser(store, [part])
    assert await eraser.session(KEY)
    assert not await eraser.session(KEY)
    assert part.asked == [("erase", [KEY], True), ("erase", [KEY], False), *[("erase", [KEY], False)] * 2]


async def test_a_forgotten_message_is_told_with_all_that_came_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxproxy.proxy.erasing.PAGE_MESSAGES", 2)
    store, trunk = MemoryStore(), chain("a", "b", "c")
    part, fork = Noting(store), chain("x", parent=trunk[1].tip)
    await store.apply([*begun(KEY, [*trunk, *fork, *chain("other")]), PutPin(KEY, Pin(1, "b", 1.0)), PutPin(KEY, Pin(2, "z", 1.0))])
    assert await Eraser(store, [part]).message(KEY, trunk[1], erase=False) == ()
    after = {trunk[1].tip, trunk[2].tip, fork[0].tip}
    assert part.asked == [("forget", after, False), ("forget", after, True)]
    assert await Eraser(store).message(KEY, trunk[1], erase=True) == (1,)
    assert await Eraser(store).message(KEY, (await store.history(KEY, trunk[1].tip))[-1], erase=True) == ()
    assert [pin.number for pin in await store.pins(KEY)] == [2]


@pytest.mark.parametrize("erase", [False, True])
async def test_what_was_decided_while_a_message_was_forgotten_goes_again(erase: bool) -> None:
    store, trunk = MemoryStore(), chain("a", "b", "c")
    await store.apply([*begun(KEY, trunk), *begun(OTHER, chain("o")), Forget(KEY, trunk[0].tip), Forget(KEY, trunk[1].tip, erase)])
    late = [PutCheckpoint(KEY, checkpoint(trunk[2].tip)), PutSummary(KEY, summary(trunk[2].tip))]
    await store.apply(late)
    assert await forgotten_meanwhile(store, KEY, trunk[2].tip, frozenset({trunk[0].tip}))
    assert (await store.all_checkpoints(KEY), await store.summaries(KEY, None)) == ([], [])
    assert bool((await store.history(KEY, trunk[1].tip))[-1].raw) is not erase
    await store.apply(late)
    assert not await forgotten_meanwhile(store, KEY, trunk[2].tip, frozenset({trunk[0].tip, trunk[1].tip}))
    assert not await forgotten_meanwhile(store, KEY, message("elsewhere").tip, frozenset())
    assert not await forgotten_meanwhile(store, SessionKey("1f" * 16, "none"), trunk[2].tip, frozenset())
    assert len(await store.all_checkpoints(KEY)) == 1
