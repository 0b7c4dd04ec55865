"""`usage` raised to the size of the client's own conversation: the figures, and that no other byte is touched."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.sse import SseReader
from ctxproxy.core.usage_report import LONGEST_LINE_BYTES, EventRaiser, Logical, raised

SIZE = Logical(tokens_in=5000, tokens_sent=1000, window=128_000)
"""4000 tokens were left out."""


# ---------------------------------------------------------------- the figure
@pytest.mark.parametrize(
    ("size", "reported", "completion", "shown"),
    [
        (SIZE, 1000, 10, 5000),
        (SIZE, 1100, 10, 5100),  # the upstream counts a tenth more: what was left out is added to its own figure
        (SIZE, 300, 10, 4300),
        (SIZE, 4000, 10, 8000),
        (SIZE, 299, 10, 5000),  # only what was not cached, or a constant: our own count
        (SIZE, 0, 0, 5000),
        (SIZE, 4001, 10, 5000),
        (SIZE, 9000, 10, 9000),  # never lowered
        (Logical(5000, 1000, 4096), 1000, 96, 4000),  # never over what the window holds beside the answer
        (Logical(5000, 1000, 4096), 1000, 5000, 1000),
    ],
)
def test_a_figure_is_raised_by_what_was_left_out(size: Logical, reported: int, completion: int, shown: int) -> None:
    assert size.prompt_tokens(reported, completion) == shown


# ---------------------------------------------------------------- whole texts
SHOWN_USAGE = '{"usage":{"prompt_tokens":5000,"completion_tokens":7,"total_tokens":5007}}'
RAISED = [
    (
        '{"usage":{"prompt_tokens":1000,"completion_tokens":7,"total_tokens":1007}}',
        '{"usage":{"prompt_tokens":5000,"completion_tokens":7,"total_tokens":5007}}',
    ),
    (
        ' {"id" : "漢字\\ud83c", "usage" :\n{ "total_tokens" : 1007 ,\t"cost":1.50e-3,\n"prompt_tokens"  :1000, "x":[{"prompt_tokens":1}] },"y":1}\n',
        ' {"id" : "漢字\\ud83c", "usage" :\n{ "total_tokens" : 5007 ,\t"cost":1.50e-3,\n"prompt_tokens"  :5000, "x":[{"prompt_tokens":1}] },"y":1}\n',
    ),
    ('{"usage":{"prompt_tokens":1000}}', '{"usage":{"prompt_tokens":5000}}'),
    (
        '{"usage":{"prompt_tokens":1000,"total_tokens":"1007","prompt_tokens_details":{"cached_tokens":900}}}',
        '{"usage":{"prompt_tokens":5000,"total_tokens":"1007","prompt_tokens_details":{"cached_tokens":900}}}',
    ),
    ('{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":1000}}}', '{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":5000}}}'),
    (
        '{"choices":[{"index":0,"delta":{}},{"usage":{"prompt_tokens":1000}},3],"usage":{"prompt_tokens":1000}}',
        '{"choices":[{"index":0,"delta":{}},{"usage":{"prompt_tokens":5000}},3],"usage":{"prompt_tokens":5000}}',
    ),
]


@pytest.mark.parametrize(("text", "shown"), RAISED)
def test_the_figures_are_raised_and_every_other_byte_stays(text: str, shown: str) -> None:
    assert raised(text.encode(), SIZE).decode() == shown


LEFT_ALONE = {
    "no usage": b'{"choices":[]}',
    "usage null": b'{"choices":[],"usage":null}',
    "usage is no object": b'{"usage":[1000]}',
    "usage of other things": b'{"usage":{"completion_tokens":7,"total_tokens":1007}}',
    "a count that is no whole number": b'{"usage":{"prompt_tokens":1000.0,"total_tokens":1007}}',
    "a negative count": b'{"usage":{"prompt_tokens":-1,"total_tokens":1007}}',
    "a count that nobody can read": b'{"usage":{"prompt_tokens":' + b"9" * 5000 + b"}}",
    "more than the logical size": b'{"usage":{"prompt_tokens":50000,"total_tokens":50007}}',
    "a text that speaks of it": b'{"choices":[{"message":{"content":"\\"usage\\":{\\"prompt_tokens\\":1000}"}}],"x":"\\"usage\\""}',
    "usage elsewhere": b'{"meta":{"usage":{"prompt_tokens":1000}}}',
    "groq's place without one": b'{"x_groq":"usage","choices":"usage","y":"\\"usage\\""}',
    "an array": b'[{"usage":{"prompt_tokens":1000}}]',
    "no JSON": b'{"usage":{"prompt_tokens":1000}',
    "no UTF-8": b'{"usage":{"prompt_tokens":1000},"x":"\xff"}',
    "nested too deeply": b'{"usage":{"prompt_tokens":1000},"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nothing": b"",
}


@pytest.mark.parametrize("text", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_all_else_stays_the_same_object(text: bytes) -> None:
    assert raised(text, SIZE) is text


def test_nothing_is_raised_where_nothing_was_left_out() -> None:
    text = b'{"usage":{"prompt_tokens":900}}'
    assert raised(text, Logical(1000, 1000, 128_000)) is text


# ---------------------------------------------------------------- streams
USAGE = b'{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":7,"total_tokens":1007}}'
SHOWN = b'{"choices":[],"usage":{"prompt_tokens":5000,"completion_tokens":7,"total_tokens":5007}}'
DELTA = '{"choices":[{"delta":{"content":"漢字 \\ud83c"}}],"usage":null}'.encode()
STREAMS = {
    "OpenAI's": (b"data: " + DELTA + b"\n\ndata: %s\n\ndata: [DONE]\n\n"),
    "without blanks, CRLF": b"data:" + DELTA + b"\r\n\r\ndata:%s\r\n\r\ndata:[DONE]\r\n\r\n",
    "CR alone": b": ping\r\rdata: %s\r\rdata: [DONE]\r\r",
    "with other fields and comments": b": \xff ping\nevent: chunk\nid: 1\nretry: 3\ndata: %s\n\n: usage\ndata\n\ndata: [DONE]",
    "without its last line end": b"data: %s",
    "in every chunk": b"data: %s\n\ndata: %s\n\n",
}


def through(stream: bytes, cuts: list[int]) -> bytes:
    raiser, at = EventRaiser(SIZE), [0, *sorted(cuts), len(stream)]
    return b"".join(raiser.feed(stream[start:end]) for start, end in pairwise(at)) + raiser.finish()


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@given(data=st.data())
def test_the_events_of_a_stream_are_raised_wherever_it_is_cut(stream: bytes, data: st.DataObject) -> None:
    came, meant = stream.replace(b"%s", USAGE), stream.replace(b"%s", SHOWN)
    assert through(came, data.draw(st.lists(st.integers(0, len(came)), max_size=20))) == meant


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_a_stream_may_come_byte_by_byte(stream: bytes) -> None:
    came = stream.replace(b"%s", USAGE)
    assert through(came, list(range(1, len(came)))) == stream.replace(b"%s", SHOWN)


def test_what_has_come_of_a_line_is_held_back_until_its_end() -> None:
    raiser = EventRaiser(SIZE)
    assert raiser.feed(b"data: 1\n\ndata: " + USAGE[:40]) == b"data: 1\n\n"
    assert raiser.feed(USAGE[40:]) == b""
    assert raiser.feed(b"\n") == b"data: " + SHOWN + b"\n"
    assert raiser.finish() == b""


def test_a_line_that_is_too_long_passes_as_it_comes_and_is_not_changed() -> None:
    raiser, long = EventRaiser(SIZE), b'data: {"x":"' + b"x" * LONGEST_LINE_BYTES
    assert raiser.feed(long) == long
    rest = b'","usage":{"prompt_tokens":1000}}'
    assert raiser.feed(rest) == rest
    assert raiser.feed(b"\ndata: " + USAGE + b"\n") == b"\ndata: " + SHOWN + b"\n"


def test_an_event_whose_data_stands_on_several_lines_passes_as_it_is() -> None:
    parted = b'data: {"usage":\ndata: {"prompt_tokens":1000}}\n\n'
    assert through(parted, []) == parted


@given(st.lists(st.sampled_from([b"data: ", USAGE, DELTA, b"\n", b"\r", b"\n\n", b": c", b"[DONE]", b"\xff", b'"usage"', b"event: x"]), max_size=30))
def test_no_event_is_lost_or_made_and_only_their_figures_differ(pieces: list[bytes]) -> None:
    stream = b"".join(pieces)
    before, after = SseReader(), SseReader()
    came = [*before.feed(stream), before.finish()]
    shown = [*after.feed(through(stream, [])), after.finish()]
    assert len(came) == len(shown)
    for one, other in zip(came, shown, strict=True):
        if one != other:
            assert one is not None
            assert other is not None
            assert json.loads(other.data)["usage"] == {"prompt_tokens": 5000, "completion_tokens": 7, "total_tokens": 5007}
