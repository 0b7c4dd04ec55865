"""The recall tool over HTTP: offered for a whole session, answered by the proxy, never seen by the client."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import pytest

from ctxproxy.core import wire
from ctxproxy.core.recall_tool import MAX_ROUNDS, NAME
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy.recall_offer import MOST_MODELS, RecallOffers
from tests.proxy.conftest import StartProxy
from tests.proxy.running import CHAT, MODEL, PATIENCE_S, Running, Said
from tests.proxy.test_streams import gone
from tests.scripted_upstream import (
    CUT,
    Answer,
    Json,
    Overflow,
    Received,
    Reply,
    ScriptedUpstream,
    Sse,
    Stall,
    chunk,
    completion,
    error_body,
    tool_call,
)

ON = {"recall_tool": True, "max_tokens": 3000, "preset": "lossless"}
READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}
BOTH = pytest.mark.parametrize("stream", [False, True])
ORIGINAL = "line of file 0\n" * 160


def work(files: int = 6, question: str = "what is in file 0?") -> list[dict[str, Any]]:
    """A question, long results of calls, and a question again."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "read the files"}]
    for n in range(files):
        messages.append({"role": "assistant", "content": None, "tool_calls": [tool_call(f"c{n}", "read", {"path": f"f{n}"})]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"line of file {n}\n" * 160})
    return [*messages, {"role": "assistant", "content": "done"}, {"role": "user", "content": question}]


def recall(marker: str, call_id: str = "r1", **more: Any) -> dict[str, Any]:
    return tool_call(call_id, NAME, {"marker": marker, **more})


def names(call: Received) -> list[str]:
    return [tool["function"]["name"] for tool in call.json.get("tools") or []]


def marker_in(call: Received) -> str:
    """The marker that stands for the first file."""
    text = next(m["content"] for m in call.messages if m["role"] == "tool" and "[COMPACTED: " in m["content"])
    return re.findall(r"· ([0-9a-f]{16})\]", text)[0]


def results(call: Received) -> list[str]:
    """The results of recall calls in a prompt."""
    ids = {one["id"] for m in call.messages for one in m.get("tool_calls") or [] if one["function"]["name"] == NAME}
    return [m["content"] for m in call.messages if m["role"] == "tool" and m["tool_call_id"] in ids]


def recalls(*then: Reply | Callable[[Received], Reply]) -> Callable[[Received], Reply]:
    """A model that asks for the first file's original, then gives these replies, one a call."""
    left = list(then)

    def script(call: Received) -> Reply:
        if not results(call):
            return Answer(None, [recall(marker_in(call))])
        reply = left.pop(0)
        return reply(call) if callable(reply) else reply

    return script


def streamed(*deltas: Mapping[str, Any], finish: str | None = "tool_calls", usage: dict[str, int] | None = None) -> Sse:
    """A stream of these deltas."""
    return Sse(*[chunk(delta) for delta in deltas], *([chunk({}, finish=finish)] if finish else []), usage=usage)


async def ask(running: Running, messages: Any = None, **fields: Any) -> Said:
    return await running.chat(work() if messages is None else messages, session="s", **{"tools": [READ], **fields})


def shown(said: Said) -> str:
    """What the client can see of the tool."""
    return said.body.decode() if NAME in said.body.decode() else ""


