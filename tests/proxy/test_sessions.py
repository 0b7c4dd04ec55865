"""Which conversation a request belongs to: full and thin clients, forks, races, tenants, restarts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ctxproxy.proxy.keeping import REBASES
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.scripted_upstream import Answer, Cut, Json, Received, ScriptedUpstream, Stall, error_body, tool_call

AT_ONCE = REBASES + 3
APPEND = {"X-Context-Mode": "append"}
SQLITE = {"url": "sqlite:///s.db"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def echo(call: Received) -> Answer:
    """Answers with the last message's text: every turn is told from the others."""
    return Answer(f"re: {call.messages[-1]['content']}")


def texts(call: Received) -> list[str]:
    return [str(message["content"]) for message in call.messages]


@pytest.fixture
def upstream_echoes(upstream: ScriptedUpstream) -> ScriptedUpstream:
    upstream.script = echo
    return upstream


@pytest.fixture
async def running(proxy: StartProxy, upstream_echoes: ScriptedUpstream) -> Running:
    return await proxy(upstream_echoes)


async def full(running: Running, *asked: str, **how: Any) -> list[dict[str, Any]]:
    """A client that resends everything asks these, one after the other."""
    history: list[dict[str, Any]] = []
    for text in asked:
        history.append(user(text))
        said = await running.chat(history, **how)
        history.append(said.message)
    return history


async def test_a_full_history_is_kept_once_and_sent_as_it_came(running: Running, upstream: ScriptedUpstream) -> None:
    await full(running, "one", "two", "three", session="s")
    assert texts(upstream.calls[-1]) == ["one", "re: one", "two", "re: two", "three"]
    assert await running.log("s") == ["user: one", "assistant: re: one", "user: two", "assistant: re: two", "user: three", "assistant: re: three"]
    assert (await running.state.store.totals()).messages == 6


@pytest.mark.parametrize("headers", [APPEND, {}])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_thin_client_needs_to_send_only_what_is_new(
    running: Running, upstream: ScriptedUpstream, headers: dict[str, str], *, stream: bool
) -> None:
    for text in ("one", "two", "three"):
        await running.chat(text, session="s", headers=headers, stream=stream)
    assert texts(upstream.calls[-1]) == ["one", "re: one", "two", "re: two", "three"]
    assert (await running.session("s")).manner == "thin"


async def test_a_thin_client_answers_a_tool_call_with_the_result_alone(running: Running, upstream: ScriptedUpstream) -> None:
    upstream.script = [Answer(None, [tool_call("c1", "ls", {})]), Answer("two files")]
    await running.chat("list", session="s")
    await running.chat([{"role": "tool", "tool_call_id": "c1", "content": "a b"}], session="s")
    assert [m["role"] for m in upstream.calls[1].messages] == ["user", "assistant", "tool"]


async def test_a_session_that_sent_full_history_is_never_taken_for_thin(running: Running, upstream: ScriptedUpstream) -> None:
    await full(running, "one", "two", session="s")
    await running.chat("a new start", session="s")
    assert texts(upstream.calls[-1]) == ["a new start"]


async def test_an_edit_and_a_regeneration_are_branches(running: Running, upstream: ScriptedUpstream) -> None:
    history = await full(running, "one", "two", session="s")
    upstream.script = Answer("another answer")
    await running.chat(history[:3], session="s")
    assert await running.log("s") == ["user: one", "assistant: re: one", "user: two", "assistant: another answer"]
    await running.chat([*history[:2], user("two, edited")], session="s")
    found = await running.branches("s")
    assert len(found) == 3
    assert found[0][2:] == ["user: two, edited", "assistant: another answer"]
    assert all(branch[:2] == ["user: one", "assistant: re: one"] for branch in found)
    assert upstream.calls[-1].messages == [*history[:2], user("two, edited")]


async def test_a_clients_own_compaction_is_a_branch_and_goes_out_as_it_came(running: Running, upstream: ScriptedUpstream) -> None:
    await full(running, "one", "two", "three", session="s")
    own = [user("Summary: one, two, three were said."), assistant("Understood."), user("four")]
    await running.chat(own, session="s")
    assert upstream.calls[-1].messages == own
    assert len(await running.branches("s")) == 2


async def test_side_requests_and_sub_agents_under_one_id_disturb_nothing(running: Running, upstream: ScriptedUpstream) -> None:
    history = await full(running, "one", session="s", stream=True)
    before = await running.log("s")
    await running.chat([system("Make a title."), user("Title for: one")], session="s", max_tokens=16)
    await full(running, "sub-agent task", "sub-agent goes on", session="s")
    assert texts(upstream.calls[-1]) == ["sub-agent task", "re: sub-agent task", "sub-agent goes on"]
    await running.chat([*history, user("two")], session="s", stream=True)
    assert texts(upstream.calls[-1]) == ["one", "re: one", "two"]
    assert await running.log("s") == [*before, "user: two", "assistant: re: two"]


