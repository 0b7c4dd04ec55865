"""Commands in a user message: answered by the proxy, streamed or not; the upstream never sees one, and no conversation is another for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import openai
import pytest

from ctxproxy.core.commands import MARK
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running, Said
from tests.proxy.test_sessions import APPEND, SQLITE, assistant, echo, full, system, texts, upstream_echoes, user  # noqa: F401  fixtures
from tests.scripted_upstream import ScriptedUpstream, Window, tool_call

FILLER = "some words that say little " * 30


class Client:
    """One that resends everything."""

    def __init__(self, running: Running, **how: Any) -> None:
        self.running, self.how = running, how
        self.history: list[dict[str, Any]] = []

    async def say(self, text: str, **how: Any) -> Said:
        self.history.append(user(text))
        said = await self.running.chat(self.history, **{**self.how, **how})
        assert said.status == 200
        self.history.append(said.message)
        return said


async def ask(running: Running, text: str, **how: Any) -> str:
    """What a thin client's message is answered with."""
    said = await running.chat(text, session="s", headers=APPEND, **how)
    assert said.status == 200
    return said.text


@pytest.mark.parametrize("stream", [False, True])
async def test_a_command_is_answered_as_the_request_asked_for_it(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream)
    client = Client(running, session="s", stream=stream, n=2, stream_options={"include_usage": True})
    await client.say("one")
    said = await client.say("/context")
    assert said.text.startswith(f"{MARK} Context of s\n- messages: 2 in 1 turns (assistant 1, user 1), 5 characters\n")
    assert len(upstream.calls) == 1
    assert (said.headers["X-Context-Actions"], said.headers["X-Context-Attempts"], said.headers["X-Session-Id"]) == ("command=1", "0", "s")
    assert said.headers["Content-Type"].startswith("text/event-stream" if stream else "application/json")
    if stream:
        chunks = [json.loads(line.removeprefix(b"data: ")) for line in said.body.split(b"\n\n") if line.startswith(b"data: {")]
        assert said.body.endswith(b"data: [DONE]\n\n")
        assert {choice["index"] for one in chunks for choice in one["choices"]} == {0, 1}
        assert {one["model"] for one in chunks} == {"tested-model"}
        assert chunks[-1]["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    else:
        assert [(c["index"], c["finish_reason"]) for c in said.json["choices"]] == [(0, "stop"), (1, "stop")]
        assert said.json["model"] == "tested-model"
    assert await running.log("s") == ["user: one", "assistant: ok"]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_official_library_reads_the_answer_and_resends_it_unnoticed(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream)
    messages: list[Any] = []
    async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="sk-tested", max_retries=0) as client:
        for text in ("one", "/context", "/pins", "two"):
            messages.append(user(text))
            if stream:
                async with client.chat.completions.stream(model="gpt-4o", messages=messages) as events:
                    reply = (await events.get_final_completion()).choices[0]
            else:
                reply = (await client.chat.completions.create(model="gpt-4o", messages=messages)).choices[0]
            assert reply.finish_reason == "stop"
            messages.append(reply.message)
    assert [texts(call) for call in upstream.calls] == [["one"], ["one", "ok", "two"]]
    (page,) = (await running.admin("GET", "sessions"))[1]["data"]
    assert (page["messages"], page["turns"]) == (4, 2)


@pytest.mark.parametrize("named", [{"session": "s"}, {}], ids=["named", "derived"])
async def test_the_upstream_gets_the_clients_bytes_without_commands_and_their_answers(
    proxy: StartProxy, upstream: ScriptedUpstream, named: Mapping[str, Any]
) -> None:
    running = await proxy(upstream, store=SQLITE)
    client = Client(running, **named)
    await client.say("one")
    for text in ("/context", "/config", "/config max_turns 30", "/pins"):
        await client.say(text)
    await running.restart()
    client.running = running
    said = await client.say("two")
    assert said.headers["X-Context-Actions"] == "none"
    kept = [message for message in json.loads(said.sent)["messages"] if not str(message["content"]).startswith(("/", MARK))]
    assert upstream.calls[-1].messages == kept
    assert [json.dumps(one, ensure_ascii=False).encode() in upstream.calls[-1].body for one in kept] == [True] * 3
    await client.say("/context clear")
    await client.say("three")
    assert [len(call.messages) for call in upstream.calls] == [1, 3, 1]
    (page,) = (await running.admin("GET", "sessions"))[1]["data"]
    (branch,) = await running.branches(page["name"])
    assert branch == ["user: one", "assistant: ok", "user: two", "assistant: ok", "user: three", "assistant: ok"]


