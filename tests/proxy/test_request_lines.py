"""The requests' log lines come soon, in order, and before whatever is logged after them."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Iterator

import pytest

from ctxproxy.proxy import logs, request_lines
from ctxproxy.proxy.request_lines import RequestLines
from tests.proxy.conftest import StartProxy
from tests.scripted_upstream import ScriptedUpstream

log = logging.getLogger("tests.request_lines")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[RequestLines]:
    caplog.set_level(logging.INFO, log.name)
    made = RequestLines(log)
    yield made
    made.close()
    assert log.filters == []


async def test_lines_come_by_themselves_with_the_time_at_which_they_were_told(
    lines: RequestLines, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_lines, "HOLD_S", 0.02)
    before_s = time.time()
    lines.tell("%s %d", "first", 1)
    lines.tell("second")
    told_s = time.time()
    assert caplog.messages == []
    await asyncio.sleep(0.04)
    assert caplog.messages == ["first 1", "second"]
    assert all(before_s <= record.created <= told_s for record in caplog.records)
    lines.tell("third")
    await asyncio.sleep(0.04)
    assert caplog.messages[2:] == ["third"]


async def test_what_is_logged_otherwise_comes_behind_the_lines_before_it(lines: RequestLines, caplog: pytest.LogCaptureFixture) -> None:
    lines.tell("a")
    lines.tell("b")
    log.warning("c")
    lines.tell("d")
    await asyncio.to_thread(log.error, "e")
    assert caplog.messages == ["a", "b", "c", "d", "e"]


async def test_no_line_is_lost_or_doubled_where_threads_log_meanwhile(lines: RequestLines, caplog: pytest.LogCaptureFixture) -> None:
    threads = [threading.Thread(target=lambda: [log.warning("from a thread") for _ in range(300)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(1000):
        lines.tell("line %d", n)
    for thread in threads:
        await asyncio.to_thread(thread.join)
    lines.write()
    assert sorted(int(text[5:]) for text in caplog.messages if text.startswith("line ")) == list(range(1000))
    assert caplog.messages.count("from a thread") == 900


async def test_nothing_is_held_where_the_log_is_not_to_hold_it(lines: RequestLines, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, log.name)
    lines.tell("a")
    caplog.set_level(logging.INFO, log.name)
    lines.write()
    assert caplog.messages == []


async def test_when_the_program_ends_its_last_request_has_its_line(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ctxproxy")
    running = await proxy(upstream)
    async with running.http.get(f"{running.url}/healthz") as answer:
        assert answer.status == 200
    assert not [text for text in caplog.messages if "/healthz" in text]
    await running.stop()
    assert [text for text in caplog.messages if text.startswith("GET /healthz 200 ")]


@pytest.mark.parametrize("form", ["text", "json"])
async def test_both_forms_show_the_time_at_which_a_line_was_told(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    root, ours = logging.getLogger(), logging.getLogger("ctxproxy")
    before, levels = list(root.handlers), (root.level, ours.level)
    try:
        logs.set_up("info", "json" if form == "json" else "text")
        lines = RequestLines(ours)
        told_s = time.time()
        lines.tell("x")
        await asyncio.sleep(0.08)
        lines.close()
    finally:
        root.handlers[:] = before
        root.setLevel(levels[0])
        ours.setLevel(levels[1])
    written = capsys.readouterr().err
    shown = json.loads(written)["time"][20:23] if form == "json" else written.split(",")[1][:3]
    assert (int(shown) - int(told_s % 1 * 1000)) % 1000 < 60
