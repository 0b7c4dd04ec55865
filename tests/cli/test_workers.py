"""`serve --workers 2` as a program: two processes on one port and one store, and who watches over them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ctxproxy import workers
from tests.acceptance.program import Program, session_path

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
KEYS: dict[str, Any] = {"listen": {"port": 0, "workers": 2}, "upstream": {"base_url": "demo"}}
SESSIONS, TURNS = 25, 3


async def asked(program: Program, session: str, text: str) -> str:
    """The prompt budget of an answer to a thin request on a connection of its own, so that either worker may get it."""
    headers = {"X-Session-Id": session, "X-Context-Mode": "append", "Authorization": "Bearer sk-tested"}
    body = {"model": "demo", "messages": [{"role": "user", "content": text}]}
    async with aiohttp.ClientSession() as http, http.post(f"{program.url}/v1/chat/completions", json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        await answer.read()
        return answer.headers["X-Context-Budget"]


async def talked(program: Program, session: str) -> None:
    for turn in range(TURNS):
        await asked(program, session, f"{session} says {turn}")


async def answered(program: Program) -> int:
    """`ctxproxy_requests_total`."""
    async with aiohttp.ClientSession() as http, http.get(f"{program.url}/metrics") as answer:
        found = re.search(r'^ctxproxy_requests_total{outcome="answered"} (\d+)', await answer.text(), re.MULTILINE)
        return int(found[1]) if found else 0


async def said(program: Program, session: str) -> list[str]:
    page = await program.admin(f"{session_path(session)}/messages?limit=100")
    return [entry["message"]["content"] for entry in page["data"] if entry["message"]["role"] == "user"]


async def test_two_workers_serve_each_session_right_and_one_that_dies_is_started_again(tmp_path: Path) -> None:
    async with Program(tmp_path, KEYS) as program:
        before = program.workers()
        assert len(before) == 2
        names = [f"s{n}" for n in range(SESSIONS)]
        await asyncio.gather(*(talked(program, name) for name in names))
        for name in names:
            assert await said(program, name) == [f"{name} says {turn}" for turn in range(TURNS)]
        assert await answered(program) == SESSIONS * TURNS
        os.kill(before[1], signal.SIGKILL)
        await program.logged("worker 1 ended with signal 9; it is started again in 0.5 s")
        await asked(program, "s0", "still there?")
        assert await answered(program) == SESSIONS * TURNS + 1
        await program.logged("worker 1 serves again")
        after = program.workers()
        assert (len(after), before[0] in after, before[1] in after) == (2, True, False)
        for name in names[:8]:
            await asked(program, name, "and now?")
        assert await answered(program) == SESSIONS * TURNS + 9
        (tmp_path / "config.yaml").write_text(json.dumps({**program.keys, "context": {"max_tokens": 777}}), encoding="utf-8")
        os.kill(program.pid, signal.SIGHUP)
        await program.logged("configuration read again, changed: context")
        async with asyncio.timeout(30):
            while {await asked(program, "s1", "which budget?") for _ in range(12)} != {"777"}:
                pass
        os.kill(program.pid, signal.SIGTERM)
        assert await program.ended() == 0
    assert [line for line in program.complaints if "is started again" not in line] == []
    assert sum("configuration read again" in line for line in program.log) == 1


async def test_workers_end_with_whoever_watches_over_them(tmp_path: Path) -> None:
    async with Program(tmp_path, KEYS) as program:
        await asked(program, "s", "hi")
        os.kill(program.pid, signal.SIGKILL)
        assert await program.ended() == -signal.SIGKILL


async def test_what_keeps_a_worker_from_starting_ends_the_start_and_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(AssertionError, match="did not start") as caught:
        async with Program(tmp_path, {**KEYS, "store": {"url": f"sqlite:///{tmp_path}/file/s.db"}}):
            pass
    assert str(caught.value).count("store.url: ") == 1


def test_an_address_that_another_program_has_is_refused_and_one_that_is_free_is_shared() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        workers.reserve("127.0.0.1", taken.getsockname()[1])
    (reserved,) = workers.reserve("127.0.0.1", 0)
    listening = [*workers.listeners([reserved]), *workers.listeners([reserved])]
    for one in listening:
        one.listen()
    assert {one.getsockname() for one in listening} == {reserved.getsockname()}
    with pytest.raises(OSError, match="in use"):
        workers.reserve(*reserved.getsockname())
    for one in (*listening, reserved):
        one.close()
