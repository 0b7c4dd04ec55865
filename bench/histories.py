"""What remembered histories bring a client that sends only what is new: one request after the other in a session of N stored messages.

    python -m bench.histories [messages] [words a message]

Prints, with and without `store.cache_mb`, the median and 95th percentile of reading the history, and of a whole request through a running proxy
in front of the built-in model; both in this process, so that the figures are of one machine and one load.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from ctxproxy import wiring
from ctxproxy.config.load import load
from ctxproxy.config.reload import Holder
from ctxproxy.core.effects import AppendMessages, MoveTip
from ctxproxy.core.messages import identity, next_tip
from ctxproxy.core.records import StoredMessage
from ctxproxy.core.wire import from_log

REQUESTS = 40
NAMED = {"X-Session-Id": "long", "X-Context-Mode": "append", "Content-Type": "application/json"}


async def ask(http: aiohttp.ClientSession, url: str, text: str) -> float:
    """Seconds that a request takes."""
    body = json.dumps({"model": "demo", "messages": [{"role": "user", "content": text}]}).encode()
    began = time.perf_counter()
    async with http.post(f"{url}/v1/chat/completions", data=body, headers=NAMED) as answer:
        assert answer.status == 200, await answer.read()
        await answer.read()
    return time.perf_counter() - began


def stored(tip: str, messages: int, words: int) -> list[StoredMessage]:
    """So many messages that follow a tip."""
    rows: list[StoredMessage] = []
    for at in range(messages):
        role = "user" if at % 2 else "assistant"
        raw = json.dumps({"role": role, "content": f"message {at} " + "word " * words}).encode()
        rows.append(StoredMessage(next_tip(tip, identity(from_log(raw))), tip, raw, role, words, 1.0))
        tip = rows[-1].tip
    return rows


def configured(folder: Path, cache_mb: int) -> Holder:
    """Settings under which nothing but the history costs anything."""
    keys = {"listen": {"port": 0}, "upstream": {"base_url": "demo"}, "data_dir": str(folder), "store": {"cache_mb": cache_mb}}
    file = folder / "config.yaml"
    file.write_text(json.dumps({**keys, "context": {"preset": "off"}, "memory": {"facts": False, "daily_files": False}}), encoding="utf-8")
    return Holder(load(file, {}, {}), {})


async def measured(messages: int, words: int, cache_mb: int) -> tuple[list[float], list[float]]:
    """Seconds of reading the history, and of whole requests."""
    with tempfile.TemporaryDirectory() as folder:
        holder = configured(Path(folder), cache_mb)
        async with wiring.running_server(holder.current) as (state, url), aiohttp.ClientSession() as http:
            await ask(http, url, "hello")
            (session,) = await state.store.find("long")
            rows = stored(session.tip, messages, words)
            await state.store.apply([AppendMessages(session.key, tuple(rows)), MoveTip(session.key, None, rows[-1].tip)])
            reading, asking = [], []
            for number in range(REQUESTS):
                asking.append(await ask(http, url, f"and {number}?"))
                (session,) = await state.store.find("long")
                began = time.perf_counter()
                assert len(await state.store.history(session.key, session.tip)) >= messages
                reading.append(time.perf_counter() - began)
    return reading[2:], asking[2:]


def figures(seconds: list[float]) -> str:
    """Median and 95th percentile in milliseconds."""
    return f"{statistics.median(seconds) * 1e3:7.1f} {statistics.quantiles(seconds, n=20)[-1] * 1e3:7.1f}"


async def main(messages: int, words: int) -> None:
    """Print the table."""
    print(f"{messages} stored messages of {words} words; milliseconds, median and p95")
    print("cache_mb  reading          request")
    for cache_mb in (0, 32, 0, 32):
        reading, asking = await measured(messages, words, cache_mb)
        print(f"{cache_mb:8} {figures(reading)}  {figures(asking)}")


if __name__ == "__main__":
    logging.getLogger("ctxproxy").setLevel(logging.ERROR)
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, int(sys.argv[2]) if len(sys.argv) > 2 else 100))
