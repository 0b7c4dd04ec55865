"""After an overflow: the ladder over HTTP, what it learns, where it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.scripted_upstream import (
    Answer,
    Json,
    Overflow,
    Received,
    ScriptedUpstream,
    Sse,
    Stall,
    Window,
    chunk,
    completion,
    error_body,
    event,
    rough_tokens,
    tool_call,
)

OFF = {"kind": "off"}
TOO_LONG = error_body(
    "This model's maximum context length is 4000 tokens. However, your messages resulted in 9000 tokens.", code="context_length_exceeded"
)


def talk(turns: int, words: int = 120) -> list[dict[str, Any]]:
    """Turns of question and answer that end with a short question."""
    filler = "some words that say little " * (words // 5)
    asked = [{"role": role, "content": f"{role} {n}: {filler}"} for n in range(turns) for role in ("user", "assistant")]
    return [{"role": "system", "content": "Be brief."}, *asked, {"role": "user", "content": "last question?"}]


def work(calls: int, chars: int) -> list[dict[str, Any]]:
    """One question and many tool calls with long results."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Use the tools."}, {"role": "user", "content": "find the bug"}]
    for n in range(calls):
        messages.append({"role": "assistant", "content": None, "tool_calls": [tool_call(f"c{n}", "read", {"path": f"f{n}.py"})]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"line of file {n}\n" * (chars // 15)})
    return messages


def too_long_then(refusal: Any, limit_tokens: int = 4000) -> Callable[[Received], Any]:
    """An upstream that says "too long" in its own way until the prompt is short enough."""
    return lambda call: refusal if rough_tokens(call.json) > limit_tokens else Answer("fits")


WAYS = {
    "a status": Json(400, TOO_LONG),
    "a status of a gateway": Json(413, {"detail": "prompt is too long: 9000 tokens > 4000 maximum"}),
    "an error in a body of status 200": Json(200, TOO_LONG),
    "an error as a stream's first event": Sse(event(TOO_LONG), done=False),
    "an error behind the bare role": Sse(event(chunk({"role": "assistant", "content": ""})), event(TOO_LONG), done=True),
    "an error event": Sse(b"event: error\n" + event({"message": TOO_LONG["error"]["message"], "code": "context_length_exceeded"}), done=False),
    "an error as JSON under the type of a stream": Sse(json.dumps(TOO_LONG).encode(), finish=None, done=False),
    "an empty answer of no length": Sse(
        event(chunk({"role": "assistant", "content": ""})),
        event({**chunk({}, finish="length"), "usage": {"prompt_tokens": 4000, "completion_tokens": 0, "total_tokens": 4000}}),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", [True, False])
async def test_an_overflow_is_rescued_however_it_is_told(proxy: StartProxy, upstream: ScriptedUpstream, way: str, *, stream: bool) -> None:
    running = await proxy(upstream, summarizer=OFF)
    upstream.script = too_long_then(WAYS[way])
    said = await running.chat(talk(30), session="s", stream=stream)
    assert (said.status, said.text) == (200, "fits")
    assert said.actions["rescue"] == 1
    assert int(said.headers["X-Context-Attempts"]) == len(upstream.calls) <= 4
    assert upstream.calls[-1].messages[0] == {"role": "system", "content": "Be brief."}
    assert upstream.calls[-1].messages[-1] == {"role": "user", "content": "last question?"}
    assert (await running.log("s"))[-1] == "assistant: fits"
    assert len(await running.log("s")) == 62


@pytest.mark.parametrize("messages", [talk(40), talk(3, words=4000), work(40, 2000), work(3, 30_000), [*talk(10), *work(6, 8000)[1:]]])
@pytest.mark.parametrize("limit_tokens", [600, 1500, 4000])
async def test_the_client_sees_no_overflow_while_a_legal_smaller_request_exists(
    proxy: StartProxy, upstream: ScriptedUpstream, messages: list[dict[str, Any]], limit_tokens: int
) -> None:
    running = await proxy(upstream, summarizer={"kind": "extractive"})
    upstream.script = Window(limit_tokens)
    said = await running.chat(messages)
    assert (said.status, said.text) == (200, "ok")
    assert len(upstream.calls) <= 4


async def test_the_window_is_learned_and_used_at_the_next_request(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, summarizer=OFF, store={"url": "sqlite:///s.db"})
    upstream.script = Window(4000)
    await running.chat(talk(40), session="a")
    calls = len(upstream.calls)
    assert calls > 1
    said = await running.chat(talk(41), session="b")
    assert (said.status, len(upstream.calls)) == (200, calls + 1)
    assert said.headers["X-Context-Window"] == "4000 (learned)"
    await running.restart()
    assert (await running.chat(talk(42), session="c")).headers["X-Context-Attempts"] == "1"


async def test_the_windows_that_a_client_is_told_of_are_used(proxy: StartProxy) -> None:
    async with ScriptedUpstream(Answer("ok"), models={"tested-model": 5000, "other": None}) as upstream:
        running = await proxy(upstream)
        async with running.http.get(f"{running.url}/v1/models") as answer:
            assert [row["id"] for row in (await answer.json())["data"]] == ["tested-model", "other"]
        said = await running.chat(talk(40))
    assert (said.headers["X-Context-Window"], said.headers["X-Context-Attempts"]) == ("5000 (upstream)", "1")
    assert rough_tokens(upstream.calls[0].json) < 5000


@pytest.mark.parametrize("stream", [True, False])
async def test_a_rescue_is_kept_and_replayed(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, summarizer=OFF)
    upstream.script = Window(4000)
    history = talk(30)
    for turn in range(3):
        said = await running.chat(history, session="s", stream=stream)
        history += [said.message, {"role": "user", "content": f"and {turn}?"}]
    first, second, third = (call.messages for call in upstream.calls[-3:])
    assert second[: len(first)] == first
    assert third[: len(second)] == second


@pytest.mark.parametrize("words", [
    "This model's maximum context length is 4000 tokens. However, you requested 4008 tokens (10 in the messages, 3998 in the completion).",
    "'max_tokens' is too large: 3998. This model's maximum context length is 4000 tokens and your request has 10 input tokens (3998 > 4000 - 10).",
])  # fmt: skip
async def test_only_the_output_is_lowered_where_only_the_output_is_too_much(proxy: StartProxy, upstream: ScriptedUpstream, words: str) -> None:
    running = await proxy(upstream)
    upstream.script = [Json(400, error_body(words)), Answer("ok")]
    said = await running.chat("hi", max_tokens=3998)
    assert (said.status, said.actions) == (200, {"clamp_output": 1})
    assert upstream.calls[1].messages == upstream.calls[0].messages
    assert upstream.calls[1].json["max_tokens"] < 3998


async def test_when_nothing_helps_the_client_gets_the_upstreams_own_error_byte_for_byte(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, summarizer=OFF)
    own = b'{ "error" : {"message":"prompt is too long: 9000 tokens > 4000 maximum", "code":"context_length_exceeded"} }\n'
    upstream.script = Json(400, own, [("X-Request-Id", "r-1")])
    said = await running.chat(talk(20), session="s", stream=True)
    assert (said.status, said.body, said.headers["X-Request-Id"]) == (400, own, "r-1")
    assert 2 <= len(upstream.calls) <= 4
    assert int(said.headers["X-Context-Attempts"]) == len(upstream.calls)
    assert [len(call.body) for call in upstream.calls] == sorted({len(call.body) for call in upstream.calls}, reverse=True)


async def test_the_final_error_names_the_parts_where_that_is_asked_for(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, summarizer=OFF, recovery={"final_error": "openai"})
    upstream.script = Sse(event(TOO_LONG), done=False)
    said = await running.chat(talk(20), stream=True)
    error = said.json["error"]
    assert (said.status, error["code"], error["type"], said.headers["Content-Type"]) == (
        400,
        "context_length_exceeded",
        "invalid_request_error",
        "application/json",
    )
    for part in ("4000 tokens", "system messages, tools", "newest messages", "for the reply"):
        assert part in error["message"]


async def test_other_errors_pass_untouched_at_the_first_call(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream)
    for status, body in (
        (401, b'{"error":{"message":"bad key"}}'),
        (429, b'{"error":{"message":"Rate limit: 4000 tokens per min"}}'),
        (500, b"\xff\0"),
    ):
        upstream.script = Json(status, body, [("Retry-After", "3")])
        said = await running.chat(talk(20), stream=True)
        assert (said.status, said.body, said.headers["Retry-After"], said.headers["X-Context-Attempts"]) == (status, body, "3", "1")


async def test_recovery_can_be_switched_off(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, recovery={"enabled": False})
    upstream.script = [Overflow(4000, 9000)]
    assert ((await running.chat(talk(20))).status, len(upstream.calls)) == (400, 1)


async def test_past_the_deadline_no_more_is_tried(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, recovery={"deadline_s": 0.000001})
    upstream.script = [Overflow(4000, 9000)]
    assert ((await running.chat(talk(20))).status, len(upstream.calls)) == (400, 1)


def is_summary(call: Received) -> bool:
    return call.header("X-Purpose") == "summary"


REFUSALS: dict[str, Any] = {
    "fails": Json(500, {"error": {"message": "down"}}),
    "refuses": Answer("I'm sorry, but I can't help with that."),
    "answers nothing": Answer(""),
    "breaks off": Json(200, b'{"choices":[{"mess'),
    "is too long itself": Overflow(10, 9000),
}


@pytest.mark.parametrize("way", REFUSALS)
@pytest.mark.parametrize("background", [True, False])
async def test_a_summarizer_that_gives_nothing_keeps_no_client_from_its_answer(
    proxy: StartProxy, upstream: ScriptedUpstream, way: str, *, background: bool
) -> None:
    running = await proxy(upstream, summarizer={"background": background})
    fits = Window(3000)
    upstream.script = lambda call: REFUSALS[way] if is_summary(call) else fits(call)
    said = await running.chat(talk(40), session="s")
    assert (said.status, said.text) == (200, "ok")
    await running.settled()
    assert sum(not is_summary(call) for call in upstream.calls) <= 4


@pytest.mark.parametrize("background", [True, False])
async def test_a_summarizer_that_stalls_is_left_after_its_time(proxy: StartProxy, upstream: ScriptedUpstream, *, background: bool) -> None:
    running = await proxy(upstream, summarizer={"timeout_s": 1, "background": background})
    fits, never = Window(3000), asyncio.Event()
    upstream.script = lambda call: Stall(never) if is_summary(call) else fits(call)
    assert (await running.chat(talk(40), session="s")).text == "ok"
    await running.settled()
    assert any(is_summary(call) for call in upstream.calls)


async def test_a_fault_on_the_ladder_gives_the_upstreams_own_refusal(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ctxproxy.proxy.rescue.replanned", broken)
    running = await proxy(upstream)
    upstream.script = [Json(400, TOO_LONG)]
    said = await running.chat(talk(20))
    assert (said.status, said.json, said.actions) == (400, TOO_LONG, {"failed_open": 1})


async def grown(running: Running, turns: int, *, stream: bool) -> None:
    """A client that resends everything, for many turns."""
    history: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for turn in range(turns):
        history.append({"role": "user", "content": f"question {turn}: " + "some words that say little " * (turn % 7)})
        said = await running.chat(history, session="s", stream=stream)
        history.append(said.message)


@pytest.mark.parametrize("stream", [True, False])
async def test_between_two_compactions_the_array_only_grows_at_its_end(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context={"max_tokens": 3000}, summarizer={"kind": "extractive"})
    answer = completion("an answer of a few words " * 6)
    upstream.script = lambda call: Answer(answer["choices"][0]["message"]["content"])
    await grown(running, 200, stream=stream)
    before, broken = b"", 0
    for call in upstream.calls:
        array = call.body[call.body.index(b'"messages"') : call.body.rindex(b"]")].rstrip()
        broken += not level(array).startswith(level(before))
        before = array
    assert len(upstream.calls) == 200
    compactions = (await running.session("s")).compactions
    assert broken == compactions
    assert 2 <= compactions <= 20


def level(array: bytes) -> bytes:
    """The array without the client's own blanks between its messages, which a rewritten array has not."""
    return array.replace(b'}, {"role"', b'},{"role"').replace(b'"messages": [', b'"messages":[')
