"""Memory files are searched as they are now, whoever wrote them, for those who may know them."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ctxproxy.core.memory_notes import Note, opening, rendered
from ctxproxy.core.note_search import pieces_of
from ctxproxy.core.records import SessionKey
from ctxproxy.proxy import note_search
from ctxproxy.proxy.note_search import NoteSearch
from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.proxy.test_retrieval import BUDGET, ON, history, recalled, user
from tests.scripted_upstream import ScriptedUpstream

ANN = {"X-User-Id": "ann"}
NO_PRELOAD: dict[str, Any] = {"memory": {"preload": {"sessions": 0, "chunks": 0}, "timezone": "UTC"}, **ON}
KEY = SessionKey("0f" * 16, "s")
ASKED = {"gate": 1.0, "code": 1.0}


async def tenant_folder(running: Running) -> Path:
    (session,) = await running.state.store.find("first")
    return Path(running.holder.current().data_dir) / "memory" / session.key.tenant


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


async def test_000_s14_what_a_user_writes_into_a_memory_file_is_found_at_the_next_question(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **NO_PRELOAD)
    question = [user("What is the code of the garden gate?")]
    await running.chat(question, session="first", headers=ANN)
    await running.settled()
    assert recalled(upstream) == ""
    folder = await tenant_folder(running) / "@ann"
    put(folder / "MEMORY.md", "# Memory\n\nThe garden gate has the code 7731.\n")
    await running.chat(question, session="second", headers=ANN)
    assert "Note: The garden gate has the code 7731." in recalled(upstream)
    put(folder / "MEMORY.md", "# Memory\n\nThe garden gate has the new code 1234.\n")
    await running.chat(question, session="third", headers=ANN)
    assert "1234" in recalled(upstream)
    assert "7731" not in recalled(upstream)
    for headers in ({"X-User-Id": "bob"}, {}, {**ANN, "Authorization": "Bearer else"}):
        await running.chat(question, session="fourth", headers=headers)
        assert recalled(upstream) == ""


async def test_000_s14_of_two_notes_that_fit_alike_the_newer_stands_alone_once_the_older_has_lost_half(
    proxy: StartProxy, upstream: ScriptedUpstream
) -> None:
    running = await proxy(upstream, **NO_PRELOAD)
    question = [user("What is the code of the garden gate?")]
    await running.chat(question, session="first", headers=ANN)
    await running.settled()
    folder, today = await tenant_folder(running) / "@ann", datetime.fromtimestamp(running.state.clock(), UTC)
    for age_days, code in ((0, "1111"), (10, "2222"), (40, "3333")):
        put(folder / f"{today - timedelta(days=age_days):%Y-%m-%d}.md", f"The code of the garden gate is {code}.\n")
    await running.chat(question, session="second", headers=ANN)
    assert [code for code in ("2222", "1111", "3333") if code in recalled(upstream)] == ["2222", "1111"]
    assert f"[{today - timedelta(days=10):%Y-%m-%d}]\nNote: The code" in recalled(upstream)


async def test_what_was_written_into_a_sessions_own_file_is_found_beside_its_log(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, **BUDGET)
    past = history(60)
    await running.chat([*past, user("go on")], session="first")
    await running.settled()
    [file] = (await tenant_folder(running)).rglob("*.md")
    file.write_text(file.read_text(encoding="utf-8") + "\nThe garden gate has the code 7731.\n", encoding="utf-8")
    await running.chat([*past, user("What is the code of the garden gate?")], session="first")
    assert "The garden gate has the code 7731." in recalled(upstream)


async def test_files_that_cannot_be_read_change_no_request(
    proxy: StartProxy, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await proxy(upstream, **NO_PRELOAD)

    async def broken(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(running.state.note_search, "found", broken)
    said = await running.chat([user("What is the code of the garden gate?")], session="s", headers=ANN)
    assert (said.status, recalled(upstream)) == (200, "")
    assert "could not be searched: Permission denied" in caplog.text


# ---------------------------------------------------------------- the files


async def found(search: NoteSearch, user: str = "") -> list[str]:
    return sorted(one.piece.text for one in await search.found(KEY, user, ASKED))


async def test_only_what_has_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(note_search, "pieces_of", lambda file, day, text: read.append(file) or pieces_of(file, day, text))
    folder, search = tmp_path / "memory" / KEY.tenant / "s", NoteSearch(tmp_path)
    assert await found(search) == []
    for day in ("2026-11-29", "2026-11-30"):
        put(folder / f"{day}.md", opening(day) + rendered(Note("s", day, "Trimmed", f"The gate has the code {day}.")))
    put(folder / "DIARY.md", "the gate has no code")
    put(folder / "notes.txt", "the gate has no code")
    (folder / "2026-11-28.md").symlink_to(folder / "DIARY.md")
    (folder / "2026-11-27.md").mkdir()
    both = ["The gate has the code 2026-11-29.", "The gate has the code 2026-11-30."]
    assert await found(search) == both
    assert await found(search) == both
    assert sorted(read) == ["2026-11-29.md", "2026-11-30.md"]
    os.unlink(folder / "2026-11-29.md")
    put(folder / "2026-11-30.md", "The gate has another code.")
    assert await found(search) == ["The gate has another code."]
    assert read[2:] == ["2026-11-30.md"]


async def test_a_user_knows_his_own_folder_too_and_no_link_leads_elsewhere(tmp_path: Path) -> None:
    root, search = tmp_path / "memory" / KEY.tenant, NoteSearch(tmp_path)
    put(root / "@ann" / "MEMORY.md", "The gate has the code of Ann.")
    put(root / "s" / "MEMORY.md", "The gate has the code of this session.")
    (root / "@bob").symlink_to(root / "@ann")
    assert await found(search) == ["The gate has the code of this session."]
    assert await found(search, "ann") == ["The gate has the code of Ann.", "The gate has the code of this session."]
    assert await found(search, "bob") == ["The gate has the code of this session."]


async def test_of_too_much_the_newest_days_are_searched_and_the_folders_asked_for_last_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(note_search, "SEARCHED_BYTES", 100)
    monkeypatch.setattr(note_search, "HELD_BYTES", 150)
    search = NoteSearch(tmp_path)
    for name in ("s", "t"):
        for day in (28, 29, 30):
            put(tmp_path / "memory" / KEY.tenant / name / f"2026-11-{day}.md", f"The gate has the code {day}.".ljust(45))
    assert await found(search) == ["The gate has the code 29.", "The gate has the code 30."]
    await search.found(SessionKey(KEY.tenant, "t"), "", ASKED)
    assert [path.name for path in search._held] == ["t"]


async def test_nothing_is_held_of_what_is_erased(tmp_path: Path) -> None:
    search, other = NoteSearch(tmp_path), SessionKey("1e" * 16, "s")
    for key in (KEY, other):
        put(tmp_path / "memory" / key.tenant / "s" / "MEMORY.md", "The gate has the code 1234.")
        await search.found(key, "", ASKED)
    await search.forget(KEY, ["aa"])
    assert [path.parent.name for path in search._held] == [other.tenant]


async def test_a_file_that_goes_while_it_is_read_has_nothing_to_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search, file = NoteSearch(tmp_path), tmp_path / "memory" / KEY.tenant / "s" / "MEMORY.md"
    put(file, "The gate has the code 1234.")
    stamps = note_search._stamps(file.parent)
    await asyncio.to_thread(file.unlink)
    monkeypatch.setattr(note_search, "_stamps", lambda _: stamps)
    assert await found(search) == []