async def test_a_title_request_does_not_move_a_thin_conversation(running: Running, upstream: ScriptedUpstream) -> None:
    await running.chat("one", session="s", stream=True)
    await running.chat([system("Make a title."), user("Title for: one")], session="s")
    await running.chat("two", session="s", stream=True)
    assert texts(upstream.calls[-1]) == ["one", "re: one", "two"]


async def test_two_full_requests_at_once_are_two_branches(running: Running, upstream: ScriptedUpstream) -> None:
    history = await full(running, "one", session="s")
    gate = asyncio.Event()
    upstream.script = lambda call: Stall(gate, echo(call))
    asking = [asyncio.create_task(running.chat([*history, user(text)], session="s")) for text in ("left", "right")]
    await upstream.call(2)
    gate.set()
    await asyncio.gather(*asking)
    found = await running.branches("s")
    assert sorted(branch[-1] for branch in found) == ["assistant: re: left", "assistant: re: right"]
    assert all(branch[:2] == ["user: one", "assistant: re: one"] for branch in found)


@pytest.mark.parametrize("store", ["memory://", "sqlite:///s.db"])
async def test_thin_requests_at_once_lose_nothing_and_double_nothing(proxy: StartProxy, upstream_echoes: ScriptedUpstream, store: str) -> None:
    running = await proxy(upstream_echoes, store={"url": store})
    await running.chat("zero", session="s", headers=APPEND)
    gate = asyncio.Event()
    upstream_echoes.script = lambda call: Stall(gate, echo(call))
    asking = [asyncio.create_task(running.chat(f"q{n}", session="s", headers=APPEND)) for n in range(AT_ONCE)]
    await upstream_echoes.call(AT_ONCE)
    gate.set()
    await asyncio.gather(*asking)
    log = await running.log("s")
    assert sorted(log) == sorted(
        ["user: zero", "assistant: re: zero", *(f"user: q{n}" for n in range(AT_ONCE)), *(f"assistant: re: q{n}" for n in range(AT_ONCE))]
    )
    assert all(log[at + 1] == log[at].replace("user: ", "assistant: re: ") for at in range(0, len(log), 2))


@pytest.mark.parametrize("headers", [{}, APPEND])
async def test_a_retry_of_a_request_whose_answer_failed_doubles_nothing(
    running: Running, upstream: ScriptedUpstream, headers: dict[str, str]
) -> None:
    await running.chat("one", session="s", headers=headers)
    upstream.script = [Answer("re: two").as_asked(upstream.calls[0])]
    await running.chat("two", session="s", headers=headers)
    upstream.script = echo
    await running.chat("two", session="s", headers={**headers, "X-Stainless-Retry-Count": "1"})
    assert texts(upstream.calls[-1]) == ["one", "re: one", "two"]
    assert await running.log("s") == ["user: one", "assistant: re: one", "user: two", "assistant: re: two"]
    assert (await running.state.store.totals()).messages == 4


async def test_a_retry_after_an_error_doubles_nothing(running: Running, upstream: ScriptedUpstream) -> None:
    await running.chat("one", session="s", headers=APPEND)
    upstream.script = [Json(500, error_body("down")), Json(429, error_body("slow")), Cut(), Cut(), Answer("re: two")]
    assert [(await running.chat("two", session="s", headers=APPEND)).status for _ in range(4)] == [500, 429, 502, 200]
    assert len(upstream.calls) == 6  # a kept connection that was closed is tried once more on a new one
    assert all(texts(call) == ["one", "re: one", "two"] for call in upstream.calls[1:])
    assert await running.branches("s") == [["user: one", "assistant: re: one", "user: two", "assistant: re: two"]]


async def test_the_same_full_request_twice_is_one(running: Running, upstream: ScriptedUpstream) -> None:
    await asyncio.gather(*(running.chat("one", session="s") for _ in range(3)))
    await running.chat("one", session="s")
    assert await running.branches("s") == [["user: one", "assistant: re: one"]]


async def test_two_keys_never_meet_in_one_id(running: Running, upstream: ScriptedUpstream) -> None:
    await running.chat("mine", session="s", key="sk-mine", headers=APPEND)
    await running.chat("theirs", session="s", key="sk-theirs", headers=APPEND)
    assert texts(upstream.calls[-1]) == ["theirs"]
    await running.chat("mine again", session="s", key="sk-mine", headers=APPEND)
    assert texts(upstream.calls[-1]) == ["mine", "re: mine", "mine again"]
    await running.settled()
    assert len({found.key.tenant for found in await running.state.store.find("s")}) == 2


async def test_shared_scope_makes_two_keys_one_tenant(proxy: StartProxy, upstream_echoes: ScriptedUpstream) -> None:
    running = await proxy(upstream_echoes, sessions={"scope": "shared"})
    await running.chat("one", session="s", key="sk-mine", headers=APPEND)
    await running.chat("two", session="s", key="sk-theirs", headers=APPEND)
    assert texts(upstream_echoes.calls[-1]) == ["one", "re: one", "two"]


