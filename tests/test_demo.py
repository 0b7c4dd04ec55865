"""The built-in model: what it answers, calls and refuses, and the conversation that `ctxproxy demo` holds with it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.cli.demo_script import FACTS, TOOLS, Lang, result_of, turns
from ctxproxy.ports import Call
from ctxproxy.upstream.demo import _PIECE, DemoUpstream
from ctxproxy.upstream.demo_model import DemoModel, Reply
from ctxproxy.upstream.demo_rules import Refused

LS = {
    "type": "function",
    "function": {"name": "list_dir", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
}
SUM = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "unit": {"enum": ["m", "cm"]}, "exact": {"type": "boolean"}}},
    },
}


def count(text: str) -> int:
    return len(text.split()) + sum("\u3400" <= ch <= "\u9fff" for ch in text)


def model(**windows: int) -> DemoModel:
    return DemoModel(count, windows or {"demo": 8192})


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def said(messages: Sequence[dict[str, Any]], **more: Any) -> str:
    reply = replied(messages, **more)
    assert reply.text is not None
    return reply.text


def replied(messages: Sequence[dict[str, Any]], **more: Any) -> Reply:
    reply = model().reply({"model": "demo", "messages": list(messages), **more})
    assert isinstance(reply, Reply), reply
    return reply


# --- answers ------------------------------------------------------------------------------------------------------------------------

CHAT = [
    {"role": "system", "content": "You are a travel agent. The office closes at 18:30."},
    user("I fly to Lisbon on May 4. My budget is 1,200 euros."),
    assistant("Noted: I fly to Lisbon on May 4."),
    user([{"type": "text", "text": "My hotel is the Bela Vista."}, {"type": "image_url", "image_url": {"url": "data:x"}}]),
    assistant("Noted: My hotel is the Bela Vista."),
]


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What is my budget?", "1,200 euros"),
        ("Which hotel do I stay in?", "Bela Vista"),
        ("When do I fly to Lisbon?", "May 4"),
        ("tell me when the office closes", "18:30"),
    ],
)
def test_it_answers_with_the_sentence_that_fits_best(question: str, value: str) -> None:
    assert value in said([*CHAT, user(question)])


@pytest.mark.parametrize("question", ["What is the capital of Peru?", "Who is my dentist?"])
def test_it_says_so_when_it_does_not_find_something(question: str) -> None:
    assert re.fullmatch(r"In what I was sent \(6 messages, \d+ tokens\) I do not find that\.", said([*CHAT, user(question)]))


def test_it_does_not_know_what_it_was_not_sent() -> None:
    assert "1,200" not in said([CHAT[0], *CHAT[3:], user("What is my budget?")])


def test_the_newest_of_two_statements_counts() -> None:
    changed = said([user("The port is 8001 now."), assistant("ok"), user("The port is 9002 now."), assistant("ok"), user("What is the port?")])
    assert changed.index("9002") < (changed.find("8001") if "8001" in changed else len(changed))


def test_a_question_asked_before_is_no_answer() -> None:
    again = said(
        [
            user("What is the access code?"),
            assistant("In what I was sent (1 messages, 9 tokens) I do not find that."),
            user("What is the access code?"),
        ]
    )
    assert "I do not find that" in again


def test_what_it_quoted_once_it_still_knows() -> None:
    quote = "From what I was sent: “The code is 7781.” (user, message 1 of 3)"
    assert "“The code is 7781.” (assistant, message 2 of 3)" in said([user("?"), assistant(quote), user("What is the code?")])


def test_it_finds_the_answer_beside_the_question_in_the_last_message() -> None:
    assert "port 9002" in said([user("Here are my notes. The server uses port 9002. What port does the server use?")])


def test_chinese_is_answered_in_chinese() -> None:
    chat = [user("我的预算是48500元。"), assistant("记下了"), user("我住在海边的酒店。"), assistant("记下了")]
    assert said([*chat, user("预算是多少？")]).startswith("我收到的内容里有：“我的预算是48500元。”")
    assert re.fullmatch(r"发给我的内容里（5 条消息，\d+ 个 token）找不到这一点。", said([*chat, user("护照号码是什么？")]))
    assert said([user("记住，我不吃花生。")]) == "记下了：记住，我不吃花生。"


def test_a_statement_is_noted() -> None:
    assert said([user("I moved the tests.")]) == "Noted: I moved the tests."
    assert said([user("word " * 100)]).endswith("…")


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text(max_size=60)), min_size=1, max_size=6))
def test_it_answers_anything_and_the_same_each_time(texts: list[tuple[str, str]]) -> None:
    messages = [{"role": role, "content": text} for role, text in texts]
    reply = replied(messages)
    assert reply.text is not None
    assert reply == replied(messages)
    assert reply.completion_tokens == count(reply.text)


# --- summaries ----------------------------------------------------------------------------------------------------------------------

FILLER = [m for n in range(30) for m in (user(f"We walked along part {n} of the shore and looked at the birds there."), assistant("I see."))]


@pytest.mark.parametrize(
    "ask",
    ["Summarize the conversation above.", "Please write a short summary of it all.", "请总结上面的对话。", "Condense this for a handoff."],
)
def test_it_sums_a_conversation_up_in_its_own_words(ask: str) -> None:
    summary = replied([user("Never go over the budget of 1,200 euros."), assistant("ok"), *FILLER, user(ask)], max_tokens=60)
    assert "1,200 euros" in str(summary.text)
    assert summary.completion_tokens <= 60


def test_it_sums_up_a_transcript_that_stands_in_the_request() -> None:
    transcript = "\n".join(f"{m['role']}: {m['content']}" for m in [user("Never go over the budget of 1,200 euros."), *FILLER])
    for messages in (
        [user(f"Summarize this transcript.\n\n{transcript}")],
        [{"role": "system", "content": "You summarize transcripts."}, user(transcript)],
    ):
        summary = said(messages, max_tokens=60)
        assert "1,200 euros" in summary
        assert "ummarize" not in summary


def test_of_fenced_data_it_sums_up_what_stands_between_the_fences() -> None:
    transcript = "\n".join(f"[{n}] {m['role']}: {m['content']}" for n, m in enumerate([user("Never go over the budget of 1,200 euros."), *FILLER]))
    asked = f"Transcript (data):\n========\n{transcript}\n========\n\nEnd of the data. Now the summary:"
    summary = replied([{"role": "system", "content": "You keep the memory. Write a summary of it."}, user(asked)])
    assert "1,200 euros" in str(summary.text)
    assert "data" not in str(summary.text)
    assert "====" not in str(summary.text)
    assert summary.completion_tokens < count(transcript) / 2


# --- tools --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "more", "calls"),
    [
        ('Use list_dir on "src/core".', {}, [("list_dir", {"path": "src/core"})]),
        ("please List Dir src/core/x.py", {}, [("list_dir", {"path": "src/core/x.py"})]),
        ("请用list_dir看“文档”", {}, [("list_dir", {"path": "文档"})]),
        ("use the tool", {}, [("list_dir", {"path": "use the tool"})]),
        ("请调用工具", {}, [("list_dir", {"path": "请调用工具"})]),
        ("add 17 cm to it", {}, [("add", {"a": 17, "unit": "cm", "exact": True})]),
        ("list_dir and add 3", {}, [("list_dir", {"path": "list_dir and add 3"}), ("add", {"a": 3, "unit": "m", "exact": True})]),
        ("list_dir and add 3", {"parallel_tool_calls": False}, [("list_dir", {"path": "list_dir and add 3"})]),
        ("hello", {"tool_choice": "required"}, [("list_dir", {"path": "hello"})]),
        ("hello", {"tool_choice": {"type": "function", "function": {"name": "add"}}}, [("add", {"a": 1, "unit": "m", "exact": True})]),
        ("list_dir x", {"tool_choice": "none"}, []),
        ("hello", {}, []),
        ("the padding of list_directory", {}, []),
        ("use list_dir", {"tools": []}, []),
    ],
)
def test_it_calls_the_tools_that_the_user_names(text: str, more: dict[str, Any], calls: list[tuple[str, Any]]) -> None:
    reply = replied([user(text)], **{"tools": [LS, SUM], **more})
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == calls
    assert (reply.finish, reply.text is None) == (("tool_calls", True) if calls else ("stop", False))
    assert len({call.id for call in reply.calls}) == len(calls)


def test_it_answers_from_tool_results_and_calls_nothing_then() -> None:
    calls = [{"id": i, "type": "function", "function": {"name": "list_dir", "arguments": "{}"}} for i in ("c1", "c2")]
    messages = [user("use list_dir: where is the invoice file?"), {"role": "assistant", "content": None, "tool_calls": calls}]
    results = [
        {"role": "tool", "tool_call_id": "c1", "content": "rates.py\nThe invoice file is billing/invoice.py.\nx.py"},
        {"role": "tool", "tool_call_id": "c2", "content": "nothing"},
    ]
    assert (
        said([*messages, *results], tools=[LS]) == "From the tool list_dir: The invoice file is billing/invoice.py.\nFrom the tool list_dir: nothing"
    )


SCHEMAS = [
    (
        {"type": "object", "properties": {"n": {"type": ["number", "null"]}, "l": {"type": "array", "items": {"type": "integer"}}}},
        {"n": 7.5, "l": [7]},
    ),
    (
        {"properties": {"a": {"anyOf": [{"const": 3}, {"type": "string"}]}, "b": {"type": "array"}, "c": {"type": "null"}}},
        {"a": 3, "b": [], "c": None},
    ),
    ({"type": "object", "properties": {"x": {}}, "required": ["x"]}, {"x": "take 7.5"}),
]


@pytest.mark.parametrize(("schema", "expected"), SCHEMAS)
def test_arguments_keep_to_their_schema(schema: Any, expected: Any) -> None:
    reply = replied([user("take 7.5")], tools=[{"type": "function", "function": {"name": "take", "parameters": schema}}])
    assert json.loads(reply.calls[0].arguments) == expected


def test_a_schema_that_holds_itself_ends() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {}}
    for _ in range(60):
        node = {"type": "object", "properties": {"next": node}}
    reply = replied([user("take")], tools=[{"type": "function", "function": {"name": "take", "parameters": node}}])
    assert reply.calls[0].arguments.count("next") < 10


def test_it_answers_in_the_format_that_is_asked_for() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert json.loads(said([user("The city is Lima.")], response_format=asked)) == {"city": "Noted: The city is Lima."}
    assert json.loads(said([user("hi")], response_format={"type": "json_object"})) == {"answer": "Noted: hi"}
    assert said([user("hi")], response_format={"type": "text"}) == "Noted: hi"


# --- limits and refusals ------------------------------------------------------------------------------------------------------------


def refused(body: Any, **windows: int) -> Refused:
    answer = model(**windows).reply(body)
    assert isinstance(answer, Refused), answer
    return answer


LONG = [user("word " * 100)]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "your messages resulted in 107 tokens. Please reduce the length of the messages."),
        (
            {"max_tokens": 50},
            "you requested 157 tokens (107 in the messages, 50 in the completion). Please reduce the length of the messages or completion.",
        ),
        (
            {"tools": [LS]},
            "your messages resulted in 108 tokens (107 in the messages, 1 in the functions). Please reduce the length of the messages or functions.",
        ),
        (
            {"tools": [LS], "max_completion_tokens": 50},
            "you requested 158 tokens (107 in the messages, 1 in the functions, and 50 in the completion). "
            "Please reduce the length of the messages, functions, or completion.",
        ),
    ],
)
def test_an_overflow_is_told_in_openais_words(more: dict[str, Any], told: str) -> None:
    answer = refused({"model": "m", "messages": LONG, **more}, m=100)
    assert answer == Refused(400, f"This model's maximum context length is 100 tokens. However, {told}", "messages", "context_length_exceeded")


def test_the_window_is_the_models_own_and_an_unknown_model_has_the_first() -> None:
    small = model(big=1000, small=50)
    assert isinstance(small.reply({"model": "big", "messages": LONG}), Reply)
    assert isinstance(small.reply({"model": "gpt-x", "messages": LONG}), Reply)
    assert isinstance(small.reply({"model": "small", "messages": LONG}), Refused)


def test_a_prompt_that_just_fits_is_answered_with_what_room_is_left() -> None:
    reply = model(m=109).reply({"model": "m", "messages": LONG})
    assert isinstance(reply, Reply)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.finish) == (107, 2, "length")


@pytest.mark.parametrize(
    ("key", "limit", "text", "finish"), [("max_tokens", 2, "Noted: one ", "length"), ("max_completion_tokens", 9, "Noted: one two", "stop")]
)
def test_a_reply_is_cut_at_its_limit(key: str, limit: int, text: str, finish: str) -> None:
    reply = replied([user("one two")], **{key: limit})
    assert (reply.text, reply.finish) == (text, finish)


@pytest.mark.parametrize("stop", ["two", ["zzz", "two"]])
def test_a_reply_ends_before_a_stop_text(stop: Any) -> None:
    assert said([user("one two three")], stop=stop) == "Noted: one "


CALLED = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}


@pytest.mark.parametrize(
    ("body", "status", "message", "param"),
    [
        ([], 400, "could not parse", None),
        ({"messages": [user("x")]}, 400, "model parameter", None),
        ({"model": "m"}, 400, "Missing required parameter: 'messages'", "messages"),
        ({"model": "m", "messages": "x"}, 400, "Missing required parameter: 'messages'", "messages"),
        ({"model": "m", "messages": []}, 400, "empty array", "messages"),
        ({"model": "m", "messages": ["x"]}, 400, "'messages[0].role'", "messages[0].role"),
        ({"model": "m", "messages": [user("x"), {"role": "bot"}]}, 400, "'messages[1].role'", "messages[1].role"),
        ({"model": "m", "messages": [user("x")], "max_tokens": 0}, 400, "'max_tokens'", "max_tokens"),
        ({"model": "m", "messages": [user("x")], "max_completion_tokens": "9"}, 400, "'max_completion_tokens'", "max_completion_tokens"),
        (
            {"model": "m", "messages": [user("x"), {"role": "tool", "tool_call_id": "c1"}]},
            400,
            "must be a response to a preceeding",
            "messages.[1].role",
        ),
        ({"model": "m", "messages": [CALLED, user("x")]}, 400, "did not have response messages: c1", "messages.[1].role"),
        ({"model": "m", "messages": [user("x"), CALLED]}, 400, "did not have response messages: c1", "messages.[2].role"),
        (
            {"model": "m", "messages": [CALLED, {"role": "tool", "tool_call_id": "c1"}, {"role": "tool", "tool_call_id": "c1"}]},
            400,
            "preceeding",
            "messages.[2].role",
        ),
    ],
)
def test_a_broken_request_is_refused_as_openai_does_it(body: Any, status: int, message: str, param: str | None) -> None:
    answer = refused(body)
    assert (answer.status, answer.param) == (status, param)
    assert message in answer.message


# --- over the port ------------------------------------------------------------------------------------------------------------------


async def sent(method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    upstream = DemoUpstream(count_tokens=count, clock=lambda: 1.0, delay_s=0)
    response = await upstream.send(Call(method, f"http://demo.invalid{path}", (), body, 1, 1))
    raw = b"".join([part async for part in response.chunks()])
    return response.status, json.loads(raw) if raw else None


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "unknown_url"),
        ("POST", "/v1/embeddings", 404, "unknown_url"),
        ("GET", "/v1/models/other", 404, "unknown_url"),
        ("POST", "/v1/models", 404, "unknown_url"),
        ("GET", "/v1/chat/completions", 405, "method_not_supported"),
        ("POST", "/v1/chat/completions", 400, None),
    ],
)
async def test_other_calls_are_refused_in_openais_shape(method: str, path: str, status: int, code: str | None) -> None:
    got, answer = await sent(method, path, b"{")
    assert (got, answer["error"]["code"], answer["error"]["type"]) == (status, code, "invalid_request_error")


async def test_one_model_is_described_the_small_one_without_its_window() -> None:
    assert await sent("GET", "/v1/models/demo-small?x=1") == (
        200,
        {"id": "demo-small", "object": "model", "created": 1_700_000_000, "owned_by": "ctxproxy"},
    )
    assert await sent("HEAD", "/v1/models") == (200, None)


async def test_the_same_request_gets_the_same_answer_bytes() -> None:
    raw = json.dumps({"model": "demo", "messages": CHAT}).encode()
    assert await sent("POST", "/v1/chat/completions", raw) == await sent("POST", "/v1/chat/completions", raw)


async def test_a_call_is_streamed_in_pieces_that_join_to_its_arguments() -> None:
    raw = json.dumps({"model": "demo", "stream": True, "tools": [LS], "messages": [user('list_dir "a b c d e f g h"')]}).encode()
    upstream = DemoUpstream(count_tokens=count, delay_s=0)
    response = await upstream.send(Call("POST", "http://demo.invalid/v1/chat/completions", (), raw, 1, 1))
    events = [json.loads(part[6:]) async for part in response.chunks() if b"[DONE]" not in part]
    deltas = [e["choices"][0]["delta"] for e in events]
    pieces = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
    assert (pieces[0]["function"]["name"], pieces[0]["index"]) == ("list_dir", 0)
    assert json.loads("".join(p["function"]["arguments"] for p in pieces)) == {"path": "a b c d e f g h"}
    assert len(pieces) > 2
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_nothing_comes_after_close() -> None:
    raw = json.dumps({"model": "demo", "stream": True, "messages": [user("one two three four five six seven")]}).encode()
    response = await DemoUpstream(count_tokens=count).send(Call("POST", "http://demo.invalid/v1/chat/completions", (), raw, 1, 1))
    seen = []
    async for part in response.chunks():
        seen.append(part)
        await response.close()
    assert len(seen) == 1


async def test_the_loop_goes_on_while_a_long_prompt_is_read() -> None:
    raw = json.dumps({"model": "demo", "messages": [user("word " * 4000), user("What is it?")]}).encode()
    assert len(raw) > 16_384
    (status, _), _ = await asyncio.gather(sent("POST", "/v1/chat/completions", raw), asyncio.sleep(0))
    assert status == 200


@given(st.text())
def test_the_pieces_of_a_stream_join_to_the_text(text: str) -> None:
    assert "".join(_PIECE.findall(text)) == text


# --- ctxproxy demo ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_planted_fact_is_said_once_and_found_by_its_question(lang: Lang) -> None:
    planted = [user(text) for text in turns(lang, 8)][:4]
    for fact in FACTS[lang]:
        assert sum(fact.said in message["content"] for message in planted) == 1
        assert fact.value not in fact.asked
        assert fact.value in said([*planted, user(fact.asked)])
        assert fact.value not in said([m for m in planted if fact.said not in m["content"]] + [user(fact.asked)])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_conversation_uses_every_tool_and_gets_long_results(lang: Lang) -> None:
    script = list(turns(lang, 64))
    called = [call for text in script for call in replied([user(text)], tools=list(TOOLS)).calls]
    assert {call.name for call in called} == {"read_file", "search_logs", "run_tests"}
    assert all(len(result_of(call.name, call.arguments, 5)) > 800 for call in called)
    assert len(set(script)) > 20


needs_wiring = pytest.mark.skipif(importlib.util.find_spec("ctxproxy.wiring") is None, reason="the proxy cannot be started yet")


@needs_wiring
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_demo_shows_what_is_sent_and_what_is_still_known(lang: Lang) -> None:
    environment = {**os.environ, "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "ctxproxy", "demo", "--fast", "--turns", "30", "--lang", lang]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    known = re.search(r"known +(\d) of 8 facts .*\((\d) of 8", done.stdout)
    assert known, done.stdout
    assert int(known[1]) > int(known[2])
    assert "refused, 400" in done.stdout
    rescued = re.search(r"overflows +(\d+) rescued", done.stdout)
    assert rescued
    assert int(rescued[1]) >= 1


@pytest.mark.parametrize("wrong", [["--turns", "3"], ["--budget", "10"]])
def test_the_demo_says_what_would_be_right(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from ctxproxy.cli.main import main  # noqa: PLC0415 - the command line is what is tested

    assert main(["demo", *wrong]) == 1
    assert "--turns must be 8 or more and --budget 1500 or more" in capsys.readouterr().err
