"""What a client that sends only what is new finds after a restart of the proxy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.scripted_upstream import Answer, Received, ScriptedUpstream, tool_call

APPEND = {"X-Context-Mode": "append"}
SQLITE = {"url": "sqlite:///s.db"}


def echo(call: Received) -> Answer:
    return Answer(f"re: {call.messages[-1]['content']}")


def texts(call: Received) -> list[str]:
    return [str(message["content"]) for message in call.messages]


async def asked(running: Running, *questions: str, session: str = "s", headers: dict[str, str] = APPEND) -> None:
    for question in questions:
        await running.chat(question, session=session, headers=headers)
        await running.settled()


def pairs(*questions: str) -> list[str]:
    return [text for question in questions for text in (question, f"re: {question}")]


async def test_000_27_after_a_restart_all_earlier_turns_are_there_and_the_prompt_only_grows(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store=SQLITE)
    upstream.script = echo
    await asked(running, *"abcde")
    await running.restart()
    await asked(running, "f")
    assert texts(upstream.calls[-1]) == [*pairs(*"abcde"), "f"]


@pytest.mark.parametrize(
    ("sections", "headers", "restored"),
    [
        ({"sessions": {"restore_turns": 2}}, {}, "de"),
        ({"sessions": {"restore_turns": "auto"}, "context": {"max_turns": 24}}, {}, "bcde"),
        ({"context": {"preset": "cowagent"}}, {}, "cde"),
        ({}, {"X-Context-Preset": "cowagent"}, "cde"),
        ({"sessions": {"restore_turns": "all"}, "context": {"preset": "cowagent"}}, {}, "abcde"),
        ({"profiles": {"p": {}}, "sessions": {"profiles": [{"match": "s*", "profile": "p", "restore_turns": 1}]}}, {}, "e"),
    ],
)
async def test_of_a_part_the_newest_turns_are_there_and_it_grows_from_there_on(
    proxy: StartProxy, upstream: ScriptedUpstream, sections: dict[str, Any], headers: dict[str, str], restored: str
) -> None:
    running = await proxy(upstream, store=SQLITE, **sections)
    upstream.script = echo
    await asked(running, *"abcde", headers={**APPEND, **headers})
    await running.restart()
    await asked(running, *"fgh", headers={**APPEND, **headers})
    assert texts(upstream.calls[-3]) == [*pairs(*restored), "f"]
    assert texts(upstream.calls[-1]) == [*pairs(*restored, *"fg"), "h"]
    assert (await running.log("s"))[:2] == ["user: a", "assistant: re: a"]


async def test_tool_messages_are_not_restored_but_an_open_call_is(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store=SQLITE, sessions={"restore_turns": 2})
    upstream.script = [
        Answer(None, [tool_call("c1", "ls", {})]),
        Answer("two files"),
        Answer(None, [tool_call("c2", "ls", {})]),
        Answer("three"),
        Answer("ok"),
    ]
    tool = {"role": "tool", "tool_call_id": "c1", "content": "a b"}
    for sent in ("list", [tool], "again"):
        await running.chat(sent, session="s", headers=APPEND)
        await running.settled()
    await running.restart()
    await running.chat([{**tool, "tool_call_id": "c2"}], session="s", headers=APPEND)
    assert [(m["role"], m["content"]) for m in upstream.calls[-1].messages] == [
        ("user", "list"),
        ("assistant", "two files"),
        ("user", "again"),
        ("assistant", None),
        ("tool", "a b"),
    ]
    await running.settled()
    await running.restart()
    await asked(running, "and?")
    assert [m["role"] for m in upstream.calls[-1].messages] == ["user", "assistant", "user", "assistant", "user"]


async def test_a_client_that_sends_everything_sends_everything(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store=SQLITE, sessions={"restore_turns": 1})
    history: list[dict[str, Any]] = []
    for turn in range(4):
        history.append({"role": "user", "content": f"q{turn}"})
        said = await running.chat(history, session="s")
        assert upstream.calls[-1].body == said.sent
        history.append(said.message)
        await running.settled()
        await running.restart()


async def test_with_all_again_what_was_cut_stays_cut(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store=SQLITE, sessions={"restore_turns": 1})
    upstream.script = echo
    await asked(running, *"abc")
    await running.restart()
    await asked(running, "d")
    await running.restart(sessions={"restore_turns": "all"})
    await asked(running, "e")
    assert texts(upstream.calls[-1]) == [*pairs(*"cd"), "e"]