async def test_without_an_id_the_first_user_message_names_the_session(running: Running, upstream: ScriptedUpstream) -> None:
    await full(running, "one", "two")
    await full(running, "something else")
    await running.settled()
    page = await running.state.store.sessions(10, None, "auto-")
    assert sorted(session.messages for session in page.sessions) == [2, 4]


async def test_without_derive_a_request_without_an_id_is_not_remembered(proxy: StartProxy, upstream_echoes: ScriptedUpstream) -> None:
    running = await proxy(upstream_echoes, sessions={"derive": False})
    answer = await running.chat("one")
    await running.settled()
    assert (answer.text, "X-Session-Id" in answer.headers) == ("re: one", False)
    assert (await running.state.store.totals()).sessions == 0


@pytest.mark.parametrize("name", ["", "a" * 129, "with blank", "ü", "a;b", "a\\b", "<script>"])
async def test_an_id_that_breaks_the_rule_gets_400_naming_it(running: Running, upstream: ScriptedUpstream, name: str) -> None:
    answer = await running.chat("one", headers={"X-Session-Id": name})
    if not name:
        assert answer.headers["X-Session-Id"].startswith("auto-")
        return
    assert (answer.status, answer.json["error"]["param"], upstream.calls) == (400, "X-Session-Id", [])
    assert "1 to 128 of A-Z a-z 0-9 . _ : @ / = -" in answer.json["error"]["message"]


@pytest.mark.parametrize("name", ["a", "a" * 128, "user@host/a.b_c:d=e-f", "../..", "%2e"[1:]])
async def test_an_id_that_keeps_the_rule_comes_back(running: Running, name: str) -> None:
    assert (await running.chat("one", session=name)).headers["X-Session-Id"] == name


async def test_a_restart_takes_nothing_from_a_thin_client(proxy: StartProxy, upstream_echoes: ScriptedUpstream) -> None:
    running = await proxy(upstream_echoes, store=SQLITE)
    await running.chat([system("Be brief."), user("one")], session="s", headers=APPEND)
    for text in ("two", "three"):
        await running.chat(text, session="s", headers=APPEND)
    await running.restart()
    await running.chat("four", session="s", headers=APPEND)
    assert texts(upstream_echoes.calls[-1]) == ["Be brief.", "one", "re: one", "two", "re: two", "three", "re: three", "four"]


async def test_after_a_restart_a_compacted_prefix_is_sent_byte_for_byte(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    upstream.script = Answer("an answer of some words. " * 40)
    running = await proxy(upstream, store=SQLITE, context={"max_tokens": 4000}, summarizer={"kind": "extractive"})
    history: list[dict[str, Any]] = [system("Be brief.")]
    acted = False
    while not acted:
        history.append(user(f"question {len(history)}: " + "with some words in it " * 30))
        said = await running.chat(history, session="s")
        history.append(said.message)
        acted = "replay" not in said.actions and bool(said.actions)
    await running.restart()
    await running.chat([*history, user("and now?")], session="s")
    before, after = (raw_messages(call) for call in upstream.calls[-2:])
    assert after.startswith(before)
    assert "[Background: " in upstream.calls[-1].messages[1]["content"]


def raw_messages(call: Received) -> bytes:
    """The exact text of the messages array, without its end."""
    at = call.body.index(b'"messages"')
    return call.body[at : call.body.rindex(b"]")].rstrip()


async def test_a_changed_system_prompt_starts_no_new_history(running: Running, upstream: ScriptedUpstream) -> None:
    history: list[dict[str, Any]] = []
    for hour in range(3):
        history.append(user(f"q{hour}"))
        said = await running.chat([system(f"It is {hour} o'clock."), *history], session="s")
        history.append(said.message)
        assert upstream.calls[-1].messages[0] == system(f"It is {hour} o'clock.")
    assert len(await running.branches("s")) == 1
    assert (await running.session("s")).system == (b'{"role": "system", "content": "It is 2 o\'clock."}',)


async def test_a_thin_client_may_change_its_system_prompt_and_leave_it_away(running: Running, upstream: ScriptedUpstream) -> None:
    for messages in ([system("First."), user("one")], [system("Second."), user("two")], [user("three")]):
        await running.chat(messages, session="s", headers=APPEND)
    assert [texts(call)[0] for call in upstream.calls] == ["First.", "Second.", "Second."]
    assert texts(upstream.calls[-1])[1:] == ["one", "re: one", "two", "re: two", "three"]


async def test_names_of_headers_can_be_set(proxy: StartProxy, upstream_echoes: ScriptedUpstream) -> None:
    running = await proxy(upstream_echoes, sessions={"header": "X-Chat", "mode": "append"})
    for text in ("one", "two"):
        await running.chat(text, headers={"X-Chat": "s"})
    assert texts(upstream_echoes.calls[-1]) == ["one", "re: one", "two"]
    assert upstream_echoes.calls[-1].header("X-Chat") is None
