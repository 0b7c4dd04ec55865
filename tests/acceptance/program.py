"""ctxproxy as a program of its own: a child process on a free port, its log, its admin API and its memory."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import aiohttp

from tests.shared_dir import PROJECT

LISTENS = re.compile(r"listens on (http://\S+),")
PATIENCE_S = 60.0


class Program:
    """`async with Program(folder, keys) as program:` — `keys` is what stands in config.yaml; `program.url` is where it listens.

    `started_by`: the module, with its first arguments, that is run in place of `ctxproxy serve`.
    """

    def __init__(self, folder: Path, keys: Mapping[str, Any], started_by: Sequence[str] = ("ctxproxy", "serve")) -> None:
        self._folder = folder
        self._started_by = started_by
        self.keys = {"listen": {"port": 0}, "data_dir": str(folder / "data"), **keys}
        self._process: asyncio.subprocess.Process
        self._reading: asyncio.Task[None]
        self._http: aiohttp.ClientSession
        self._more = asyncio.Event()
        self.url = ""
        self.log: list[str] = []

    async def __aenter__(self) -> Program:
        file = self._folder / "config.yaml"
        file.write_text(json.dumps(self.keys), encoding="utf-8")
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("CTXPROXY_", "OPENAI_"))}
        words = [sys.executable, "-m", *self._started_by, "--config", str(file)]
        self._process = await asyncio.create_subprocess_exec(
            *words, cwd=self._folder, env={**environ, "PYTHONPATH": str(PROJECT), "TMPDIR": str(self._folder)}, stderr=asyncio.subprocess.PIPE
        )
        self._http = aiohttp.ClientSession()
        listening = asyncio.Event()
        self._reading = asyncio.create_task(self._read_log(listening))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await listening.wait()
        if not self.url:
            await self.__aexit__(None, None, None)
            raise AssertionError("the program did not start: " + "\n".join(self.log))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._http.close()
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            raise AssertionError("the program did not stop when told to") from error
        await self._reading

    async def _read_log(self, listening: asyncio.Event) -> None:
        assert self._process.stderr is not None
        async for raw in self._process.stderr:
            line = raw.decode(errors="replace").rstrip()
            self.log.append(line)
            self._more.set()
            if found := LISTENS.search(line):
                self.url = found[1]
                listening.set()
        listening.set()

    @property
    def complaints(self) -> list[str]:
        """Its log without the lines that tell of what goes well."""
        return [line for line in self.log if " INFO " not in line]

    async def admin(self, path: str, body: Any = None) -> Any:
        """The JSON answer of an admin call: POST with a body, else GET."""
        method = "GET" if body is None else "POST"
        async with self._http.request(method, f"{self.url}/ctxproxy/api/{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def chat(self, body: bytes, session: str) -> int:
        """Send a chat completion; its status, as soon as its answer has been read."""
        headers = {"Content-Type": "application/json", "X-Session-Id": session, "Authorization": "Bearer sk-tested"}
        async with self._http.post(f"{self.url}/v1/chat/completions", data=io.BytesIO(body), headers=headers) as answer:
            await answer.read()
            return answer.status

    def workers(self) -> list[int]:
        """The process ids of its children."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii").split()]

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ended(self) -> int:
        """Its exit status, once it and all its children have ended."""
        async with asyncio.timeout(PATIENCE_S):
            await self._reading
            return await self._process.wait()

    async def logged(self, words: str, times: int = 1) -> None:
        """Wait until a line that holds these words has come so often."""
        async with asyncio.timeout(PATIENCE_S):
            while sum(words in line for line in self.log) < times:
                self._more.clear()
                await self._more.wait()

    def memory_bytes(self, field: str) -> int:
        """A figure of /proc/…/status: VmRSS (resident now) or VmHWM (its peak)."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
        assert found, status
        return int(found[1]) * 1024

    def forget_peak(self) -> None:
        """Let VmHWM begin anew at what is resident now (proc(5), clear_refs 5)."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5", encoding="ascii")


def session_path(name: str) -> str:
    """A session as it stands in an admin path."""
    return f"sessions/{quote(name, safe='')}"
