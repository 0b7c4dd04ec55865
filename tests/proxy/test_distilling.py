"""`MEMORY.md`: made of the daily files on demand or each day, by a model or by rules, and never made worse (000-S15, 000-S16)."""

from __future__ import annotations

import stat
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.core.distilling import items_in
from ctxproxy.core.memory_notes import Note
from ctxproxy.proxy.distilling import Distiller
from ctxproxy.proxy.memory_files import ROUND, MemoryFiles
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_admin import got
from tests.proxy.test_memory_files import folder_of
from tests.scripted_upstream import Answer, Json, ScriptedUpstream

NOW = 1_800_000_000.0  # 2027-01-15 08:00 UTC
ANN = {"X-User-Id": "ann"}
DISTILL = "users/ann/memory/distill"


async def noted(running: Running, **texts: str) -> str:
    """Sessions of Ann, each with a note of today; the tenant."""
    running.state.clock = lambda: NOW
    tenant = ""
    for name, text in texts.items():
        await running.chat("hi", session=name, headers=ANN)
        tenant = (await running.session(name)).key.tenant
        await running.state.notes.files.add(tenant, "ann", "2027-01-15", Note(name, f"{name}-tip", "Trimmed 08:00", text))
    return tenant


async def started(proxy: StartProxy, upstream: ScriptedUpstream, distill: str = "manual", **sections: Any) -> Running:
    return await proxy(upstream, memory={"distill": distill, "timezone": "UTC", "preload": {"sessions": 0}}, **sections)


def memory_file(running: Running) -> Path:
    (file,) = folder_of(running).rglob("MEMORY.md")
    return file


