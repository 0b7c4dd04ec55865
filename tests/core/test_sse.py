from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxproxy.core.sse import Event, SseReader
from tests.shared_dir import shared


def events_of(chunks, **options):
    reader = SseReader(**options)
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    last = reader.finish()
    return events + ([last] if last else []), reader.overflowed


def one_by_one(stream):
    return [stream[at : at + 1] for at in range(len(stream))]


def data(*texts):
    return [Event(text) for text in texts]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"", []),
        (b"\n\n\r\n\r", []),
        (b"data: a\n\n", data(b"a")),
        (b"data:a\r\n\r\ndata:b\r\rdata: c\n\r\n", data(b"a", b"b", b"c")),
        (b"data: a\r\n\ndata: b\n\r", data(b"a", b"b")),
        (b"\xef\xbb\xbfdata: a\n\n", data(b"a")),
        (b"\xef\xbb\xbf\n\xef\xbb\xbfdata: a\n\n", [Event(is_comment_only=True)]),
        (b"data:  two blanks\n\n", data(b" two blanks")),
        (b"data: {\ndata: }\n\n", data(b"{\n}")),
        (b"data\ndata\n\n", data(b"\n")),
        (b"data:\n\n", data(b"")),
        (b"event: delta\ndata: a\n\ndata: b\n\n", [Event(b"a", "delta"), Event(b"b")]),
        (b"event: a\nevent: b\ndata: x\n\n", [Event(b"x", "b")]),
        (b"Data: a\nDATA: b\nunknown: c\ndata : d\n\n", [Event(is_comment_only=True)]),
        (b": OPENROUTER PROCESSING\n\n", [Event(is_comment_only=True)]),
        (b":\n\n:ping\nevent: ping\nid: 7\nretry: 3000\n\n", [Event(is_comment_only=True), Event(name="ping", is_comment_only=True)]),
        (b": x-cost=0.1\ndata: [DONE]\n\n", data(b"[DONE]")),
        (b"data: a\n\ndata: [DO", data(b"a", b"[DO")),
        (b"data: a", data(b"a")),
        (b"data: \xe4\xbd\xa0\xff\n\n", data(b"\xe4\xbd\xa0\xff")),
        (b'error: {"code":400}\n\n', [Event(b'{"code":400}', "error")]),
        (b"event: \xff\ndata: a\n\n", [Event(b"a", "\ufffd")]),
    ],
)
def test_a_stream_is_read_by_the_rules_of_the_standard(stream, events):
    assert events_of([stream]) == (events, False)
    assert events_of(one_by_one(stream)) == (events, False)


LINES = st.sampled_from(
    [b"data: a", b"data:", b"data", b"event: x", b": c", b":", b"", b"", b"id: 1", b"error: e", b"\xef\xbb\xbf", "data: 你😀".encode(), b"junk"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = st.lists(st.tuples(LINES, ENDS), max_size=14).map(lambda lines: b"".join(line + end for line, end in lines)) | st.binary(max_size=40)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STREAMS, st.lists(st.integers(0, 120), max_size=8), st.sampled_from([10_000, 9, 3, 0]))
def test_any_chunking_gives_the_same_events(stream, cuts, limit):
    points = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(points)]
    whole = events_of([stream], max_event_bytes=limit)
    assert events_of(chunks, max_event_bytes=limit) == whole == events_of(one_by_one(stream), max_event_bytes=limit)


def read_plainly(chunks, **options):
    """As `events_of`, by `plain` wherever that reads a chunk."""
    reader, events = SseReader(**options), []
    for chunk in chunks:
        datas = reader.plain(chunk)
        events += reader.feed(chunk) if datas is None else data(*(one.removeprefix(b" ") for one in datas))
    last = reader.finish()
    return events + ([last] if last else []), reader.overflowed


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STREAMS, st.lists(st.integers(0, 120), max_size=8), st.sampled_from([10_000, 9, 3, 0]))
def test_what_is_read_plainly_is_what_is_read_else(stream, cuts, limit):
    points = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(points)]
    assert read_plainly(chunks, max_event_bytes=limit) == events_of(chunks, max_event_bytes=limit)
    after_each = [stream[start:end] + b"\n\n" for start, end in itertools.pairwise(points)]
    assert read_plainly(after_each, max_event_bytes=limit) == events_of(after_each, max_event_bytes=limit)


@pytest.mark.parametrize(
    ("before", "chunk", "datas"),
    [
        (b"", b"data: a\n\ndata:b\n\ndata:  c \n\n", [b" a", b"b", b"  c "]),
        (b"data: a\n\n", b"data:\n\n", [b""]),
        (b": ping\r\n\n", b"data: a\n\n", [b" a"]),
        (b"", b"data: a\n\ndata: b\n", None),
        (b"", b"data: a\n\n\n", None),
        (b"", b"data: a\ndata: b\n\n", None),
        (b"", b"data: a\n\n: ping\n\n", None),
        (b"", b"event: x\ndata: a\n\n", None),
        (b"", b"data: a\r\n\r\n\n\n", None),
        (b"", b"\xef\xbb\xbfdata: a\n\n", None),
        (b"", b"", None),
        (b"event: x\n", b"data: a\n\n", None),
        (b"eve", b"data: a\n\n", None),
        (b"data: a\r\n\r", b"data: a\n\n", None),
        (b"data: " + b"x" * 100, b"data: a\n\n", None),
        (b"", b"data: " + b"x" * 100 + b"\n\n", None),
    ],
)
def test_only_whole_events_of_one_data_line_each_are_read_plainly(before, chunk, datas):
    reader = SseReader(max_event_bytes=50)
    reader.feed(before)
    assert reader.plain(chunk) == datas


def test_a_byte_order_mark_behind_plain_events_is_none():
    reader = SseReader()
    assert reader.plain(b"data: a\n\n") == [b" a"]
    assert reader.feed(b"\xef\xbb\xbfdata: a\n\n") == [Event(is_comment_only=True)]


def test_an_event_without_its_blank_line_is_told_at_the_end_once():
    reader = SseReader()
    assert reader.feed(b"data: a\n") == []
    assert reader.finish() == Event(b"a")
    assert reader.finish() is None


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1_000])
def test_an_event_over_the_limit_is_flagged_and_ends_the_reading(chunk_bytes):
    stream = b"data: ok\n\n" + b"data: " + b"x" * 200 + b"\n\ndata: late\n\n"
    chunks = [stream[at : at + chunk_bytes] for at in range(0, len(stream), chunk_bytes)]
    assert events_of(chunks, max_event_bytes=100) == (data(b"ok"), True)


def test_many_short_lines_count_as_one_event():
    assert events_of([b"data: x\n"] * 30, max_event_bytes=100) == ([], True)


def test_the_limit_is_for_one_event_not_for_the_stream():
    assert events_of([b"data: " + b"x" * 80 + b"\n\n"] * 5, max_event_bytes=100) == (data(*[b"x" * 80] * 5), False)


def test_the_recorded_streams_of_the_field_cases_are_read():
    found = 0
    for path in sorted(shared("acceptance/field_cases/cases").glob("*.json")):
        for reply in json.loads(path.read_text())["upstream"].get("replies", []):
            chunks = [part["text"].encode() for part in reply.get("chunks", []) if isinstance(part.get("text"), str)]
            events, overflowed = events_of(chunks)
            assert not overflowed and events_of(one_by_one(b"".join(chunks)))[0] == events
            found += len(events)
    assert found > 5