async def test_a_question_asked_again_before_or_after_a_command_is_a_branch_like_any_other(running: Running, upstream: ScriptedUpstream) -> None:
    history = await full(running, "one", "/context", "two", session="s")
    edited = [*history[:4], user("two, or three?")]
    await running.chat(edited, session="s")
    assert texts(upstream.calls[-1]) == ["one", "re: one", "two, or three?"]
    assert [branch[-2] for branch in await running.branches("s")] == ["user: two, or three?", "user: two"]


@pytest.fixture
async def running(proxy: StartProxy, upstream_echoes: ScriptedUpstream) -> Running:  # noqa: F811
    return await proxy(upstream_echoes)


async def test_a_thin_client_asks_in_one_message_and_nothing_of_it_is_kept(running: Running, upstream: ScriptedUpstream) -> None:
    for text in ("one", "two"):
        await ask(running, text)
    await running.settled()
    for how in ({}, {"headers": {}}):  # in mode auto too, where the manner is known by then
        said = await running.chat("/context", session="s", **{"headers": APPEND, **how})
        assert "4 in 2 turns" in said.text
    await ask(running, "three")
    assert texts(upstream.calls[-1]) == ["one", "re: one", "two", "re: two", "three"]
    assert len(upstream.calls) == 3


async def test_without_a_session_a_command_says_what_it_needs(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    said = await running.chat("/config max_turns 30")
    assert "X-Session-Id" in said.text
    assert "X-Session-Id" not in said.headers
    assert (await running.admin("GET", "sessions"))[1]["data"] == []
    assert upstream.calls == []


async def test_turned_off_they_are_texts_like_any_other(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, commands={"enabled": False})
    assert await ask(running, "/context") == "ok"
    assert texts(upstream.calls[0]) == ["/context"]
    assert await running.log("s") == ["user: /context", "assistant: ok"]


async def test_a_bypassed_request_is_none_of_ours(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    said = await running.chat("/context", session="s", headers={"X-Context-Bypass": "true"})
    assert (said.text, texts(upstream.calls[0])) == ("ok", ["/context"])


# ---------------------------------------------------------------- /context clear
@pytest.mark.parametrize("command", ["/context clear", "/clear"])
async def test_after_clearing_no_old_turn_is_sent_and_the_log_has_them(proxy: StartProxy, upstream: ScriptedUpstream, command: str) -> None:
    running = await proxy(upstream, store=SQLITE)
    client = Client(running, session="s")
    client.history = [system("be short")]
    for text in ("one", "two", command, "three"):
        await client.say(text)
    await running.restart()
    client.running = running
    await client.say("four")
    assert [texts(call) for call in upstream.calls[2:]] == [["be short", "three"], ["be short", "three", "ok", "four"]]
    assert len(await running.log("s")) == 8
    rows = (await running.admin("GET", "sessions/s/messages"))[1]["data"]
    assert [(row["state"], row["stage"]) for row in rows] == [("dropped", "context_clear")] * 4 + [("sent", None)] * 4


async def test_a_thin_clients_conversation_is_cleared_too_also_by_the_admin_api(running: Running, upstream: ScriptedUpstream) -> None:
    for text in ("one", "/context clear", "two", "three"):
        await ask(running, text)
    assert texts(upstream.calls[-1]) == ["two", "re: two", "three"]
    assert await running.admin("POST", "sessions/s/clear") == (200, {"id": (await running.session("s")).key.id, "cleared": 6})
    await ask(running, "four")
    assert texts(upstream.calls[-1]) == ["four"]
    made = (await running.admin("POST", "sessions/s/fork"))[1]
    await running.chat("five", session=made["name"], headers=APPEND)
    assert texts(upstream.calls[-1]) == ["four", "re: four", "five"]


async def test_each_branch_that_was_cleared_stays_so(running: Running, upstream: ScriptedUpstream) -> None:
    first = await full(running, "one", "two", "/clear", session="s")
    second = [*first[:2], user("2b"), assistant("re: 2b")]
    await running.chat(second[:3], session="s")
    await running.chat([*second, user("/clear")], session="s")
    for history in (first, second):
        await running.chat([*history, user("on")], session="s")
        assert texts(upstream.calls[-1]) == ["on"]
    await running.chat(first[:3], session="s")  # asked again from before the end of what was cleared
    assert texts(upstream.calls[-1]) == ["one", "re: one", "two"]


async def test_clearing_between_a_call_and_its_results_leaves_a_valid_array(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    upstream.script = Window(100_000)
    calls = {"role": "assistant", "content": None, "tool_calls": [tool_call("c1", "ls", {})]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "seen"}
    await running.chat([user("look"), calls, user("/clear")], session="s")
    said = await running.chat([user("look"), calls, user("/clear"), assistant(f"{MARK} Cleared"), result, user("go on")], session="s")
    assert said.status == 200
    assert texts(upstream.calls[-1]) == ["go on"]


async def test_there_is_nothing_to_clear_before_anything_was_said(running: Running) -> None:
    assert await ask(running, "/clear") == f"{MARK} There is nothing to clear yet."


# ---------------------------------------------------------------- /config
async def test_a_key_of_the_sessions_own_moves_the_trim_point_at_once_and_stays(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, store=SQLITE, context={"max_tokens": 100_000}, summarizer={"kind": "off"})
    client = Client(running, session="s")
    for n in range(12):
        await client.say(f"question {n} {FILLER}")
    assert len(upstream.calls[-1].messages) == 23
    set_to = await client.say("/config agent_max_context_tokens 1500")
    assert set_to.text == f"{MARK} max_tokens is 1500 for this session from the next request on."
    said = await client.say("small now?")
    assert int(said.headers["X-Context-Budget"]) == 1500
    assert int(said.headers["X-Context-Tokens-Sent"]) <= 1500
    await running.restart()
    client.running = running
    assert int((await client.say("still?", headers={"X-Context-Preset": "cowagent"})).headers["X-Context-Budget"]) == 1500
    view = (await running.admin("GET", "sessions/s/view"))[1]
    assert view["budget"]["prompt"] == 1500
    assert "max_tokens: 1500 (session)" in (await client.say("/config")).text
    assert "100000 counts now (settings)" in (await client.say("/config max_tokens default")).text
    assert int((await client.say("large again?")).headers["X-Context-Budget"]) == 100_000
    other = await running.chat("another session", session="t")
    assert int(other.headers["X-Context-Budget"]) == 100_000


async def test_30_turns_are_left_alone_once_that_is_the_limit(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"preset": "cowagent"}, summarizer={"kind": "off"})
    history = [message for n in range(29) for message in (user(f"q{n}"), assistant(f"a{n}"))]
    await running.chat([*history, user("/config agent_max_context_turns 30")], session="s")
    said = await running.chat([*history, user("q29")], session="s")
    assert (said.headers["X-Context-Actions"], len(upstream.calls[-1].messages)) == ("none", 59)
    said = await running.chat([*history, user("q29"), assistant("ok"), user("q30")], session="s")
    assert "trim_turns" in said.actions


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("/config max_tokns 3", "Did you mean max_tokens? Keys: preset, observe, max_tokens, "),
        ("/config admin.token", "There is no key admin.token that a session can have of its own. Keys: preset, "),
        ("/config max_turns many", "max_turns was not changed: expected whole number from 1 | null, not 'many'"),
        ("/config max_turns", "max_turns: null (default)"),
        ("/pin", "`/pin` needs a text: `/pin <text>`."),
        ("/forget", "`/forget` needs a text: `/forget <text>`."),
        ("/pins", "There are no pinned texts."),
        ("/forget a", "That text is shorter than 2 characters; give some words that were said."),
        ("/why", "`/why` needs a text: `/why <text>`."),
        ("/why " + "long " * 100, "That text is longer than 400 characters; give some words that were said."),
        ("/why it", "“it” stands in 0 of the 0 messages of this session."),
        ("/forget what nobody said", "Nothing holds “what nobody said”: nothing was forgotten."),
        ("/compact", "Nothing to compact: 0 turns with "),
    ],
)
async def test_what_cannot_be_done_is_said_with_the_reason(running: Running, upstream: ScriptedUpstream, text: str, answer: str) -> None:
    assert answer in await ask(running, text)
    assert upstream.calls == []


