"""The program is killed as soon as it has answered, again and again; once it has run in peace nothing is left undone."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from ctxproxy.core.memory_notes import notes_in
from ctxproxy.store import open_store
from tests.acceptance.program import Program
from tests.contract.conftest import no_damage
from tests.proxy.test_background import talk

KEYS = {"upstream": {"base_url": "demo"}, "context": {"max_tokens": 4000}, "memory": {"daily_text": "events"}, "store": {"url": "sqlite:///s.db"}}
KILLS = 2


async def test_what_kills_left_undone_is_done(tmp_path: Path) -> None:
    for n in range(KILLS):
        async with Program(tmp_path, KEYS) as program:
            body = {"model": "demo", "messages": talk(40 + n)}
            assert await program.chat(json.dumps(body).encode(), f"s{n}") == 200
            os.kill(program.pid, signal.SIGKILL)
            await program.ended()
    async with Program(tmp_path, KEYS) as program:
        await program.admin("sessions")
    assert program.complaints == []
    store = await open_store(f"sqlite:///{tmp_path}/data/s.db", on_damage=no_damage, cache_bytes=0)
    sessions = (await store.sessions(99, None, "")).sessions
    assert sorted(one.key.name for one in sessions) == [f"s{n}" for n in range(KILLS)]
    assert (await store.dues(99), await store.chunks.behind(99), await store.facts.unread(99)) == ([], [], [])
    await store.close()
    noted = [note.session for file in (tmp_path / "data" / "memory").rglob("*.md") for note in notes_in(file.read_text(encoding="utf-8"))]
    assert set(noted) == {one.key.name for one in sessions}
    assert len(noted) == len(set(noted))
