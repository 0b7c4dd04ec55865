"""A stream on its way to the client is read along in few goes, and yet its end is seen with the chunk that brings it."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core.codings import decoder
from ctxproxy.core.reply import Reply, ReplyAssembler
from ctxproxy.core.sse import SseReader
from ctxproxy.ports import Headers
from ctxproxy.proxy import streams
from ctxproxy.proxy.streams import Pump, Stream
from ctxproxy.proxy.tasks import Tasks


@dataclass
class Canned:
    """A response of which only the headers are looked at."""

    headers: Headers = ()
    status: int = 200
    reason: str = "OK"

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""

    async def close(self) -> None:
        return


def event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode() + b"\n\n"


END = b"data: [DONE]\n\n"
WORDS = [f"word {n} " for n in range(40)]


def stream(coding: str = "") -> Stream:
    response = Canned((("Content-Encoding", coding),) if coding else ())
    return Stream(response, Pump(response, Tasks()), decoder(coding))


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_an_event_that_the_end_of_the_body_leaves_open_counts(coding: str) -> None:
    body, watched = b"".join(map(event, WORDS)).rstrip(), stream(coding)
    watched.watch(gzip.compress(body) if coding else body)
    watched.catch_up()
    assert watched.assembler.result().choices[0].message.content == "".join(WORDS[:-1])
    watched.end()
    assert watched.assembler.result().choices[0].message.content == "".join(WORDS)


def test_of_a_body_that_does_not_decode_nothing_is_made_up_at_its_end() -> None:
    watched = stream("gzip")
    watched.watch(b"data: nothing that was compressed")
    watched.end()
    assert watched.assembler.result().choices == ()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 10_000])
def test_the_end_is_seen_with_the_chunk_that_brings_it_however_the_stream_is_cut(size: int) -> None:
    body, watched = b"".join(map(event, WORDS)) + END, stream()
    end = body.index(END) + len(b"data: [DONE]\n")
    for at in range(0, len(body), size):
        watched.watch(body[at : at + size])
        assert watched.assembler.done or at + size <= end
    watched.catch_up()
    assert watched.assembler.result().choices[0].message.content == "".join(WORDS)


def test_what_looks_like_an_end_in_a_text_is_none() -> None:
    watched = stream()
    watched.watch(event("[DONE] is what ends it"))
    assert not watched.assembler.done
    watched.watch(END)
    assert watched.assembler.done


def test_only_so_much_is_kept_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "UNREAD_BYTES", 3 * len(event("x")))
    watched = stream()
    for _ in range(3):
        watched.watch(event("x"))
    assert not watched.assembler.has_output
    watched.watch(event("x"))
    assert watched.assembler.result().choices[0].message.content == "xxxx"


def test_a_stream_with_a_content_coding_is_read_as_it_comes() -> None:
    body, watched = gzip.compress(event("hi") + END), stream("gzip")
    watched.watch(body[:10])
    watched.watch(body[10:])
    assert watched.assembler.done
    watched.catch_up()
    assert watched.assembler.result().choices[0].message.content == "hi"


@pytest.mark.parametrize("size", [1, 2, 5, len(END) - 1])
def test_the_end_is_seen_also_where_it_began_in_what_was_held_back(size: int) -> None:
    watched = stream()
    watched.hold(event("hi") + END[:size])
    watched.watch(END[size:])
    assert watched.assembler.done


def read_whole(body: bytes) -> tuple[Reply, bool]:
    """What the readers of `core` make of a stream, event by event."""
    reader, assembler = SseReader(), ReplyAssembler()
    for one in reader.feed(body):
        assembler.feed(one.data, one.name)
    return assembler.result(), assembler.done


PARTS = st.sampled_from(
    [
        *(event(text) for text in ("word ", "你好", "[DONE]", "x" * 90)),
        event("a").replace(b"\n", b"\r\n"),
        event("b").replace(b"data: ", b"data:"),
        event("c").replace(b"\n\n", b"\n"),
        b"\n",
        b": ping\n\n",
        b"event: error\ndata: {}\n\n",
        b'data: {"error":{"message":"context too long"}}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n',
        b"data: {\n\n",
        END,
        END.replace(b"\n", b"\r\n"),
    ]
)


@pytest.mark.parametrize("unread_bytes", [0, 150, 400, 16_384])
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PARTS, max_size=12).map(b"".join), st.lists(st.integers(0, 1500), max_size=10), st.integers(0, 3))
def test_a_stream_cut_anywhere_is_read_as_if_event_by_event(
    monkeypatch: pytest.MonkeyPatch, unread_bytes: int, body: bytes, cuts: list[int], held: int
) -> None:
    monkeypatch.setattr(streams, "UNREAD_BYTES", unread_bytes)
    points = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    watched = stream()
    for at, (start, end) in enumerate(pairwise(points)):
        if at < held and not watched.assembler.has_output:
            watched.hold(body[start:end])
        else:
            watched.watch(body[start:end])
        assert watched.assembler.done == read_whole(body[:end])[1]
    watched.catch_up()
    assert (watched.assembler.result(), watched.assembler.done) == read_whole(body)
