"""Asking a model for a summary: what is sent, what is taken, how few calls it costs when things go wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from ctxproxy.core.messages import Message
from ctxproxy.core.records import Summary
from ctxproxy.core.summaries import MAX_CALLS, Need
from ctxproxy.errors import UpstreamTimeout, UpstreamUnreachable
from ctxproxy.ports import Call, Headers
from ctxproxy.proxy.summarizer import ANSWER_BYTES, Summarizer, Writer
from tests.core.histories import assistant, count_text, talk, user

GOOD = "The user asked several small questions about orders; each was answered, nothing is open."
OVERFLOW = {
    "error": {
        "message": "This model's maximum context length is 1500 tokens. However, your messages resulted in 9000 tokens.",
        "code": "context_length_exceeded",
    }
}


class Answer:
    """A response that is all there."""

    def __init__(self, status: int, body: bytes, headers: Headers = ()) -> None:
        self.status, self.reason, self.headers, self.closed = status, "", headers, False
        self._body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self._body), 65_536):
            yield self._body[at : at + 65_536]

    async def close(self) -> None:
        self.closed = True


class Breaks(Answer):
    """A response whose body breaks off."""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b'{"choi'
        raise UpstreamUnreachable("broken off")


class Scripted:
    """An upstream that answers by a script, the last reply again and again; it keeps the calls."""

    def __init__(self, *replies: Any) -> None:
        self.replies = replies
        self.calls: list[Call] = []
        self.answers: list[Answer] = []

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(call.body) for call in self.calls]  # type: ignore[arg-type]

    async def send(self, call: Call) -> Answer:
        reply = self.replies[min(len(self.calls), len(self.replies) - 1)]
        self.calls.append(call)
        if callable(reply):
            reply = reply(json.loads(call.body))  # type: ignore[arg-type]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, asyncio.Event):
            await reply.wait()
            reply = said(GOOD)
        self.answers.append(reply)
        return reply

    async def close(self) -> None: ...


def body_of(text: str | None, finish: str = "stop", **message: Any) -> bytes:
    answer = {"role": "assistant", "content": text, **message}
    return json.dumps({"object": "chat.completion", "choices": [{"index": 0, "message": answer, "finish_reason": finish}]}).encode()


def said(text: str | None, finish: str = "stop", **message: Any) -> Answer:
    return Answer(200, body_of(text, finish, **message))


def refused(status: int, message: str) -> Answer:
    return Answer(status, json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": None}}).encode())


def need(messages: Sequence[Message] = tuple(talk(20)), language: Any = "en") -> Need:
    return Need("tip-1", tuple(messages), language, 300, None, 10.0, 20.0)


async def made(upstream: Scripted, wanted: Need | None = None, *, window: int = 32_000, timeout_s: float = 30, **changes: Any) -> Summary | None:
    writer = Writer(upstream, changes.pop("base_url", "http://upstream.example/v1"), "sum-model", window, changes.pop("credentials", ()))
    spend = changes.pop("spend", lambda _: None)
    return await Summarizer(timeout_s, clock=lambda: 1234.0).make(wanted or need(), writer, count_text, spend)


# ---------------------------------------------------------------- what is sent
async def test_a_summary_costs_one_call_with_model_messages_and_length_only() -> None:
    upstream = Scripted(said(GOOD))
    summary = await made(upstream, credentials=[("Authorization", "Bearer key-A")])
    (call,), (body,) = upstream.calls, upstream.bodies
    assert (call.method, call.url) == ("POST", "http://upstream.example/v1/chat/completions")
    assert body.keys() == {"model", "messages", "max_tokens"}
    assert body["model"] == "sum-model"
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert dict(call.headers) == {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "X-Purpose": "summary",
        "Authorization": "Bearer key-A",
    }
    assert summary is not None
    assert (summary.tip, summary.kind, summary.model, summary.messages) == ("tip-1", "llm", "sum-model", 41)
    assert (summary.start, summary.end, summary.created, summary.tokens) == (10.0, 20.0, 1234.0, count_text(summary.text))
    assert upstream.answers[0].closed


def used(text: str, **usage: int) -> Answer:
    return Answer(200, json.dumps({**json.loads(body_of(text)), "usage": usage}).encode())


@pytest.mark.parametrize(
    ("answers", "costs"),
    [
        ([used(GOOD, prompt_tokens=1000, completion_tokens=50)], [1200]),
        ([used("", prompt_tokens=1000), used(GOOD, prompt_tokens=900, completion_tokens=50)], [1000, 1100]),
        ([used("", prompt_tokens=-5), used("", prompt_tokens=10**30)], [0, 10_000_000]),
        ([refused(500, "out of order")], []),
    ],
)
async def test_each_answered_call_costs_what_the_upstream_says_it_used(answers: list[Answer], costs: list[float]) -> None:
    told: list[float] = []
    await made(Scripted(*answers), spend=told.append)
    assert told == costs


async def test_a_call_without_usage_costs_what_we_count() -> None:
    told: list[float] = []
    upstream = Scripted(said(GOOD))
    await made(upstream, spend=told.append)
    (body,) = upstream.bodies
    assert told == [sum(count_text(m["content"]) for m in body["messages"]) + 4 * count_text(GOOD)]


async def test_rules_that_the_model_left_out_are_in_the_summary_all_the_same() -> None:
    summary = await made(Scripted(said(GOOD)), need([user("RULE-7: never push to main."), *talk(20)]))
    assert summary is not None
    assert summary.text.startswith(GOOD)
    assert "RULE-7: never push to main." in summary.text


async def test_values_are_not_appended_where_that_would_make_it_no_smaller() -> None:
    messages = [user("A-1 B-2 C-3 D-4"), assistant("E-5 F-6 ok")]
    summary = await made(Scripted(said("Orders taken")), need(messages))
    assert summary is not None
    assert summary.text == "Orders taken"


# ---------------------------------------------------------------- answers that are none
BAD = {
    "empty": said(""),
    "null": said(None),
    "blank": said("  \n\n"),
    "a refusal": said("I'm sorry, but I can't help with that."),
    "one word": said("OK"),
    "bloated": said(" ".join(f"word{n}" for n in range(5000))),
    "a tool call": said(None, "tool_calls", tool_calls=[{"id": "c", "type": "function", "function": {"name": "open", "arguments": "{}"}}]),
    "another language": said("用户问了几个关于订单的小问题，都已回答，没有待办事项。"),
    "no choices": Answer(200, b'{"choices": []}'),
    "no JSON": Answer(200, b"<html>gateway</html>"),
    "an error with status 200": Answer(200, b'{"error": {"message": "overloaded"}}'),
    "damaged gzip": Answer(200, b"no gzip", [("Content-Encoding", "gzip")]),
    "endless": Answer(200, b" " * (ANSWER_BYTES + 70_000)),
    "broken off": Breaks(200, b""),
    "unreachable": UpstreamUnreachable("no route"),
    "too slow": UpstreamTimeout("idle"),
    "unauthorized": refused(401, "Incorrect API key provided"),
    "rate limited": refused(429, "Rate limit reached for requests"),
    "down": refused(503, "overloaded"),
}


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD)
async def test_what_is_no_summary_gives_none_after_at_most_two_calls(reply: Any) -> None:
    upstream = Scripted(reply)
    assert await made(upstream) is None
    assert 1 <= len(upstream.calls) <= 2
    assert all(answer.closed for answer in upstream.answers)


@pytest.mark.parametrize("first", ["empty", "a refusal", "bloated", "no JSON"])
async def test_a_bad_answer_is_asked_for_once_more(first: str) -> None:
    upstream = Scripted(BAD[first], said(GOOD))
    summary = await made(upstream)
    assert summary is not None
    assert summary.text.startswith(GOOD)
    assert len(upstream.calls) == 2


async def test_a_model_that_thought_its_tokens_away_gets_more_of_them() -> None:
    upstream = Scripted(said("", "length"), said(GOOD))
    assert await made(upstream) is not None
    assert [body["max_tokens"] for body in upstream.bodies] == [300, 600]


@pytest.mark.parametrize("text", [f"<think>Let me see. OK?</think>\n{GOOD}", f"so it goes</think>{GOOD}", f"<thinking>x</thinking> {GOOD}"])
async def test_reasoning_before_the_answer_is_left_out(text: str) -> None:
    summary = await made(Scripted(said(text)))
    assert summary is not None
    assert summary.text.startswith(GOOD)


async def test_a_compressed_answer_is_read() -> None:
    summary = await made(Scripted(Answer(200, gzip.compress(body_of(GOOD)), [("Content-Encoding", "gzip")])))
    assert summary is not None


# ---------------------------------------------------------------- APIs that take other parameters
async def test_the_name_of_the_length_is_learned_from_the_refusal() -> None:
    renamed = refused(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
    upstream = Scripted(renamed, said(GOOD))
    assert await made(upstream) is not None
    assert upstream.bodies[1].keys() == {"model", "messages", "max_completion_tokens"}


async def test_parameters_that_are_refused_one_after_the_other_end_after_few_calls() -> None:
    renamed = refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    other = refused(400, "Unsupported value: 'temperature' does not support 0.2 with this model.")
    upstream = Scripted(renamed, other, said(GOOD))
    assert await made(upstream) is not None
    assert upstream.bodies[2].keys() == {"model", "messages"}
    endless = Scripted(renamed, other, other)
    assert await made(endless) is None
    assert len(endless.calls) <= 4


async def test_a_template_without_a_system_role_gets_one_user_message() -> None:
    upstream = Scripted(refused(400, "System role not supported"), said(GOOD))
    assert await made(upstream) is not None
    (message,) = upstream.bodies[1]["messages"]
    assert message["role"] == "user"
    assert "quoted data" in message["content"]


# ---------------------------------------------------------------- long histories
def windowed(limit: int) -> Callable[[dict[str, Any]], Answer]:
    def reply(body: dict[str, Any]) -> Answer:
        size = sum(count_text(m["content"]) for m in body["messages"])
        return Answer(400, json.dumps(OVERFLOW).encode()) if size > limit else said(f"{GOOD} Part of {size}.")

    return reply


async def test_a_long_history_is_read_in_parts_and_the_parts_are_merged() -> None:
    upstream = Scripted(windowed(1500))
    summary = await made(upstream, need(talk(60)), window=1500)
    assert summary is not None
    assert 2 < len(upstream.calls) <= MAX_CALLS
    told = "".join(m["content"] for body in upstream.bodies for m in body["messages"])
    assert all(f"q{n} " in told for n in range(60))
    assert GOOD in upstream.bodies[-1]["messages"][1]["content"]


async def test_a_window_that_is_smaller_than_believed_is_learned_once() -> None:
    upstream = Scripted(windowed(1500))
    assert await made(upstream, need(talk(60)), window=100_000) is not None
    assert len(upstream.calls) <= MAX_CALLS
    always = Scripted(Answer(400, json.dumps(OVERFLOW).encode()))
    assert await made(always, need(talk(60)), window=100_000) is None
    assert len(always.calls) == 2


async def test_an_overflow_without_figures_halves_the_window() -> None:
    silent = refused(400, "prompt is too long")
    upstream = Scripted(silent, said(GOOD))
    assert await made(upstream, need(talk(40)), window=6000) is not None
    assert max(count_text(body["messages"][1]["content"]) for body in upstream.bodies[1:]) < 3000


async def test_a_part_that_fails_makes_it_fail_and_no_more_is_asked() -> None:
    upstream = Scripted(said(GOOD), *[said("OK")] * 30)
    assert await made(upstream, need(talk(60)), window=1500) is None
    assert len(upstream.calls) <= 1 + 4 * 2
    first = Scripted(said("OK"))
    assert await made(first, need(talk(60)), window=1500) is None
    assert len(first.calls) == 2


async def test_parts_whose_merging_fails_stand_one_after_the_other() -> None:
    def reply(body: dict[str, Any]) -> Answer:
        return said("OK" if "Summaries of consecutive parts" in body["messages"][1]["content"] else GOOD)

    summary = await made(Scripted(reply), need(talk(60)), window=1500)
    assert summary is not None
    assert GOOD in summary.text


async def test_parts_too_long_to_be_merged_are_not_sent() -> None:
    words = " ".join(f"thing{n}" for n in range(300))
    upstream = Scripted(lambda body: said(f"{GOOD} {words}"))
    summary = await made(upstream, need(talk(150)), window=1500)
    assert summary is not None
    assert not any("Summaries of consecutive parts" in body["messages"][1]["content"] for body in upstream.bodies)


async def test_a_window_too_small_for_anything_costs_no_call() -> None:
    upstream = Scripted(said(GOOD))
    assert await made(upstream, window=300) is None
    assert upstream.calls == []


# ---------------------------------------------------------------- time, silence
async def test_the_time_is_bounded() -> None:
    never = asyncio.Event()
    upstream = Scripted(never)
    assert await made(upstream, timeout_s=0.5) is None
    assert len(upstream.calls) == 1


async def test_a_wrong_base_url_gives_none() -> None:
    assert await made(Scripted(said(GOOD)), base_url="ftp://nowhere") is None


async def test_neither_texts_nor_keys_get_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = [user("SECRET-TEXT-1 is what it is about"), *talk(20)]
    for reply in (said("SECRET-TEXT-1"), said(GOOD, "SECRET-TEXT-1"), refused(401, "bad key Bearer KEY-1")):
        await made(Scripted(reply), need(secret), credentials=[("Authorization", "Bearer KEY-1")])
    assert caplog.records
    assert not any(word in caplog.text for word in ("SECRET-TEXT-1", "KEY-1"))
    assert "KEY-1" not in repr(Writer(Scripted(), "http://u.example", "m", 1, [("Authorization", "KEY-1")]))
