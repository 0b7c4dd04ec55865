"""Of a body that goes on from its session's last one only what is new is read; what is remembered has its bounds, and can be let go of."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from ctxproxy.core import wire
from ctxproxy.core.commands import ShowContext
from ctxproxy.core.fronts import MESSAGE_BYTES, READ_FACTOR
from ctxproxy.core.records import SessionKey
from ctxproxy.errors import WireError
from ctxproxy.proxy import reading
from ctxproxy.proxy.reading import Bodies
from tests.proxy.conftest import StartProxy
from tests.scripted_upstream import ScriptedUpstream

HI = {"role": "user", "content": "hi"}
OK = {"role": "assistant", "content": "ok"}
KEY = SessionKey("0f" * 16, "s")


def body(*messages: dict[str, Any]) -> bytes:
    return json.dumps({"model": "m", "messages": messages, "seed": 1}).encode()


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bodies that are read whole."""
    read, parse = list[bytes](), wire.parse

    def noted(text: bytes) -> wire.ChatRequest:
        read.append(text)
        return parse(text)

    monkeypatch.setattr(wire, "parse", noted)
    return read


@pytest.mark.parametrize("name", ["s", ""])
async def test_a_conversation_is_read_whole_once(whole: list[bytes], name: str) -> None:
    bodies, said = Bodies(1_000_000), [HI]
    for _ in range(4):
        read = await bodies.read(name, body(*said), commands=True)
        assert [message.fields for message in read.chat.messages] == said
        said += [OK, HI]
    assert whole == [body(HI)]


async def test_side_requests_under_a_name_do_not_push_the_conversation_out(whole: list[bytes]) -> None:
    bodies = Bodies(1_000_000)
    title = {"role": "system", "content": "Write a title."}
    for messages in ([HI], [title, HI], [HI, OK, HI], [title, HI, OK, HI], [HI, OK, HI, OK, HI]):
        await bodies.read("s", body(*messages), commands=True)
    assert whole == [body(HI), body(title, HI)]


async def test_under_one_name_only_so_many_are_compared(whole: list[bytes]) -> None:
    bodies = Bodies(1_000_000)
    for text in "abcdefghij":
        await bodies.read("s", body({"role": "user", "content": text}), commands=True)
    whole.clear()
    for text in "ja":
        await bodies.read("s", body({"role": "user", "content": text}, OK, HI), commands=True)
    assert whole == [body({"role": "user", "content": "a"}, OK, HI)]


async def test_what_was_used_last_stays_within_the_bound(whole: list[bytes]) -> None:
    bodies = Bodies(3 * (MESSAGE_BYTES + READ_FACTOR * len(body(HI))))
    for name in ("a", "b", "a", "c", "d", "a"):
        await bodies.read(name, body(HI), commands=True)
    assert len(whole) == 4
    await bodies.read("b", body(HI), commands=True)
    assert len(whole) == 5


async def test_without_room_nothing_is_remembered(whole: list[bytes]) -> None:
    bodies = Bodies(0)
    for _ in range(2):
        await bodies.read("s", body(HI), commands=True)
    assert len(whole) == 2


async def test_what_is_erased_or_forgotten_is_remembered_no_more(whole: list[bytes]) -> None:
    bodies = Bodies(1_000_000)
    for name in ("s", "other", ""):
        await bodies.read(name, body(HI), commands=True)
    await bodies.erase([KEY])
    for name in ("s", "other", ""):
        await bodies.read(name, body(HI), commands=True)
    assert len(whole) == 3 + 2
    await bodies.forget(KEY, ["ab" * 16])
    await bodies.read("s", body(HI), commands=True)
    assert len(whole) == 6


async def test_a_command_is_heard_and_left_out_wherever_it_stands() -> None:
    bodies = Bodies(1_000_000)
    command, answer = {"role": "user", "content": "/context"}, {"role": "assistant", "content": "[ctxproxy] so and so"}
    assert (await bodies.read("s", body(HI), commands=True)).command is None
    assert (await bodies.read("s", body(HI, OK, command), commands=True)).command == ShowContext()
    for later in ([HI], [HI, OK, HI]):
        read = await bodies.read("s", body(HI, OK, command, answer, *later), commands=True)
        assert [message.fields for message in read.chat.messages] == [HI, OK, *later]
        assert (read.command, read.chat.is_part) == (None, True)


async def test_a_conversation_over_http_goes_up_byte_for_byte_and_is_kept_whole(
    proxy: StartProxy, upstream: ScriptedUpstream, whole: list[bytes]
) -> None:
    running = await proxy(upstream)
    said = [HI]
    for _ in range(4):
        await running.chat(said, session="s")
        said = [*said, OK, HI]
    sent = [call.body for call in upstream.calls]
    assert [json.loads(one)["messages"] for one in sent] == [[HI, *[OK, HI] * n] for n in range(4)]
    assert whole == sent[:1]
    assert await running.log("s") == ["user: hi", "assistant: ok"] * 4


async def test_a_body_too_big_to_be_remembered_pushes_nothing_out(whole: list[bytes]) -> None:
    bodies = Bodies(3 * (MESSAGE_BYTES + READ_FACTOR * len(body(HI))))
    for text in ("hi", "long " * 1000, "hi"):
        await bodies.read(text[:2], body({"role": "user", "content": text}), commands=True)
    assert len(whole) == 2


async def test_a_large_body_is_read_in_a_thread_to_the_same_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "READ_HERE_BYTES", 100)
    here, threads, bodies = threading.get_ident(), list[int](), Bodies(1_000_000)
    parse = wire.parse

    def noted(text: bytes) -> wire.ChatRequest:
        threads.append(threading.get_ident())
        return parse(text)

    monkeypatch.setattr(wire, "parse", noted)
    long = {"role": "user", "content": "x" * 100}
    read = await bodies.read("s", body(long), commands=True)
    assert [message.fields for message in read.chat.messages] == [long]
    assert (await bodies.read("s", body(long, OK, HI), commands=True)).chat.messages[0] is read.chat.messages[0]
    assert (await bodies.read("t", body(HI), commands=True)).chat.messages
    assert [thread == here for thread in threads] == [False, True]
    with pytest.raises(WireError):
        await bodies.read("s", b"{" + b" " * 200, commands=True)
    assert (await bodies.read("u", body(long, {"role": "user", "content": "/context"}), commands=True)).command == ShowContext()


async def test_what_is_erased_while_it_is_read_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "READ_HERE_BYTES", 0)
    bodies, go, parse, began = Bodies(1_000_000), threading.Event(), wire.parse, threading.Event()

    def slow(text: bytes) -> wire.ChatRequest:
        began.set()
        go.wait(60)
        return parse(text)

    monkeypatch.setattr(wire, "parse", slow)
    work = asyncio.create_task(bodies.read("s", body(HI), commands=True))
    await asyncio.to_thread(began.wait, 60)
    await bodies.erase([KEY])
    go.set()
    assert (await work).chat.messages
    assert not bodies._known
