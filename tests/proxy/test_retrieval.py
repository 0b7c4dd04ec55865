"""What the newest request needs of what its prompt holds no more: found again, put in before it, and never where it should not be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ctxproxy.core.recall_titles import TITLES
from ctxproxy.errors import StoreUnavailable
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running, Said
from tests.scripted_upstream import ScriptedUpstream

DAY_S = 86_400.0
ON = {"retrieval": {"kind": "hybrid"}}
BUDGET = {"context": {"max_tokens": 1200}, "summarizer": {"kind": "extractive"}, **ON}
ANIMALS = ("heron", "badger", "lynx", "otter", "raven", "stoat", "viper", "wombat", "jackal", "magpie")
PLACES = ("chapel", "harbour", "quarry", "orchard", "stadium", "library", "bakery", "embassy", "windmill", "cellar")


def told(n: int) -> str:
    animal, place = ANIMALS[n % 10], PLACES[(n // 10 + n) % 10]
    return f"Yesterday the {animal} number {'i' * (n // 10 + 1)} slept behind the old {place} while everybody else in town watched the long parade."


def history(turns: int) -> list[dict[str, Any]]:
    said = [(user(told(n)), {"role": "assistant", "content": "That is a lovely thing to hear, do go on with it."}) for n in range(turns)]
    return [message for turn in said for message in turn]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def recalled(upstream: ScriptedUpstream) -> str:
    """What was recalled in the last request; "" if nothing was."""
    texts = [str(message.get("content")) for message in upstream.calls[-1].messages]
    return next((text for text in texts if text.startswith(tuple(TITLES.values()))), "")


async def asked_about(running: Running, n: int, past: list[dict[str, Any]], **how: Any) -> Said:
    question = f"Behind which old building did the {ANIMALS[n % 10]} number {'i' * (n // 10 + 1)} sleep?"
    return await running.chat([*past, user(question)], session="s", **how)


async def test_001_31_what_was_taken_out_comes_back_when_it_is_asked_for(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **BUDGET)
    past = history(60)
    for n in (3, 17, 41):
        said = await asked_about(running, n, past)
        sent = upstream.calls[-1].messages
        assert told(n) in str(sent)
        assert sent[-1]["content"].startswith("Behind which")
        assert said.actions.get("retrieval", 0) > 0
        assert [message["role"] for message in sent[-3:]] == ["user", "assistant", "user"]
        assert sent[-3]["content"] == recalled(upstream)
        assert int(said.headers["X-Context-Tokens-Sent"]) <= 1200


async def test_what_came_back_is_sent_again_byte_for_byte_and_another_branch_has_nothing_of_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **{**BUDGET, "retrieval": {"max_tokens": 150}})
    past = history(60)
    said = await asked_about(running, 17, past)
    await running.settled()
    first = upstream.calls[-1].messages
    question = user(first[-1]["content"])
    await running.chat([*past, question, said.message, user("thank you")], session="s")
    assert upstream.calls[-1].messages[: len(first)] == first
    await running.chat([*past, user("thank you")], session="s")
    assert recalled(upstream) == ""
    again = await asked_about(running, 17, past)
    assert upstream.calls[-1].messages == first
    assert again.actions == {"replay": 1}


async def test_000_35_what_was_cleared_is_found_again(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 8000}, **ON)
    past = history(20)
    await running.chat([*past, user("and now?")], session="s")
    await running.settled()
    await running.admin("POST", "sessions/s/clear", {})
    cleared = [*past, user("and now?"), {"role": "assistant", "content": "ok"}]
    await asked_about(running, 17, cleared)
    assert recalled(upstream) == "", "nobody looks back"
    await running.chat([*cleared, user("Remind me: behind which building did the wombat number ii sleep?")], session="s")
    assert told(17) in recalled(upstream)
    assert len(upstream.calls[-1].messages) < 10


async def test_what_was_forgotten_never_comes_back(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **BUDGET)
    past = history(60)
    await asked_about(running, 17, past)
    await running.settled()
    _, listed = await running.admin("GET", "sessions/s/messages")
    tip = next(row["tip"] for row in listed["data"] if row["message"]["content"] == told(17))
    await running.admin("DELETE", f"sessions/s/messages/{tip}")
    await asked_about(running, 17, past, headers={"X-Other": "1"})
    assert told(17) not in str(upstream.calls[-1].messages)


async def test_003_48_what_was_said_is_in_the_prompt_in_the_index_and_in_the_log(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store={"url": "sqlite:///s.db"}, **ON)
    said = await running.chat([user("the heron sleeps")], session="s")
    await running.settled()
    await running.chat([user("the heron sleeps"), said.message, user("where?")], session="s")
    await running.settled()
    assert "the heron sleeps" in str(upstream.calls[-1].messages)
    (session,) = await running.state.store.find("s")
    found = await running.state.store.chunks.postings(session.key, ["heron"])
    (posting,) = found.by_term["heron"]
    assert [piece.chunk.text for piece in await running.state.store.chunks.texts(session.key, [posting.place])] == ["the heron sleeps"]
    assert "the heron sleeps" in str(await running.log("s"))
    assert await running.state.store.chunks.indexed(session.key) == {row.tip for row in await running.state.store.history(session.key, session.tip)}


async def test_003_54_the_same_problem_as_two_weeks_ago_is_recalled_in_another_session_of_the_user_alone(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await proxy(upstream, memory={"preload": {"sessions": 0, "chunks": 0}}, **ON)
    now = running.state.clock()
    running.state.clock = lambda: now - 14 * DAY_S
    told_then = user("The espresso machine Lavanza leaks water from the left valve since the descaling.")
    await running.chat([told_then], session="old", headers={"X-User-Id": "ann"})
    await running.settled()
    running.state.clock = lambda: now
    question = [user("My espresso machine leaks water again, the same problem as last time. Which valve was it?")]
    await running.chat(question, session="new", headers={"X-User-Id": "ann"})
    assert "left valve" in recalled(upstream)
    answered = [*question, {"role": "assistant", "content": "The left one."}]
    await running.chat([*answered, user("Say again, which valve of the espresso machine leaks water?")], session="new", headers={"X-User-Id": "ann"})
    assert str(upstream.calls[-1].messages).count("Lavanza leaks water") == 1, "what the prompt holds does not come back"
    for session, headers in (("other", {"X-User-Id": "bob"}), ("anonymous", {}), ("key", {"X-User-Id": "ann", "Authorization": "Bearer else"})):
        await running.chat(question, session=session, headers=headers)
        assert recalled(upstream) == ""


@pytest.mark.parametrize(
    ("settings", "last"),
    [
        ({"retrieval": {"kind": "off"}}, "user"),
        ({"context": {"max_tokens": 1200, "preset": "delete"}}, "user"),
        ({"retrieval": {"min_score": 5.0}}, "user"),
        ({}, "tool"),
    ],
    ids=["switched off", "a preset that forgets", "nothing fits well enough", "an agent at work"],
)
async def test_nothing_comes_back_where_it_should_not(proxy: StartProxy, upstream: ScriptedUpstream, settings: dict[str, Any], last: str) -> None:
    running = await proxy(upstream, **{**BUDGET, **settings})
    past = history(60)
    if last == "tool":
        call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"animal": "lynx"}'}}
        past += [user("Where did the lynx sleep?"), {"role": "assistant", "content": None, "tool_calls": [call]}]
        await running.chat([*past, {"role": "tool", "tool_call_id": "c", "content": "Which lynx number iii?"}], session="s")
    else:
        await asked_about(running, 17, past)
    assert recalled(upstream) == ""


async def test_indexing_never_delays_an_answer_and_what_waits_for_it_is_found(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream, **BUDGET)
    gate = asyncio.Event()
    chunks = running.state.store.chunks
    add: Callable[..., Awaitable[None]] = chunks.add

    async def slow(*given: Any) -> None:
        await gate.wait()
        await add(*given)

    monkeypatch.setattr(chunks, "add", slow)
    past = history(60)
    assert (await running.chat([*past, user("go on")], session="s")).status == 200
    await asked_about(running, 17, past)
    assert told(17) in recalled(upstream)
    gate.set()
    await running.settled()
    (session,) = await running.state.store.find("s")
    assert len(await chunks.indexed(session.key)) > 60


async def test_an_index_that_does_not_answer_changes_no_request_and_is_made_whole_later(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream, **BUDGET)
    chunks = running.state.store.chunks

    async def broken(*_: Any) -> Any:
        raise StoreUnavailable("the disk is gone")

    past = history(60)
    with monkeypatch.context() as patch:
        patch.setattr(chunks, "add", broken)
        patch.setattr(chunks, "postings", broken)
        said = await asked_about(running, 17, past)
        assert (said.status, recalled(upstream)) == (200, "")
        await running.settled()
    await asked_about(running, 3, past)
    assert told(3) in recalled(upstream)


async def test_a_fault_of_ours_in_searching_lets_the_request_go_out(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await proxy(upstream, **BUDGET)

    async def wrong(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(running.state.index, "postings", wrong)
    said = await asked_about(running, 17, history(60))
    assert (said.status, recalled(upstream)) == (200, "")
