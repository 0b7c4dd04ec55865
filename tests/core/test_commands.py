"""Commands in a user message: which one a message is, and what of a history is a command with its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxproxy.core.commands import (
    MARK,
    AskWhy,
    ClearContext,
    Command,
    Compact,
    ForgetText,
    Keep,
    SetConfig,
    ShowConfig,
    ShowContext,
    ShowFacts,
    ShowPins,
    command_of,
    heard,
    parse,
)
from ctxproxy.core.messages import Message, make
from ctxproxy.core.wire import parse as request_of
from ctxproxy.core.wire import render
from tests.core.histories import assistant, user

OURS = f"{MARK} Context of s"
COMMANDS: list[tuple[str, Command | None]] = [
    ("/context", ShowContext()),
    ("  /context\n", ShowContext()),
    ("/context clear", ClearContext()),
    ("/context   clear ", ClearContext()),
    ("/clear", ClearContext()),
    ("/compact", Compact()),
    ("/config", ShowConfig()),
    ("/config max_turns", ShowConfig("max_turns")),
    ("/config max_turns 30", SetConfig("max_turns", "30")),
    ("/config  preset   trim ", SetConfig("preset", "trim")),
    ("/pin keep this,\n  word for word", Keep("keep this,\n  word for word")),
    ("/pin", Keep("")),
    ("/pins", ShowPins()),
    ("/facts", ShowFacts()),
    ("/facts  the budget ", ShowFacts("the budget")),
    ("/forget 老王 的电话", ForgetText("老王 的电话")),
    ("/forget", ForgetText("")),
    ("/why a.py", AskWhy("a.py")),
    ("/whynot", None),
    ("", None),
    ("/", None),
    ("context", None),
    ("/contexts", None),
    ("/Context", None),
    ("/context please", None),
    ("/clear the table", None),
    ("/compact it", None),
    ("/pins all", None),
    ("/pinned x", None),
    ("what does /context do?", None),
    ("/usr/bin/env python", None),
]


@pytest.mark.parametrize(("text", "command"), COMMANDS)
def test_a_text_is_a_command_or_it_is_none(text: str, command: Command | None) -> None:
    assert parse(text) == command
    assert command_of(user(text)) == command


@pytest.mark.parametrize(
    ("message", "command"),
    [
        (user([{"type": "text", "text": "/pins", "cache_control": {"type": "ephemeral"}}]), ShowPins()),
        (user([{"type": "text", "text": "/pins"}, {"type": "text", "text": "and more"}]), None),
        (user([{"type": "image_url", "image_url": {"url": "/pins"}, "text": "/pins"}]), None),
        (user([{"type": "text", "text": 7}]), None),
        (user(["/pins"]), None),
        (user([]), None),
        (user(None), None),
        (user(" " * 200 + "/pins"), None),
        (assistant("/pins"), None),
        (make({"role": "system", "content": "/pins"}), None),
    ],
)
def test_only_a_user_message_of_one_text_is_a_command(message: Message, command: Command | None) -> None:
    assert command_of(message) == command


def body_of(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps({"model": "m", "messages": messages, "temperature": 0.5}).encode()


def said(*words: str) -> list[dict[str, Any]]:
    """Messages by the first letter of their words: `u:hi`, `a:hello`, `s:be short`, `o:` an answer of ours."""
    roles = {"u": "user", "a": "assistant", "s": "system", "o": "assistant"}
    return [{"role": roles[word[0]], "content": OURS + word[2:] if word[0] == "o" else word[2:]} for word in words]


HISTORIES = [
    (["u:hi", "a:ho", "u:go"], ["hi", "ho", "go"], None, "nothing of ours"),
    (["u:hi", "a:ho", "u:/context", "o:", "u:go"], ["hi", "ho", "go"], None, "a command with our answer"),
    (["s:be short", "u:/context", "o:", "u:hi"], ["be short", "hi"], None, "before all else"),
    (["u:/context", "o:", "u:/pins", "o:", "u:hi"], ["hi"], None, "one after the other"),
    (["u:/context", "s:note", "o:", "u:hi"], ["note", "hi"], None, "with a note of the client's in between"),
    (["u:hi", "a:ho", "u:/context", "u:go"], ["hi", "ho", "go"], None, "one that got no answer"),
    (["u:/context", "a:a model said this", "u:go"], ["/context", "a model said this", "go"], None, "one that a model answered"),
    (["u:not a command", "o:", "u:go"], ["not a command", OURS, "go"], None, "words like ours behind other words"),
    (["u:hi", "a:ho", "u:/context"], ["hi", "ho"], ShowContext(), "the last one is to be answered"),
    (["u:hi", "a:ho", "u:/pins", "o:", "u:/context", "s:time: 12:00"], ["hi", "ho"], ShowContext(), "a note behind it goes with it"),
    (["u:/context"], [], ShowContext(), "nothing but a command"),
    (["s:be short"], ["be short"], None, "no user message at all"),
    (["u:/context", "a:{"], ["/context", "{"], None, "the beginning of an answer is there already"),
]


@pytest.mark.parametrize(("words", "kept", "command", "why"), HISTORIES, ids=[row[-1] for row in HISTORIES])
def test_commands_and_their_answers_are_left_out(words: list[str], kept: list[str], command: Command | None, why: str) -> None:
    chat = request_of(body_of(said(*words)))
    found = heard(chat, enabled=True)
    assert [message.content for message in found.chat.messages] == kept, why
    assert found.command == command
    sent = render(found.chat)
    if len(kept) == len(words):
        assert found.chat is chat
        assert sent is chat.body
    else:
        assert json.loads(sent) == {"model": "m", "messages": [{**m} for m in said(*words) if m["content"] in kept], "temperature": 0.5}


OFF = [
    (["u:hi", "a:ho", "u:/context"], ["hi", "ho", "/context"], "is a text like any other"),
    (["u:/context", "u:go"], ["/context", "go"], "also further up"),
    (["u:/context", "o:", "u:go"], ["go"], "but one that was answered stays out, or the conversation would be another one"),
]


@pytest.mark.parametrize(("words", "kept", "why"), OFF, ids=[row[-1] for row in OFF])
def test_where_commands_are_off_one(words: list[str], kept: list[str], why: str) -> None:
    found = heard(request_of(body_of(said(*words))), enabled=False)
    assert [message.content for message in found.chat.messages] == kept, why
    assert found.command is None


def test_the_other_messages_keep_their_exact_bytes() -> None:
    body = (
        b'{"messages": [ {"content":"h\\u0069",  "role":"user"} , {"role":"assistant","content":"ho"},\n{"role":"user","content":"\\/context"},'
        b'{"role":"assistant","content":" [ctxproxy] Context"}, {"role": "user", "content": [ {"type":"text", "text":"go"} ]}], "model":"m"}'
    )
    sent = render(heard(request_of(body), enabled=True).chat)
    assert sent == (
        b'{"messages":[{"content":"h\\u0069",  "role":"user"},{"role":"assistant","content":"ho"},'
        b'{"role": "user", "content": [ {"type":"text", "text":"go"} ]}],"model":"m"}'
    )