async def test_a_chinese_conversation_is_answered_in_chinese(running: Running) -> None:
    await ask(running, "请记住，我住在北京，喜欢吃面条。")
    assert "没有固定文本" in await ask(running, "/pins")


# ---------------------------------------------------------------- /compact, /pin, /forget
async def test_compact_works_whatever_the_size_and_keeps_two_turns(running: Running, upstream: ScriptedUpstream) -> None:
    client = Client(running, session="s")
    for n in range(8):
        await client.say(f"question {n} {FILLER}")
    said = await client.say("/compact")
    assert said.text.startswith(f"{MARK} Compacted: 8 turns with ")
    await client.say("and now?")
    sent = texts(upstream.calls[-1])
    assert [text.split(" some")[0] for text in sent[-5:]] == ["question 6", "re: question 6", "question 7", "re: question 7", "and now?"]
    assert len(sent) < 12
    assert len(await running.log("s")) == 18
    assert "summarized" in (await client.say("/context")).text


async def test_a_pinned_text_reaches_the_model_although_its_command_does_not(running: Running, upstream: ScriptedUpstream) -> None:
    await ask(running, "one")
    assert (await ask(running, "/pin The berth is 14.")).startswith(f"{MARK} Pinned as number 1: ")
    assert (await ask(running, "/pin The berth is 14.")).startswith(f"{MARK} Pinned as number 1: ")
    assert "1. The berth is 14." in await ask(running, "/pins")
    assert "Not pinned" in await ask(running, "/pin " + "far too much " * 20_000)
    for text in ("two", "three"):
        await ask(running, text)
        sent = texts(upstream.calls[-1])
        assert "The berth is 14." in sent[0]
        assert sent[2:4] == ["one", "re: one"]
    await ask(running, "/context clear")
    await ask(running, "four")
    assert ("The berth is 14." in texts(upstream.calls[-1])[0], texts(upstream.calls[-1])[-1]) == (True, "four")