async def test_000_s16_a_model_distills_the_notes_into_items_that_name_their_sections(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await started(proxy, upstream, summarizer={"api_key": "sk-own"})
    await noted(running, one="The host is db-7.", two="The host moved to db-9.")
    upstream.script = Answer("- The host is db-9 (once db-7). [n1, n2]\n- Invented. [n7]")
    assert await got(running, DISTILL, "POST") == {"result": "written", "notes": 2, "items": 1}
    call = upstream.calls[-1]
    assert (call.json["model"], call.header("Authorization")) == ("tested-model", "Bearer sk-own")
    assert "[n2] 2027-01-15 The host moved to db-9." in call.messages[1]["content"]
    assert (await got(running, "users/ann/memory"))["distilled"] == ["The host is db-9 (once db-7)."]
    assert (await got(running, "sessions/one/memory"))["distilled"] == ["The host is db-9 (once db-7)."]
    file = memory_file(running)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    diary = (file.parent / "DIARY.md").read_text()
    assert "- 2027-01-15 08:00: 2 notes read, 0 items before, 1 items now" in diary
    assert "db-" not in diary
    assert (await got(running, DISTILL, "POST", {"days": 30}))["result"] == "unchanged"


async def test_000_s16_an_answer_that_is_none_is_asked_for_three_times_and_leaves_the_file_as_it_was(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await started(proxy, upstream)
    tenant = await noted(running, one="The host is db-7.")
    upstream.script = Answer("- The host is db-7. [n1]")
    distiller, settings = Distiller(running.state, pause_s=0.0), running.holder.current()
    assert (await distiller.folder(settings, tenant, "@ann", 3)).result == "written"
    before = memory_file(running).read_bytes()
    await noted(running, two="Something new.")
    for bad, result, calls in (
        (Answer(""), "nothing", 1),
        (Answer("I am sorry."), "failed", 3),
        (Json(500, {}), "failed", 3),
        (Answer("None"), "nothing", 1),
    ):
        upstream.script = bad
        made = len(upstream.calls)
        assert (await distiller.folder(settings, tenant, "@ann", 3)).result == result
        assert len(upstream.calls) - made == calls
        assert memory_file(running).read_bytes() == before


async def test_without_a_model_rules_distill(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await started(proxy, upstream, summarizer={"kind": "extractive"})
    await noted(running, one="The host is db-7.\nAnn prefers tea.")
    calls = len(upstream.calls)
    assert (await got(running, "sessions/one/memory/distill", "POST"))["items"] == 2
    assert len(upstream.calls) == calls
    assert [item.text for item in items_in(memory_file(running).read_text())] == ["The host is db-7.", "Ann prefers tea."]


async def test_000_s15_each_day_it_runs_once_and_says_nothing_twice(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await started(proxy, upstream, "daily", summarizer={"kind": "extractive"})
    await noted(running, one="The host is db-7.")
    distiller = Distiller(running.state)
    assert distiller.wait_s() == pytest.approx((15 + 55 / 60) * 3600)
    await distiller.daily()
    first = memory_file(running).read_bytes()
    await distiller.daily()
    running.state.clock = lambda: NOW + 86_400
    await distiller.daily()
    assert memory_file(running).read_bytes() == first
    assert (memory_file(running).parent / "DIARY.md").read_text().count("\n- ") == 1
    running.state.clock = lambda: NOW + 4 * 86_400
    assert (
        await Distiller(running.state).folder(running.holder.current(), (await running.session("one")).key.tenant, "@ann", 3)
    ).result == "no_notes"


async def test_a_round_that_was_missed_is_made_up_for_at_the_next_start_once_and_with_all_days_that_were(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await started(proxy, upstream, "daily", summarizer={"kind": "extractive"})
    files, distiller = running.state.notes.files, Distiller(running.state)
    await noted(running)
    await distiller.make_up()
    assert await files.last_round() is None, "there is no note yet, and no folder"
    tenant = await noted(running, one="The host is db-7.")
    await distiller.make_up()
    assert (await files.last_round(), "db-7" in memory_file(running).read_text()) == (date(2027, 1, 14), True)
    await files.add(tenant, "ann", "2027-01-15", Note("one", "later", "Trimmed 09:00", "The port is 5432."))
    await distiller.make_up()
    assert "5432" not in memory_file(running).read_text()
    running.state.clock = lambda: NOW + 5 * 86_400
    await distiller.make_up()
    assert (await files.last_round(), "5432" in memory_file(running).read_text()) == (date(2027, 1, 19), True)


@pytest.mark.parametrize("day", ["", "soon"])
async def test_a_day_that_cannot_be_read_is_none_and_one_that_cannot_be_written_breaks_nothing(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, day: str
) -> None:
    running = await started(proxy, upstream, "daily", summarizer={"kind": "extractive"})
    await noted(running, one="The host is db-7.")
    file = folder_of(running) / ROUND
    file.write_text(day)
    await Distiller(running.state).make_up()
    assert file.read_text() == "2027-01-14\n"
    file.unlink()
    file.mkdir()
    await Distiller(running.state).daily()
    assert "memory could not be distilled" in caplog.text


@pytest.mark.parametrize("distill", ["off", "manual"])
async def test_by_itself_nothing_is_distilled_unless_it_is_wanted_daily(proxy: StartProxy, upstream: ScriptedUpstream, distill: str) -> None:
    running = await started(proxy, upstream, distill, summarizer={"kind": "extractive"})
    await noted(running, one="The host is db-7.")
    await Distiller(running.state).daily()
    assert list(folder_of(running).rglob("MEMORY.md")) == []
    if distill == "off":
        assert "memory.distill" in (await got(running, DISTILL, "POST", status=400))["error"]["message"]
    else:
        for days in (0, 31, "3", True):
            await got(running, DISTILL, "POST", {"days": days}, status=400)


async def test_erasing_a_session_takes_the_items_along_that_come_from_it(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await started(proxy, upstream)
    await noted(running, one="The host is db-7.", two="Ann prefers tea.")
    upstream.script = Answer("- The host is db-7. [n1]\n- Ann prefers tea. [n2]")
    await got(running, DISTILL, "POST")
    await got(running, "sessions/one", "DELETE")
    assert [item.text for item in items_in(memory_file(running).read_text())] == ["Ann prefers tea."]
    await got(running, "sessions/two", "DELETE")
    assert [path for path in folder_of(running).rglob("*") if path.is_file()] == []


async def test_what_is_erased_while_a_model_distills_does_not_come_back(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await started(proxy, upstream)
    tenant = await noted(running, one="The host is db-7.", two="Ann prefers tea.")

    async def meanwhile(_: object) -> Answer:
        await running.state.notes.files.erase([(await running.session("one")).key])
        return Answer("- The host is db-7. [n1]\n- Ann prefers tea. [n2]")

    upstream.script = meanwhile
    done = await Distiller(running.state).folder(running.holder.current(), tenant, "@ann", 3)
    assert (done.result, done.items) == ("written", 1)
    assert [item.text for item in items_in(memory_file(running).read_text())] == ["Ann prefers tea."]


async def test_a_folder_that_cannot_be_written_stops_no_other(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await started(proxy, upstream, "daily", summarizer={"kind": "extractive"})
    await noted(running, one="The host is db-7.")

    async def refused(*_: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(running.state.notes.files, "put_distilled", refused)
    await Distiller(running.state).daily()
    assert "memory could not be distilled: OSError" in caplog.text


async def test_of_two_processes_one_distills_and_the_other_is_told(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await started(proxy, upstream, summarizer={"kind": "extractive"})
    await noted(running, one="The host is db-7.")
    with MemoryFiles(Path(running.holder.current().data_dir)).distilling() as free:
        assert free
        assert await got(running, DISTILL, "POST") == {"result": "busy", "notes": 0, "items": 0}
    assert (await got(running, DISTILL, "POST"))["result"] == "written"


def test_where_there_are_no_files_nobody_is_in_the_way(tmp_path: Path) -> None:
    with MemoryFiles(tmp_path).distilling() as first, MemoryFiles(tmp_path).distilling() as second:
        assert first and second
