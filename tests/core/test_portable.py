"""A session's lines lose nothing, and a file that was changed, cut or made up is refused with its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.messages import ROOT, Tip, identity, next_tip
from ctxproxy.core.portable import Extra, Item, Reader, end_line, extra_line, message_line, named, record_line, session_line
from ctxproxy.core.records import Checkpoint, FrozenEntry, LeftOut, Pin, Session, SessionKey, Spent, StoredMessage, Summary
from ctxproxy.core.wire import from_log
from ctxproxy.errors import BadRequest

KEY = SessionKey("0f" * 16, "talk")
SESSION = Session(KEY, system=(b'{"role":"system","content":"Be brief."}',), created=1.0, last_used=2.0)


def row(raw: bytes, parent: Tip = ROOT, **fields: Any) -> StoredMessage:
    message = from_log(raw)
    values = {"role": message.role, "tokens": 7, "created": 1.5, **fields}
    return StoredMessage(next_tip(parent, identity(message)), parent, raw, **values)


FIRST = row(b'{"role":"user","content":"one"}')
SECOND = row(b'{"role":"assistant","content":"two"}', FIRST.tip)
FORK = row(b'{"role": "assistant",  "content": "2" }', FIRST.tip, partial=True)


def anything(_: Any) -> None:
    return


def taken(lines: list[bytes], extras: dict[str, Callable[[Any], None]] | None = None) -> list[Item]:
    reader = Reader(extras or {})
    items = [item for line in lines if (item := reader.take(line)) is not None]
    reader.finish()
    return items


def file_of(*lines: bytes, session: Session = SESSION) -> list[bytes]:
    return [session_line(session), *lines, end_line(len(lines) + 1)]


texts = st.text(st.characters(exclude_categories=()), max_size=12)  # lone surrogates too
times = st.floats(0, 1e11)
numbers = st.integers(0, 2**62 - 1)
tips = st.text("0123456789abcdef", min_size=32, max_size=32)
frozen = st.builds(FrozenEntry, tips, st.none() | st.just(b'{"role":"user"}'), numbers, texts, st.lists(tips, max_size=2).map(tuple), texts)
checkpoints = st.builds(
    Checkpoint,
    tips,
    texts,
    st.lists(frozen, max_size=3).map(tuple),
    times,
    tips | st.just(""),
    st.lists(st.tuples(texts, numbers), max_size=2).map(tuple),
    st.lists(st.builds(LeftOut, st.lists(tips, max_size=2).map(tuple), texts, texts), max_size=2).map(tuple),
)
summaries = st.builds(Summary, tips, texts, st.sampled_from(["llm", "extractive"]), texts, numbers, numbers, times, times, times)
pins = st.builds(Pin, numbers, texts, times)
sessions = st.builds(
    Session,
    key=st.builds(SessionKey, tips, texts),
    manner=st.sampled_from(["unknown", "full", "thin"]),
    frame=texts,
    system=st.lists(texts.map(lambda text: json.dumps({"role": "system", "content": text}).encode()), max_size=2).map(tuple),
    model=texts,
    profile=texts,
    fixed_tokens=numbers,
    recall=st.booleans(),
    created=times,
    last_used=times,
    requests=numbers,
    spent=st.builds(Spent, times, times, times, numbers, numbers, numbers, numbers),
    forgotten=st.frozensets(tips, max_size=3),
    user=texts,
    kept=st.booleans(),
    overrides=st.dictionaries(texts, st.integers() | texts | st.none() | st.booleans(), max_size=2),
    tag=texts,
)


def test_a_record_of_each_kind_comes_back_as_it_was() -> None:
    entries = (FrozenEntry("ab" * 16, None, 5), FrozenEntry("", b'{"role":"user","content":"x"}', 5, "summarize"))
    frozen = Checkpoint("ab" * 16, "any", entries, 3.0)
    summary, pin = Summary("ab" * 16, "they met", "llm", "m", 9, 3, 1.0, 2.0, 3.0), Pin(1, "no nuts", 3.0)
    assert taken(file_of(*map(record_line, (frozen, summary, pin)))) == [SESSION, frozen, summary, pin]


@given(sessions, st.lists(checkpoints | summaries | pins, max_size=4))
def test_what_is_written_is_read_again(session: Session, records: list[Checkpoint | Summary | Pin]) -> None:
    assert taken(file_of(*map(record_line, records), session=session)) == [session, *records]


@given(st.lists(st.tuples(texts, st.booleans(), st.booleans(), st.integers(0, 9)), max_size=8))
def test_messages_of_all_branches_come_back_byte_for_byte(said: list[tuple[str, bool, bool, int]]) -> None:
    rows: dict[Tip, StoredMessage] = {}
    for text, ascii_only, pretty, at in said:
        raw = json.dumps({"role": "user", "content": text}, ensure_ascii=ascii_only, indent=1 if pretty else None).encode("utf-8", "replace")
        made = row(raw, [ROOT, *rows][at % (len(rows) + 1)])
        rows.setdefault(made.tip, made)
    lines = file_of(*map(message_line, rows.values()))
    assert all(b"\n" not in line for line in lines)
    assert taken(lines) == [SESSION, *rows.values()]


@pytest.mark.parametrize(
    ("raw", "readable"),
    [
        (b'{"role":"user","content":"\\ud83c \\u0000"}', True),
        ('{"role":"user","content":"漢字"}'.encode(), True),
        (b'{"role":"user","content":"x","n":1e400,"m":123456789012345678901234567890,"f":1.10}', True),
        (b'{"role":"user","content":"twice","content":"once"}', True),
        (b'{"role":"user","content":"x","x_context":{"pin":true}}', True),
        (b'{"role":"user",\r\n"content":"x"}', False),
        (b' {"role":"user","content":"x"}', False),
    ],
)
def test_strange_messages_come_back_byte_for_byte(raw: bytes, readable: bool) -> None:
    read_before = row(raw)
    assert read_before.message.raw
    line = message_line(read_before)
    assert line == message_line(row(raw))
    assert (raw in line) is readable
    assert taken(file_of(line)) == [SESSION, row(raw)]


def test_what_is_no_json_is_kept_as_base64_and_an_erased_message_as_nothing() -> None:
    for raw in (b"\xff\0", b"{\xff}", b"{1}", b'["a"]', b""):
        line = json.loads(message_line(StoredMessage("ab" * 16, ROOT, raw, "user", 1, 1.0)))
        assert ("raw" in line, "message" in line) == (raw != b"", False)
    erased = StoredMessage("ab" * 16, ROOT, b"", "user", 1, 1.0)
    after = row(b'{"role":"assistant","content":"two"}', erased.tip)
    assert taken(file_of(message_line(erased), message_line(after))) == [SESSION, erased, after]


def test_lines_of_other_parts_are_checked_by_them() -> None:
    def numbers_only(value: Any) -> None:
        if not isinstance(value, int):
            raise ValueError("a number, please")

    assert taken(file_of(extra_line("fact", 7)), {"fact": numbers_only}) == [SESSION, Extra("fact", 7)]
    assert taken(file_of(b'{"record":"fact"}'), {"fact": anything}) == [SESSION, Extra("fact", None)]
    with pytest.raises(BadRequest, match="line 2: a number, please"):
        taken(file_of(extra_line("fact", "x")), {"fact": numbers_only})


def changed(line: bytes, **values: Any) -> bytes:
    return json.dumps({**json.loads(line), **values}).encode()


GOOD = [session_line(SESSION), message_line(FIRST), message_line(SECOND)]
BAD_ENTRY = Checkpoint(FIRST.tip, "v", (FrozenEntry(raw=b"no JSON"),), 1.0)


@pytest.mark.parametrize(
    ("lines", "at", "reason"),
    [
        ([], 1, "ends before its line"),
        (GOOD, 4, "ends before its line"),
        ([b"no JSON"], 1, ""),
        ([b"[]"], 1, ""),
        ([b"{}"], 1, "record is missing"),
        ([message_line(FIRST)], 1, "the first line"),
        ([GOOD[0], GOOD[0]], 2, "the first line"),
        ([changed(GOOD[0], version=2)], 1, "version 2"),
        ([changed(GOOD[0], tenant="x")], 1, "tenant must be 32 hex digits"),
        ([changed(GOOD[0], tenant=None)], 1, r"key\[0\]"),
        ([changed(GOOD[0], created="yesterday")], 1, "created"),
        ([changed(GOOD[0], created=1e300)], 1, "created is no time"),
        ([changed(GOOD[0], requests=-1)], 1, "requests is out of range"),
        ([changed(GOOD[0], system=["eA=="])], 1, ""),
        ([*GOOD, b'{"record":"wisdom"}'], 4, "unknown record 'wisdom'; known are session"),
        ([*GOOD, end_line(4)], 4, "3 lines stand before it, not 4"),
        ([*GOOD, b'{"record":"end","lines":true}'], 4, "lines is missing, or is no whole number"),
        ([*GOOD, end_line(3), b""], 5, "behind the end"),
        ([changed(GOOD[0], tip="ab" * 16), *GOOD[1:], end_line(3)], 1, "none of the messages"),
        ([GOOD[0], GOOD[2]], 2, "parent"),
        ([*GOOD, GOOD[1]], 4, "was there before"),
        ([GOOD[0], GOOD[1].replace(b"one", b"ONE")], 2, "does not match its bytes"),
        ([GOOD[0], changed(GOOD[1], role="assistant")], 2, "its role 'assistant' does not match"),
        ([GOOD[0], changed(GOOD[1], tokens="many")], 2, "tokens"),
        ([GOOD[0], b'{"record":"message","tip":"x","parent":"","role":"user","tokens":1,"created":1}'], 2, "32 hex digits"),
        ([GOOD[0], b'{"record":"message","tip":"x","parent":"","role":"user","tokens":1,"created":1,"raw":"%"}'], 2, "no base64"),
        ([GOOD[0], b'{"record":"message","tip":"x","parent":"","role":"user","tokens":1,"created":1,"raw":7}'], 2, "raw is missing, or is no text"),
        ([GOOD[0], record_line(Pin(1, "p", 1.0)), GOOD[1]], 3, "all messages stand before"),
        ([GOOD[0], record_line(BAD_ENTRY)], 2, ""),
        ([GOOD[0], changed(record_line(Pin(1, "p", 1.0)), number=2**70)], 2, "number is out of range"),
    ],
)
def test_a_file_that_is_not_sound_is_refused_with_its_line(lines: list[bytes], at: int, reason: str) -> None:
    with pytest.raises(BadRequest, match=f"line {at}: .*{reason}.*nothing was imported") as refused:
        taken(lines)
    assert refused.value.param == f"line {at}"


def test_a_file_may_be_written_anew_by_a_tool_that_keeps_its_values() -> None:
    lines = [json.dumps(json.loads(line), sort_keys=True).encode() for line in file_of(*GOOD[1:], record_line(Pin(1, "p", 1.0)))]
    assert [type(item) for item in taken(lines)] == [Session, StoredMessage, StoredMessage, Pin]


def test_it_tells_how_many_messages_there_were() -> None:
    reader = Reader({})
    for line in file_of(*map(message_line, (FIRST, SECOND, FORK))):
        reader.take(line)
    reader.finish()
    assert reader.messages == 3


def test_a_session_can_be_given_another_name() -> None:
    assert named(SESSION, "1f" * 16, "b").key == SessionKey("1f" * 16, "b")
