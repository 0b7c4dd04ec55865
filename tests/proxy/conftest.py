"""`upstream`: a scripted upstream that answers "ok"; `proxy`: a factory of running proxies in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.proxy.running import Running
from tests.scripted_upstream import Answer, ScriptedUpstream


class StartProxy(Protocol):
    def __call__(self, upstream: ScriptedUpstream | str, /, **sections: Any) -> Awaitable[Running]: ...


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream(Answer("ok")) as running:
        yield running


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[StartProxy]:
    """`await proxy(upstream, context={…}, recovery={…})`; sessions are kept in memory unless `store` says otherwise,
    and nothing is retrieved unless `retrieval` says so."""
    started: list[Running] = []

    async def start(upstream: ScriptedUpstream | str, /, **sections: Any) -> Running:
        base_url = upstream if isinstance(upstream, str) else f"{upstream.url}/v1"
        folder = tmp_path / f"proxy-{len(started)}"
        folder.mkdir()
        keys = {
            "listen": {"port": 0, **sections.pop("listen", {})},
            "upstream": {"base_url": base_url, **sections.pop("upstream", {})},
            "store": {"url": "memory://"},
            "data_dir": str(folder / "data"),
            "retrieval": {"kind": "off"},  # what it adds to prompts would stand between most tests and what they look at
            **sections,
        }
        running = await Running(keys, folder).start()
        started.append(running)
        return running

    yield start
    for running in started:
        await running.stop()
