"""The memory files: one section for each thing that left a prompt, where it belongs, readable by the owner only, and gone when its session is."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.core.memory_notes import Note, notes_in
from ctxproxy.core.records import SessionKey
from ctxproxy.proxy import memory_files
from ctxproxy.proxy.memory_files import MemoryFiles
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_background import FILLER, SUMMARY, scripted, talk
from tests.scripted_upstream import Answer, Json, Overflow, ScriptedUpstream

TENANT = "0f" * 16
DROPPING = {"max_tokens": 4000, "pipeline": [{"stage": "drop_oldest"}]}


def note(session: str = "s", tip: str = "aa", text: str = "They spoke.") -> Note:
    return Note(session, tip, "Trimmed 10:31", text)


def written(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.md"))


def folder_of(running: Running) -> Path:
    return Path(running.holder.current().data_dir) / "memory"


# ---------------------------------------------------------------- the files themselves


async def test_a_section_is_written_once_for_a_tip_whatever_day_it_is_and_however_many_write(tmp_path: Path) -> None:
    files = [MemoryFiles(tmp_path) for _ in range(4)]
    done = await asyncio.gather(*(one.add(TENANT, "", "2026-11-30", note(tip=tip)) for one in files for tip in ("aa", "bb", "cc")))
    assert sum(done) == 3
    assert not await files[0].add(TENANT, "", "2026-12-01", note())
    assert await files[0].add(TENANT, "", "2026-12-01", note(tip="dd"))
    assert [file.name for file in written(tmp_path)] == ["2026-11-30.md", "2026-12-01.md"]
    found = await files[0].entries(SessionKey(TENANT, "s"), "")
    assert sorted((one.day, one.note.tip) for one in found) == [
        ("2026-11-30", "aa"),
        ("2026-11-30", "bb"),
        ("2026-11-30", "cc"),
        ("2026-12-01", "dd"),
    ]


async def test_only_the_owner_can_read_them_and_no_name_leads_outside(tmp_path: Path) -> None:
    files, name = MemoryFiles(tmp_path), "../../../outside"
    await files.add(TENANT, "", "2026-11-30", note(name))
    (file,) = written(tmp_path)
    assert file.parent.parent == tmp_path / "memory" / TENANT
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parent.parent, tmp_path / "memory")]
    assert modes == [0o600, 0o700, 0o700, 0o700]


async def test_a_link_in_a_files_place_is_not_followed(tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path)
    await files.add(TENANT, "", "2026-11-29", note())
    outside = tmp_path / "outside.md"
    outside.write_text("mine")
    (tmp_path / "memory" / TENANT / "s" / "2026-11-30.md").symlink_to(outside)
    with pytest.raises(OSError, match=r"."):
        await files.add(TENANT, "", "2026-11-30", note(tip="bb"))
    assert outside.read_text() == "mine"


async def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles(tmp_path)
    await files.add(TENANT, "", "2026-11-30", note())
    (file,) = written(tmp_path)
    before, write = file.read_bytes(), os.write
    with monkeypatch.context() as patch:
        patch.setattr(memory_files.os, "write", lambda descriptor, raw: write(descriptor, raw[:10]))
        with pytest.raises(OSError, match="space"):
            await files.add(TENANT, "", "2026-11-30", note(tip="bb"))
    assert file.read_bytes() == before
    assert await files.add(TENANT, "", "2026-11-30", note(tip="bb"))


async def test_erasing_takes_a_session_out_of_every_folder_and_leaves_the_others(tmp_path: Path) -> None:
    files = MemoryFiles(tmp_path)
    for session, user, tip in (("s", "", "aa"), ("s", "ann", "bb"), ("t", "ann", "cc"), ("s", "bob", "dd")):
        await files.add(TENANT, user, "2026-11-30", note(session, tip, f"what {session} said"))
    await files.add("1f" * 16, "", "2026-11-30", note("s", "aa", "of another tenant"))
    assert await files.erase([SessionKey(TENANT, "s")]) == 3
    assert [file.parent.name for file in written(tmp_path)] == ["@ann", "s"]
    assert [notes_in(file.read_text())[0].text for file in written(tmp_path)] == ["what t said", "of another tenant"]
    assert await files.erase([SessionKey(TENANT, "s"), SessionKey("2f" * 16, "s")]) == 0


# ---------------------------------------------------------------- what a running proxy writes


async def trimmed(running: Running, **how: Any) -> list[str]:
    """The texts of all files after a conversation that had to be trimmed."""
    await running.chat(talk(40), session="s", **how)
    await running.settled()
    return [file.read_text() for file in written(folder_of(running))]


async def test_what_was_trimmed_stands_in_todays_file_under_a_heading_with_reason_and_time(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=DROPPING, memory={"timezone": "UTC"})
    (text,) = await trimmed(running)
    (found,) = notes_in(text)
    session = await running.session("s")
    assert found.heading.startswith("Trimmed ")
    assert found.heading.endswith(f", session {session.key.id}")
    assert "question" in found.text
    assert f"# {written(folder_of(running))[0].stem}\n" in text


async def test_without_a_trim_or_where_it_is_turned_off_there_is_no_file(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=DROPPING)
    await running.chat("hi", session="s")
    await running.settled()
    off = await proxy(upstream, context=DROPPING, memory={"daily_files": False})
    assert (written(folder_of(running)), await trimmed(off)) == ([], [])
    assert not folder_of(off).exists()
    entry = {"match": "s*", "profile": "p", "daily_files": False}
    off = await proxy(upstream, context=DROPPING, profiles={"p": {}}, sessions={"profiles": [entry]})
    assert await trimmed(off) == []


async def test_a_users_sessions_share_the_users_folder(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=DROPPING)
    await trimmed(running, headers={"X-User-Id": "Ann"})
    assert [file.parent.name for file in written(folder_of(running))] == ["@%41nn"]


async def test_one_call_serves_the_prompt_and_the_file(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 4000, "pipeline": [{"stage": "summarize", "fill": False}]})
    upstream.script = scripted
    (text,) = await trimmed(running)
    assert SUMMARY in text
    assert sum(call.header("X-Purpose") == "summary" for call in upstream.calls) == 1


@pytest.mark.parametrize(
    ("answer", "noted"),
    [
        (Answer("- They chose db-9."), "- They chose db-9."),
        (Answer("None"), None),
        (Answer(""), "question"),
        (Answer("I am sorry."), "question"),
        (Json(500, {}), "question"),
    ],
)
async def test_000_s6_a_call_of_its_own_tells_events_and_nothing_is_written_where_there_is_nothing(
    proxy: StartProxy, upstream: ScriptedUpstream, answer: Answer, noted: str | None
) -> None:
    running = await proxy(upstream, context=DROPPING, memory={"daily_text": "events"})
    upstream.script = lambda call: answer if call.header("X-Purpose") == "summary" else Answer("an answer")
    texts = await trimmed(running)
    assert [noted in text for text in texts] == ([True] if noted else [])
    (call,) = (call for call in upstream.calls if call.header("X-Purpose") == "summary")
    assert "grouped by event" in call.messages[0]["content"]
    assert call.json["max_tokens"] == 500


@pytest.mark.parametrize("store", [{"url": "memory://"}, {"url": "sqlite:///s.db"}])
async def test_the_same_cut_is_noted_once_also_after_a_restart(proxy: StartProxy, upstream: ScriptedUpstream, store: dict[str, str]) -> None:
    running = await proxy(upstream, context=DROPPING, store=store)
    first = await trimmed(running)
    await running.restart()
    assert await trimmed(running) == first


async def test_a_second_trim_makes_a_second_section(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context=DROPPING)
    await trimmed(running)
    await running.chat([*talk(40), {"role": "assistant", "content": "ok"}, *talk(40)[1:]], session="s")
    await running.settled()
    (file,) = written(folder_of(running))
    assert len(notes_in(file.read_text())) == 2


async def test_after_an_overflow_both_the_file_and_the_summary_in_the_prompt_are_there(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_tokens": 60_000}, summarizer={"background": False})
    refused = iter([Overflow(4000, requested=9000)])
    upstream.script = lambda call: scripted(call) if call.header("X-Purpose") else next(refused, Answer("an answer"))
    (text,) = await trimmed(running)
    assert notes_in(text)[0].heading.startswith("Overflow ")
    assert SUMMARY in text
    assert SUMMARY in str(upstream.calls[-1].messages)


async def test_a_file_that_cannot_be_written_breaks_no_request(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    running = await proxy(upstream, context=DROPPING)
    folder_of(running).write_text("a file where the folder should be")
    said = await running.chat(talk(40), session="s")
    await running.settled()
    assert said.status == 200
    assert "could not write a memory file of session" in caplog.text
    assert FILLER not in caplog.text
    assert 'ctxproxy_memory_notes_total{result="failed"} 1.0' in running.state.metrics.text().decode()