async def test_what_is_to_be_forgotten_is_never_sent_again_on_any_branch(proxy: StartProxy, upstream_echoes: ScriptedUpstream) -> None:  # noqa: F811
    upstream = upstream_echoes
    running = await proxy(upstream, store=SQLITE)
    first = await full(running, "one", "My code is ZEBRA 7.", session="s")
    second = await full(running, "one", "Is zebra  7 a code?", session="s")
    await running.chat([*second, user("/pin zebra 7 counts")], session="s")
    said = await running.chat([*second, user("/forget Zebra 7")], session="s")
    assert said.text.startswith(f"{MARK} Forgotten: 4 messages, 1 pins and 0 facts that hold “Zebra 7” are never sent again.")
    await running.restart()
    for history in (first, second):
        await running.chat([*history, user("and now?")], session="s")
        assert "zebra" not in str(upstream.calls[-1].messages).lower()
        assert texts(upstream.calls[-1])[-1] == "and now?"


async def test_what_was_never_stored_can_be_forgotten_and_pinned_at_once(running: Running, upstream: ScriptedUpstream) -> None:
    history = [user("the code is ZEBRA"), assistant("I see"), user("what else?"), assistant("nothing")]
    said = await running.chat([*history, user("/forget zebra")], session="s")
    assert "Forgotten: 1 messages, 0 pins and 0 facts that hold" in said.text
    await running.chat([*history, user("on")], session="s")
    assert texts(upstream.calls[-1])[-3:] == ["what else?", "nothing", "on"]
    assert "ZEBRA" not in str(upstream.calls[-1].messages)


async def test_why_tells_where_a_phrase_went_and_how_it_comes_back(running: Running, upstream: ScriptedUpstream) -> None:
    client = Client(running, session="s")
    for text in ("the berth is 14", "two", "/clear", "three"):
        await client.say(text)
    said = (await client.say("/why Berth is 14")).text
    assert said.startswith(f"{MARK} “Berth is 14” stands in 2 of the 6 messages of this session.\nThe next request does not carry it.\n")
    assert "- user, turn 1: the berth is 14\n  now cleared: " in said
    await client.say(said.rpartition("`")[0].rpartition("`")[2])
    await client.say("four")
    assert "the berth is 14" in texts(upstream.calls[-1])[0]
    assert "The next request carries it." in (await client.say("/why berth is 14")).text


async def test_what_is_known_of_a_forgotten_text_goes_too(running: Running) -> None:
    await ask(running, "My name is Ann. Always answer in French.")
    await running.settled()
    assert "Ann" in await ask(running, "/facts")
    assert "and 1 facts that hold “Ann”" in await ask(running, "/forget Ann")
    assert "Ann" not in await ask(running, "/facts")