@BOTH
async def test_an_original_is_fetched_and_the_client_sees_the_answer_alone(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = recalls(Answer("it holds lines"))
    said = await ask(running, stream=stream)
    assert (said.status, said.text, shown(said)) == (200, "it holds lines", "")
    assert results(upstream.calls[1]) == [ORIGINAL]
    assert upstream.calls[1].messages[: len(upstream.calls[0].messages)] == upstream.calls[0].messages
    assert upstream.calls[1].json["tools"] == upstream.calls[0].json["tools"]
    assert (said.actions["recall"], said.headers["X-Context-Attempts"]) == (1, "2")
    assert (await running.log("s"))[-2:] == ["user: what is in file 0?", "assistant: it holds lines"]
    metrics = await (await running.http.get(f"{running.url}/metrics")).text()
    assert 'ctxproxy_recalls_total{result="shown"} 1.0' in metrics
    assert (await running.session("s")).requests == 1


@BOTH
async def test_the_answer_of_the_last_round_passes_byte_for_byte(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    parts: list[Any] = [chunk({"role": "assistant", "content": ""}), b'data:  {"choices":[{"index":0,"delta":{"content":"\\u0068i"}}],"x":1}\r\n\r\n']
    last = Sse(*parts, chunk({}, finish="stop"), usage=usage) if stream else Json(200, completion("hi", usage=usage), [("X-Request-Id", "two")])
    upstream.script = recalls(last)
    said = await ask(running, stream=stream)
    assert said.body == (b"".join(piece for piece in last.pieces() if isinstance(piece, bytes)) if isinstance(last, Sse) else last.encoded())
    if not stream:
        assert said.headers["X-Request-Id"] == "two"


async def test_the_tool_is_offered_from_the_first_request_on_and_for_good(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=ON, store={"url": "sqlite:///s.db"})
    first = await running.chat("hi", session="s")
    assert names(upstream.calls[0]) == [NAME]
    assert {**upstream.calls[0].json, "tools": None} == {**json.loads(first.sent), "tools": None}
    await ask(running, "hi", tools=[READ], tool_choice="none")
    await running.restart(context={**ON, "recall_tool": False})
    await ask(running, [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "more"}])
    await running.chat("hi", session="later")
    await running.restart(context=ON)
    await running.chat("hi", session="later")
    assert [names(call) for call in upstream.calls[1:]] == [["read", NAME], ["read", NAME], [], []]
    status, forked = await running.admin("POST", "sessions/s/fork", {"id": "fork"})
    assert (status, (await running.session(forked["name"])).recall) == (201, True)


@BOTH
async def test_a_call_without_any_marker_in_the_prompt_is_answered_too(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = [Answer(None, [recall("0123456789abcdef")]), Answer("there is none")]
    said = await running.chat("hi", session="s", stream=stream)
    assert (said.text, shown(said)) == ("there is none", "")
    assert results(upstream.calls[1]) == ["[nothing in this conversation stands behind the marker 0123456789abcdef]"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"n": 2}, "several answers cannot go on together"),
        ({"functions": [READ["function"]]}, "the older form has no tools"),
        ({"tools": [READ, {"type": "function", "function": {"name": NAME}}]}, "the client has a tool of that name"),
        ({"tools": "none"}, "tools that are no list are the upstream's to refuse"),
    ],
)
async def test_some_requests_cannot_carry_it(proxy: StartProxy, upstream: ScriptedUpstream, fields: dict[str, Any], why: str) -> None:
    running = await proxy(upstream, context=ON)
    for _ in range(2):
        said = await running.chat("hi", session="s", **fields)
        assert upstream.calls[-1].body == said.sent, why


async def test_a_name_that_is_taken_is_told_once(proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = Answer(None, [recall("0123456789abcdef")])
    for _ in range(2):
        said = await running.chat("hi", session="s", tools=[{"type": "function", "function": {"name": NAME}}])
        assert said.message["tool_calls"][0]["function"]["name"] == NAME
    assert len([record for record in caplog.records if "itself" in record.getMessage()]) == 1
    assert len(upstream.calls) == 2


async def test_requests_that_nothing_is_kept_of_do_not_carry_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=ON, sessions={"derive": False})
    for said in (await running.chat("hi"), await running.chat("hi", session="s", headers={"X-Context-Bypass": "true"})):
        assert upstream.calls[-1].body == said.sent
    observing = await proxy(upstream, context={**ON, "observe": True})
    said = await observing.chat("hi", session="s")
    assert upstream.calls[-1].body == said.sent


