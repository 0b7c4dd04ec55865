"""Memory points of a running proxy: noted behind the answer, shown by the admin API, never in a request's way."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.core.messages import Tip
from ctxproxy.core.points import MemoryPoint, PointChanges
from ctxproxy.core.records import SessionKey
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy import fact_desk
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin import APPEND, got, question
from tests.proxy.test_admin_changes import holding
from tests.scripted_upstream import Answer, Received, ScriptedUpstream

ANN = {"X-User-Id": "ann"}


async def facts(running: Running, path: str = "sessions/s/facts") -> dict[str, str]:
    await running.settled()
    return {one["key"]: one["value"] for one in (await got(running, path))["data"]}


async def metric(running: Running, result: str) -> float:
    return running.state.metrics.memory_points.labels(result)._value.get()  # type: ignore[no-any-return]


async def test_what_is_said_is_noted_with_its_message_and_the_newest_wins(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store={"url": "sqlite:///s.db"})
    first = [question("My name is Ann. The budget is 4,500 €.")]
    await running.chat(first, session="s", headers=ANN)
    await running.chat([*first, {"role": "assistant", "content": "ok"}, question("The budget is now 5,000 €.")], session="s", headers=ANN)
    assert {"name": "Ann", "budget": "5,000 €"}.items() <= (await facts(running)).items()
    tip = (await got(running, "sessions/s/messages"))["data"][0]["tip"]
    (name,) = (await got(running, "sessions/s/facts?kind=entity"))["data"]
    assert (name["tip"], name["user"], name["source"], name["in_force"]) == (tip, "ann", "rules", True)
    old, new = (await got(running, "sessions/s/facts?kind=number&q=BUDG&history=true"))["data"]
    assert (old["value"], old["in_force"], old["superseded_by"], new["superseded_by"]) == ("4,500 €", False, new["n"], None)
    await running.restart()
    assert (await facts(running))["budget"] == "5,000 €"


async def test_only_what_is_newly_stored_is_read(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    said = [question("My name is Ann.")]
    for _ in range(2):
        await running.chat(said, session="s")
        await running.settled()
        assert await metric(running, "rules") == 1
    (n,) = [one["n"] for one in (await got(running, "sessions/s/facts"))["data"]]
    assert await got(running, f"sessions/s/facts/{n}", "DELETE") == {"n": n, "deleted": True}
    await running.chat([*said, {"role": "assistant", "content": "ok"}, question("go on")], session="s")
    assert await facts(running) == {}
    await got(running, f"sessions/s/facts/{n}", "DELETE", status=404)
    await got(running, "sessions/s/facts/x", "DELETE", status=404)


async def test_a_fact_that_is_erased_is_left_in_no_file_and_in_no_later_session(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store={"url": "sqlite:///s.db"})
    await running.chat("My dog is called Zebulon.", session="one", headers={**APPEND, **ANN})
    await running.settled()
    await running.chat("hello", session="two", headers={**APPEND, **ANN})
    assert "dog: Zebulon" in str(upstream.calls[-1].messages)
    await running.settled()
    (fact,) = (await got(running, "sessions/one/facts?kind=entity"))["data"]
    await got(running, f"sessions/one/facts/{fact['n']}", "DELETE")
    await running.chat("hello again", session="two", headers={**APPEND, **ANN})
    assert "dog: Zebulon" not in str(upstream.calls[-1].messages)
    await running.settled()
    assert holding(Path(running.holder.current().data_dir), "dog: Zebulon") == []


async def test_a_remark_means_the_message_before_it_in_thin_sessions_too(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    for text in ("The wifi is called Blue.", "Remember this.", "My name is Ann.", "Not important."):
        await running.chat(text, session="s", headers=APPEND)
        await running.settled()
    assert list((await facts(running)).values()) == ["The wifi is called Blue."]


async def test_a_side_request_tells_nothing(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    await running.chat("My name is Ann.", session="s", tools=tools)
    await running.chat("Always write a title of 5 words. My name is Titler.", session="s")
    assert await facts(running) == {"name": "Ann"}


async def test_a_fork_has_the_facts_of_the_messages_that_it_begins_with(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    for text in ("My name is Ann.", "My job is pilot."):
        await running.chat(text, session="s", headers=APPEND)
    await running.settled()
    first, _, second, _ = [row["tip"] for row in (await got(running, "sessions/s/messages"))["data"]]
    await got(running, f"sessions/s/messages/{first}", "DELETE")
    await got(running, "sessions/s/fork", "POST", {"id": "fork", "tip": second}, status=201)
    assert await facts(running, "sessions/fork/facts") == {"job": "pilot"}


async def test_facts_can_be_turned_off(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, memory={"facts": False})
    await running.chat("My name is Ann.", session="s")
    assert await facts(running) == {}


async def test_forgetting_a_message_and_erasing_the_session_take_its_facts_along(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("My name is Ann.", session="s", headers=APPEND)
    await running.chat("The budget is 4,500 €.", session="s", headers=APPEND)
    await running.settled()
    tip = (await got(running, "sessions/s/messages"))["data"][0]["tip"]
    await got(running, f"sessions/s/messages/{tip}", "DELETE")
    assert "name" not in await facts(running)
    await got(running, "sessions/s", "DELETE")
    await got(running, "sessions/s/facts", status=404)


class SlowFacts:
    """A store of facts that waits, or does not answer at all."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go = asyncio.Event()
        self.error = error
        self.put_values: list[str] = []

    async def put(self, key: SessionKey, user: str, changes: PointChanges, read_to: Tip) -> bool:
        await self.go.wait()
        self.put_values += [point.value for point in changes.new]
        return True

    async def of(self, key: SessionKey) -> list[MemoryPoint]:
        if self.error:
            raise self.error
        return []


async def test_a_slow_store_of_facts_delays_no_answer_and_loses_no_order(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    slow = running.state.store.facts = SlowFacts()  # type: ignore[misc, assignment]
    for name in ("Ann", "Bea", "Cleo"):
        said = await running.chat(f"My name is {name}.", session="s", headers=APPEND)
        assert said.text == "ok"
    assert slow.put_values == []
    slow.go.set()
    await running.settled()
    assert slow.put_values == ["Ann", "Bea", "Cleo"]


class GatedFacts:
    """The store's own facts, of which writing waits."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.began, self.go = asyncio.Event(), asyncio.Event()

    async def put(self, key: SessionKey, user: str, changes: PointChanges, read_to: Tip) -> bool:
        self.began.set()
        await self.go.wait()
        return await self.real.put(key, user, changes, read_to)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@pytest.mark.parametrize("erase", [False, True])
async def test_what_is_forgotten_while_it_is_noted_is_not_kept(proxy: StartProxy, upstream: ScriptedUpstream, *, erase: bool) -> None:
    running = await proxy(upstream)
    real = running.state.store.facts
    gated = running.state.store.facts = GatedFacts(real)  # type: ignore[misc, assignment]
    for text in ("My name is Ann.", "My job is pilot."):
        await running.chat(text, session="s", headers=APPEND)
    await gated.began.wait()
    rows = [row for row in (await got(running, "sessions/s/messages"))["data"] if row["role"] == "user"]
    for row in rows:
        await got(running, f"sessions/s/messages/{row['tip']}?erase={str(erase).lower()}", "DELETE")
    gated.go.set()
    assert await facts(running) == {}


async def test_a_session_that_is_erased_while_it_is_noted_begins_anew_without_facts(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    real = running.state.store.facts
    gated = running.state.store.facts = GatedFacts(real)  # type: ignore[misc, assignment]
    for text in ("My name is Ann.", "My job is pilot."):
        await running.chat(text, session="s", headers=APPEND)
    await gated.began.wait()
    key = (await running.state.store.find("s"))[0].key
    erasing = asyncio.create_task(running.state.eraser.session(key))
    await asyncio.sleep(0)
    gated.go.set()
    assert await erasing
    await running.chat("hello", session="s", headers=APPEND)
    assert await facts(running) == {}


@pytest.mark.parametrize("error", [StoreUnavailable("gone"), ValueError("a fault of ours")])
async def test_a_failure_changes_no_answer_and_is_counted(proxy: StartProxy, upstream: ScriptedUpstream, error: Exception) -> None:
    running = await proxy(upstream)
    running.state.store.facts = SlowFacts(error)  # type: ignore[misc, assignment]
    for _ in range(2):
        assert (await running.chat("My name is Ann.", session="s", headers=APPEND)).text == "ok"
        await running.settled()
    assert await metric(running, "failed") == 2


async def test_what_was_not_read_for_the_store_did_not_answer_is_read_with_the_next_turn(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    real = running.state.store.facts
    running.state.store.facts = SlowFacts(StoreUnavailable("gone"))  # type: ignore[misc, assignment]
    await running.chat("My name is Ann.", session="s", headers=APPEND)
    await running.settled()
    running.state.store.facts = real  # type: ignore[misc]
    await running.chat("My job is pilot.", session="s", headers=APPEND)
    held = await facts(running)
    assert {"Ann", "pilot"} <= set(held.values())
    assert await metric(running, "failed") == 1


async def test_messages_are_read_one_after_the_other_so_that_requests_have_the_other_threads(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream)
    read: list[str] = []
    began, go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(fresh: Any, before: Any, held: Any, key: SessionKey, memo: Any) -> PointChanges:
        read.append(key.name)
        loop.call_soon_threadsafe(began.set)
        go.wait()
        return PointChanges()

    monkeypatch.setattr(fact_desk, "changes", slow)
    for session in ("one", "two", "three"):
        assert (await running.chat("My name is Ann.", session=session)).text == "ok"
    await began.wait()
    assert read == ["one"]
    go.set()
    await running.settled()
    assert sorted(read) == ["one", "three", "two"]


async def test_facts_of_a_user_come_from_all_his_sessions_and_no_other_tenant(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("My name is Ann. The budget is 4,500 €.", session="one", headers=ANN)
    await running.settled()
    await running.chat("The budget is now 5,000 €.", session="two", headers=ANN)
    await running.chat("My name is Mallory.", session="one", key="sk-other", headers=ANN)
    await running.chat("My name is Bob.", session="three", headers={"X-User-Id": "bob"})
    await running.settled()
    (ann, mallory) = sorted(s.key.tenant[:8] for s in await running.state.store.find("one"))
    own = (await running.session("two")).key.tenant[:8]
    assert {"name": "Ann", "budget": "5,000 €"}.items() <= (await facts(running, f"users/{own}:ann/facts")).items()
    assert await facts(running, f"users/{({ann, mallory} - {own}).pop()}:ann/facts") == {"name": "Mallory"}
    assert await facts(running, "users/bob/facts?kind=entity&q=bob") == {"name": "Bob"}
    conflict = await got(running, "users/ann/facts", status=409)
    assert f"{own}:ann" in conflict["error"]["message"]
    await got(running, "users/nobody/facts", status=404)


def is_summary(call: Received) -> bool:
    return call.header("X-Purpose") == "summary"


def summary_with(block: Any) -> Answer:
    told = "1. Goal: the user plans a trip to Yunnan and wants everything in one place.\n2. Rules and limits: none.\n3. Decisions: by train."
    return Answer(f"{told}\n```json\n{json.dumps(block)}\n```")


@pytest.mark.parametrize(
    ("block", "expected", "refused"),
    [
        ({"memory_points": [{"kind": "decision", "key": "Way", "value": "by train"}]}, {"way": "by train"}, 0),
        ({"memory_points": [{"kind": "decision", "key": "Way"}]}, {}, 1),
    ],
)
async def test_001_81_points_come_with_the_summary_where_they_are_asked_for(
    proxy: StartProxy, upstream: ScriptedUpstream, block: Any, expected: dict[str, str], refused: int
) -> None:
    running = await proxy(upstream, context={"max_tokens": 2000}, summarizer={"memory_points": True})
    filler = "we talk about the long way to the mountains and what there is to see on it " * 6
    turns = [m for n in range(14) for m in (question(f"part {n} {filler}"), {"role": "assistant", "content": f"answer {n} {filler}"})]
    upstream.script = lambda call: summary_with(block) if is_summary(call) else Answer("ok")
    await running.chat([*turns, question("and now?")], session="s")
    await running.settled()
    asked = [call for call in upstream.calls if is_summary(call)]
    assert asked
    assert all("memory_points" in str(call.messages) for call in asked)
    assert {one["key"]: one["value"] for one in (await got(running, "sessions/s/facts?kind=decision"))["data"]} == expected
    (summary,) = (await got(running, "sessions/s"))["summaries"]
    assert summary["kind"] == "llm"
    assert "memory_points" not in summary["text"]
    assert await metric(running, "refused") == refused


async def test_a_summarizer_is_not_asked_for_points_by_default(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 2000})
    turns = [m for n in range(14) for m in (question(f"part {n} " + "words " * 90), {"role": "assistant", "content": f"answer {n} " + "words " * 90})]
    await running.chat([*turns, question("and now?")], session="s")
    await running.settled()
    asked = [call for call in upstream.calls if is_summary(call)]
    assert asked
    assert all("memory_points" not in str(call.messages) for call in asked)


async def test_facts_are_listed_by_a_command_of_the_session_or_of_the_known_user(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    await running.chat("My name is Ann.", session="one", headers={**APPEND, **ANN})
    for session, headers in (("two", ANN), ("three", {})):
        await running.chat("The budget is 4,500 €, see A-4711.", session=session, headers={**APPEND, **headers})
    await running.settled()
    calls = len(upstream.calls)
    mine = (await running.chat("/facts", session="two", headers=APPEND)).text
    assert mine.startswith("[ctxproxy] What is known from all that this user said:")
    assert "- name: Ann" in mine
    assert "- budget: 4,500 €" in mine
    nobodys = (await running.chat("/facts", session="three", headers=APPEND)).text
    assert "- budget: 4,500 €" in nobodys
    assert "Ann" not in nobodys
    assert "- A-4711: id" in (await running.chat("/facts a-47", session="three", headers=APPEND)).text
    assert "Nothing that is noted holds “zebra”." in (await running.chat("/facts zebra", session="three", headers=APPEND)).text
    assert len(upstream.calls) == calls