@BOTH
async def test_parallel_calls_are_all_answered(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    calls = [recall("0123456789abcdef", "a"), {**recall(""), "id": "b", "function": {"name": NAME, "arguments": '{"marker": '}}, recall("zz", "c")]
    upstream.script = [Answer(None, calls), Answer("so be it")]
    said = await ask(running, "hi", stream=stream)
    assert said.text == "so be it"
    none = "[no marker: it is the 16 hex digits at the end of a shortened form]"
    assert results(upstream.calls[1]) == ["[nothing in this conversation stands behind the marker 0123456789abcdef]", none, none]
    sent = upstream.calls[1].messages[-4]["tool_calls"]
    assert [one["id"] for one in sent] == ["a", "b", "c"]
    assert all(isinstance(json.loads(one["function"]["arguments"]), dict) for one in sent)
    assert said.actions["recall"] == 3


async def test_only_this_sessions_originals_can_be_had(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=ON)
    await running.chat(work(), session="other", tools=[READ])
    marker = marker_in(upstream.calls[-1])
    upstream.script = [Answer(None, [recall(marker)]), Answer("no"), Answer(None, [recall(marker)]), Answer("no")]
    await ask(running, "hi")
    assert results(upstream.calls[-1]) == [f"[nothing in this conversation stands behind the marker {marker}]"]
    await running.chat("hi", session="other", key="sk-somebody-else", tools=[READ])
    assert results(upstream.calls[-1]) == [f"[nothing in this conversation stands behind the marker {marker}]"]


async def test_another_branch_of_the_session_can_be_had_and_nothing_that_was_forgotten(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=ON)
    await ask(running)
    marker = marker_in(upstream.calls[-1])
    elsewhere = [{"role": "user", "content": "a summary of my own"}]
    upstream.script = lambda call: Answer("fine") if results(call) else Answer(None, [recall(marker)])
    await ask(running, elsewhere)
    assert results(upstream.calls[-1]) == [ORIGINAL]
    tips = [row["tip"] for row in (await running.admin("GET", "sessions/s/messages"))[1]["data"] if row["tip"].startswith(marker)]
    tips = tips or [one.message.tip for one in await running.state.store.locate(marker)]
    await running.admin("DELETE", f"sessions/s/messages/{tips[0]}")
    for messages in (elsewhere, work()):
        await ask(running, messages)
        assert results(upstream.calls[-1]) == [f"[nothing in this conversation stands behind the marker {marker}]"]


@BOTH
async def test_rounds_are_bounded_and_the_last_one_has_no_tool(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = lambda call: Answer(None, [recall("0" * 16)]) if NAME in names(call) else Answer("well then")
    said = await ask(running, "hi", stream=stream)
    assert (said.text, len(upstream.calls)) == ("well then", 1 + MAX_ROUNDS)
    assert [names(call) for call in upstream.calls] == [["read", NAME]] * MAX_ROUNDS + [["read"]]
    assert len(results(upstream.calls[-1])) == MAX_ROUNDS


@BOTH
async def test_a_client_without_tools_keeps_the_tool_in_the_last_round_but_it_may_not_be_called(
    proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool
) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = lambda call: Answer(None, [recall("0" * 16)]) if "tool_choice" not in call.json else Answer("well then")
    said = await running.chat("hi", session="s", stream=stream)
    assert (said.text, upstream.calls[-1].json["tool_choice"], names(upstream.calls[-1])) == ("well then", "none", [NAME])


@BOTH
async def test_a_model_that_asks_on_and_on_is_asked_as_the_client_asked(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = lambda call: Answer(None, [recall("0" * 16)])
    said = await running.chat("hi", session="s", stream=stream)
    assert len(upstream.calls) == 2 + MAX_ROUNDS
    assert upstream.calls[-1].body == said.sent
    assert (shown(said), said.status, said.message.get("tool_calls")) == ("", 200, None)
    assert (b'"finish_reason":"stop"' in said.body.replace(b": ", b":"), b"tool_calls" in said.body) == (True, False)


@BOTH
async def test_what_the_model_says_before_it_asks_is_part_of_the_answer(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = [Answer("Let me look.", [recall("0" * 16)]), Answer("It is so.")]
    said = await ask(running, "hi", stream=stream)
    assert (said.text, shown(said)) == ("Let me look.\n\nIt is so.", "")
    assert upstream.calls[1].messages[-2]["content"] == "Let me look."
    assert await running.log("s") == ["user: hi", "assistant: Let me look.\n\nIt is so."]
    if stream:
        assert (said.body.count(b'"role"'), said.body.count(b"[DONE]"), said.body.count(b'"finish_reason": "')) == (1, 1, 1)


@BOTH
async def test_beside_a_call_of_the_clients_it_is_taken_out(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    own = tool_call("c1", "read", {"path": "x"})
    upstream.script = [Answer(None, [recall("0" * 16), own])]
    said = await ask(running, "hi", stream=stream)
    assert [call["id"] for call in said.message["tool_calls"]] == ["c1"]
    assert (shown(said), b'"finish_reason":"tool_calls"' in said.body.replace(b": ", b":")) == ("", True)
    upstream.script = Answer("fine")
    messages = [{"role": "user", "content": "hi"}, said.message, {"role": "tool", "tool_call_id": "c1", "content": "x"}]
    await ask(running, messages, stream=stream)
    assert await running.log("s") == ["user: hi", "assistant: ", "tool: x", "assistant: fine"]


@BOTH
async def test_what_does_not_fit_comes_in_pages_and_the_prompt_stays_within_its_budget(
    proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool
) -> None:
    running = await proxy(upstream, context={**ON, "max_tokens": 2000})
    long = "".join(f"{n} is a number\n" for n in range(1500))
    messages = work()
    messages[2]["content"] = long
    found: list[str] = []

    def script(call: Received) -> Reply:
        found[:] = results(call)
        if len(found) == 2:
            return Answer("seen")
        offset = int(found[0].rpartition(" ")[2].rstrip("]")) if found else 0
        return Answer(None, [recall(marker_in(call), offset=offset)])

    upstream.script = script
    said = await ask(running, messages, stream=stream)
    first, note = found[0].rsplit("\n[characters ", 1)
    assert long.startswith(first) and len(first) > 500
    assert note == f"0 to {len(first)} of {len(long)}; the next offset is {len(first)}]"
    assert said.text == "seen"
    second = found[1].rsplit("\n[characters ", 1)
    assert second[0] == long[len(first) : len(first) + len(second[0])] or "the context is full" in found[1]
    count = running.state.tokenizer(MODEL, running.state.settings()).count
    assert sum(count(m["content"] or "") for m in upstream.calls[-1].messages) < 2000


@BOTH
async def test_an_overflow_in_a_round_is_answered_without_the_original(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = recalls(Overflow(4000, 5000), Answer("from the short form"))
    said = await ask(running, stream=stream)
    assert said.text == "from the short form"
    assert "the context is full" in results(upstream.calls[-1])[0]


@BOTH
async def test_a_prompt_that_is_refused_for_what_a_round_added_goes_out_as_the_client_asked(
    proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool
) -> None:
    running = await proxy(upstream, context=ON)
    asks = Answer(None, [recall("0" * 16)])
    overflows = [asks, Overflow(4000, 5000), Overflow(4000, 4100), Answer("as asked")]
    upstream.script = [*overflows, asks, Json(400, error_body("roles must alternate")), Answer("as asked")]
    for calls in (4, 7):
        said = await ask(running, "hi", stream=stream)
        assert (said.text, upstream.calls[-1].body, len(upstream.calls)) == ("as asked", said.sent, calls)


@BOTH
async def test_an_error_in_a_round_is_the_clients_while_nothing_is_shown(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = recalls(Json(429, error_body("slow down"), [("Retry-After", "7")]))
    said = await ask(running, stream=stream)
    assert (said.status, said.json, said.headers["Retry-After"]) == (429, error_body("slow down"), "7")
    assert (await running.log("s")) == []
    upstream.script = recalls(Stall(asyncio.Event()))
    quick = await proxy(upstream, context=ON, upstream={"first_byte_timeout_s": 1})
    assert (await ask(quick, stream=stream)).status == 504


@pytest.mark.parametrize("reply", [Json(429, error_body("slow down")), Json(503, b"<html>"), Json(200, completion("whole"))])
async def test_an_error_behind_something_shown_is_an_error_event_and_a_broken_stream(
    proxy: StartProxy, upstream: ScriptedUpstream, reply: Json
) -> None:
    running = await proxy(upstream, context=ON)
    seen = b""
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    upstream.script = [Answer("Let me look.", [recall("0" * 16)]), reply]
    headers = {"X-Session-Id": "s", "Authorization": "Bearer sk-tested"}
    async with asyncio.timeout(PATIENCE_S), running.http.post(running.url + CHAT, data=json.dumps(asked), headers=headers) as answer:
        with pytest.raises(aiohttp.ClientPayloadError):
            while True:
                seen += await answer.content.readany()
    told = json.loads(seen.rpartition(b"data: ")[2])["error"]
    assert told["message"] == ("slow down" if reply.status == 429 else "the upstream did not go on with its answer after a call of the recall tool")
    assert await running.branches("s") == [["user: hi", "assistant: Let me look. (partial)"]]


async def test_a_stream_is_live_before_and_after_a_round(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=ON)
    gates = [asyncio.Event() for _ in range(4)]
    call = chunk({"tool_calls": [{"index": 0, **recall("0" * 16)}]})
    first = Sse(
        chunk({"role": "assistant"}),
        chunk({"reasoning_content": "hm"}),
        gates[0],
        chunk({"content": "One."}),
        gates[1],
        call,
        chunk({}, finish="tool_calls"),
    )
    second = Sse(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Two."}),
        gates[2],
        chunk({"content": " Three."}),
        gates[3],
        chunk({}, finish="stop"),
    )
    upstream.script = [first, second]
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    async with asyncio.timeout(PATIENCE_S), running.http.post(running.url + CHAT, data=json.dumps(asked), headers={"X-Session-Id": "s"}) as answer:
        for gate, mark in zip(gates, (b"hm", b"One.", b"Two.", b" Three."), strict=True):
            got = b""
            while mark not in got:
                got += await answer.content.readany()
            gate.set()
        await answer.read()
    assert await running.log("s") == ["user: hi", "assistant: One.\n\nTwo. Three."]


@pytest.mark.parametrize("on_disconnect", ["cancel", "drain"])
@pytest.mark.parametrize("said", ["Let me look.", None])
@pytest.mark.parametrize("begun", [True, False])
async def test_a_client_that_leaves_in_a_round(
    proxy: StartProxy, upstream: ScriptedUpstream, on_disconnect: str, said: str | None, *, begun: bool
) -> None:
    running = await proxy(upstream, context=ON, upstream={"on_disconnect": on_disconnect})
    gate = asyncio.Event()
    late = Sse(chunk({"role": "assistant"}), gate, chunk({"content": "late"}), chunk({}, finish="stop")) if begun else Stall(gate, Answer("late"))
    upstream.script = [Answer(said, [recall("0" * 16)]), late]
    asking = asyncio.create_task(ask(running, "hi", stream=True))
    call = await upstream.call(1)
    asking.cancel()
    await asyncio.wait([asking])
    await gone(running)
    async with asyncio.timeout(PATIENCE_S):
        if on_disconnect == "cancel":
            await call.gone.wait()
            await running.settled()
            kept = [["user: hi", f"assistant: {said} (partial)"]] if said else []
            assert (await running.branches("s") if await running.state.store.find("s") else []) == kept
        else:
            gate.set()
            await call.done.wait()
            assert await running.log("s") == ["user: hi", f"assistant: {said}\n\nlate" if said else "assistant: late"]


async def test_a_stream_that_breaks_off_in_a_round_breaks_off_for_the_client(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = [Answer("Let me look.", [recall("0" * 16)]), Sse("half", CUT)]
    with pytest.raises(aiohttp.ClientPayloadError):
        await ask(running, "hi", stream=True)
    assert await running.branches("s") == [["user: hi", "assistant: Let me look.\n\nhalf (partial)"]]


@BOTH
async def test_a_thin_client_has_it_too(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON, sessions={"mode": "append"})
    await ask(running, work())
    upstream.script = recalls(Answer("it holds lines"))
    said = await ask(running, "and what is in file 0?", stream=stream)
    assert (said.text, results(upstream.calls[-1])) == ("it holds lines", [ORIGINAL])
    assert (await running.log("s"))[-2:] == ["user: and what is in file 0?", "assistant: it holds lines"]


@pytest.mark.parametrize(
    "refusal", [Json(400, {"error": "tested-model does not support tools"}), Json(500, error_body("tools param requires --jinja flag"))]
)
@BOTH
async def test_a_model_that_takes_no_tools_is_not_offered_it_again(
    proxy: StartProxy, upstream: ScriptedUpstream, refusal: Json, caplog: pytest.LogCaptureFixture, *, stream: bool
) -> None:
    running = await proxy(upstream, context=ON)
    upstream.script = lambda call: refusal if "tools" in call.json else Answer("without")
    said = await running.chat("hi", session="s", stream=stream)
    assert (said.text, said.actions["recall_refused"], upstream.calls[1].body) == ("without", 1, said.sent)
    assert not (await running.session("s")).recall
    for session in ("s", "other"):
        said = await running.chat("hi", session=session, stream=stream)
        assert upstream.calls[-1].body == said.sent
    assert len(upstream.calls) == 4
    assert len([record for record in caplog.records if "is not offered to 'tested-model'" in record.getMessage()]) == 1


async def test_an_error_that_is_the_clients_own_stays_its_own(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=ON)
    for status, message in ((400, "temperature is wrong"), (429, "too many tool calls")):
        upstream.script = Json(status, error_body(message))
        said = await ask(running, "hi")
        assert (said.status, said.json) == (status, error_body(message))
    assert len(upstream.calls) == 2
    upstream.script = Json(400, error_body("tools[0] is wrong"))
    assert (await ask(running, "hi")).json == error_body("tools[0] is wrong")
    assert len(upstream.calls) == 4
    upstream.script = Answer("ok")
    await ask(running, "hi")
    assert names(upstream.calls[-1]) == ["read", NAME]


@BOTH
async def test_a_coded_answer_is_asked_for_plain_and_read_all_the_same(proxy: StartProxy, upstream: ScriptedUpstream, *, stream: bool) -> None:
    running = await proxy(upstream, context=ON)
    coded = Sse(chunk({"tool_calls": [{"index": 0, **recall("0" * 16)}]}), chunk({}, finish="tool_calls"), encoding="gzip")
    upstream.script = [coded if stream else Answer("Look.", [recall("0" * 16)]), Sse("so be it", encoding="gzip") if stream else Answer("so be it")]
    said = await ask(running, "hi", stream=stream, headers={"Accept-Encoding": "gzip"})
    assert [call.header("Accept-Encoding") for call in upstream.calls] == ["identity"] * 2
    assert (said.text.removeprefix("Look.\n\n"), said.headers.get("Content-Encoding"), shown(said)) == ("so be it", None, "")


@BOTH
async def test_a_fault_of_ours_costs_the_original_and_not_the_answer(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, *, stream: bool
) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("a fault")

    running = await proxy(upstream, context=ON)
    monkeypatch.setattr("ctxproxy.core.recall_tool.recalled", fails)
    upstream.script = recalls(Answer("so be it"))
    said = await ask(running, stream=stream)
    assert said.text == "so be it"
    assert results(upstream.calls[-1])[0].endswith("cannot be read now]")
    monkeypatch.setattr("ctxproxy.core.recall_stream._event", fails)
    upstream.script = Answer("relayed all the same")
    said = await ask(running, "hi", stream=stream)
    assert said.text == "relayed all the same"


async def test_the_upstreams_own_count_of_a_round_teaches_nothing(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"recall_tool": True})
    usage = {"prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901}
    upstream.script = [Answer(None, [recall("0" * 16)]), Json(200, completion("ok", usage=usage))] * 9
    for _ in range(9):
        await running.chat("hi", session="s")
    await running.settled()
    assert running.state.windows.factor(upstream.url, MODEL, only_up=False) == 1.0


async def test_a_server_may_answer_a_stream_request_with_a_whole_body_and_the_next_round_with_a_stream(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await proxy(upstream, context=ON)
    asks = Json(200, completion(None, tool_calls=[recall("0" * 16)]))
    upstream.script = [asks, Answer("streamed"), streamed({"tool_calls": [{"index": 0, **recall("0" * 16)}]}), Json(200, completion("whole"))]
    assert [(await ask(running, "hi", stream=True)).text for _ in range(2)] == ["streamed", "whole"]
    assert await running.log("s") == ["user: hi", "assistant: whole"]
    empty = Json(200, {"choices": [], "object": "chat.completion"})
    upstream.script = empty
    assert (await ask(running, "hi")).body == empty.encoded()


async def test_a_long_original_is_fetched_beside_other_work(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={**ON, "max_tokens": 30_000})
    messages = work()
    messages[2]["content"] = long = "".join(f"{n} is a number\n" for n in range(4000))
    upstream.script = recalls(Answer("seen"))
    await ask(running, [*messages[:3], *work(40)])
    assert long.startswith(results(upstream.calls[-1])[0].rsplit("\n[characters ", 1)[0][:20_000])
    assert len(results(upstream.calls[-1])[0]) > 20_000


async def test_a_store_that_cannot_be_read_in_a_round_costs_the_original_alone(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: str) -> Any:
        raise StoreUnavailable("no")

    running = await proxy(upstream, context=ON)
    monkeypatch.setattr(running.state.store, "locate", fails)
    upstream.script = [Answer(None, [recall("0" * 16)]), Answer("so be it")]
    assert (await ask(running, "hi")).text == "so be it"
    assert "ctxproxy_store_errors_total 1.0" in await (await running.http.get(f"{running.url}/metrics")).text()


async def test_with_the_prompt_of_an_earlier_decision_too_the_original_comes_from_the_log(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=ON, store={"url": "sqlite:///s.db"})
    await ask(running)
    await running.restart()
    upstream.script = recalls(Answer("it holds lines"))
    said = await ask(running, [*work(), {"role": "assistant", "content": "ok"}, {"role": "user", "content": "and file 0?"}])
    assert (results(upstream.calls[-1]), said.actions) == ([ORIGINAL], {"replay": 1, "recall": 1})


def test_models_that_take_no_tools_are_remembered_within_bounds() -> None:
    offers = RecallOffers()
    for n in range(MOST_MODELS + 5):
        offers.refused(wire.parse(b'{"model":"m%d","messages":[]}' % n), "http://upstream.example")
    assert len(offers._refusing) == MOST_MODELS
