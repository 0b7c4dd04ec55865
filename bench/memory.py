"""What the proxy holds in memory: with 1,000 idle sessions of 200 messages, and at its peak for one body of 4 MB. Run: python -m bench.memory

The proxy is a process of its own with the SQLite store and the built-in model behind it; figures are of /proc/…/status. Each session is
sent as one full history. Exits with 1 if a figure is over its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ctxproxy.config.schema import Sessions, StoreSettings
from ctxproxy.wiring import COUNTS_BYTES, IDENTITIES_BYTES, READINGS_BYTES
from tests.acceptance.program import Program
from tests.scripted_upstream import Answer, ScriptedUpstream

MEGABYTE = 1_048_576
CACHES_BYTES = COUNTS_BYTES + IDENTITIES_BYTES + READINGS_BYTES + (Sessions().cache_mb + StoreSettings().cache_mb) * MEGABYTE
IDLE_LIMIT = CACHES_BYTES
"""All caches as they are configured."""
BODY_BYTES = 4 * MEGABYTE
BODY_LIMIT = 60 * MEGABYTE
AT_ONCE = 4
WORDS = ("gate", "lamp", "river", "stone", "paper", "wheel", "cloud", "glass", "north", "seven", "model", "table")


def prose(draw: random.Random, chars: int) -> str:
    """Words of about this many characters in all."""
    return " ".join(draw.choices(WORDS, k=chars // 6))


def history(session: int, messages: int) -> list[dict[str, str]]:
    """A history that no other session has, the user's message last."""
    draw = random.Random(session)  # noqa: S311  the same words in every run
    roles = ["user" if n % 2 == 0 else "assistant" for n in range(messages - 1)]
    return [{"role": role, "content": f"{session}/{n} {prose(draw, 120)}"} for n, role in enumerate(roles)]


def body(messages: list[dict[str, str]]) -> bytes:
    return json.dumps({"model": "gpt-4o", "messages": messages}).encode()


async def idle(program: Program, sessions: int, messages: int) -> int:
    """Bytes that stay resident for sessions that were used once and are idle now."""
    before = program.memory_bytes("VmRSS")
    numbers = iter(range(sessions))

    async def client() -> None:
        for number in numbers:
            assert await program.chat(body(history(number, messages)), f"idle-{number}") == 200

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    return program.memory_bytes("VmRSS") - before


async def large(program: Program, *, one_message: bool) -> int:
    """Bytes that the proxy takes beyond what is resident to serve one large body."""
    draw = random.Random(f"large {one_message}")  # noqa: S311  the same words in every run
    count = 1 if one_message else 2001
    said = [{"role": "user" if n % 2 == 0 else "assistant", "content": prose(draw, BODY_BYTES // count)} for n in range(count)]
    raw = body(said)
    program.forget_peak()
    before = program.memory_bytes("VmRSS")
    assert await program.chat(raw, f"large-{one_message}") == 200
    return program.memory_bytes("VmHWM") - before


async def measure(sessions: int, messages: int) -> list[tuple[str, int, int]]:
    """Name, bytes and limit of each figure, each of a fresh process."""
    found: list[tuple[str, int, int]] = []
    for one_message in (True, False):
        async with fresh() as program:
            print(f"started: {program.memory_bytes('VmRSS') / MEGABYTE:.1f} MB resident")
            name = f"extra peak for one body of 4 MB in {'one message' if one_message else '2,001 messages'}"
            found.append((name, await large(program, one_message=one_message), BODY_LIMIT))
    async with fresh() as program:
        began = time.monotonic()
        grown = await idle(program, sessions, messages)
        print(f"{sessions} sessions of {messages} messages sent in {time.monotonic() - began:.0f} s")
        found.append((f"resident more with {sessions} idle sessions of {messages} messages", grown, IDLE_LIMIT))
    return found


@contextlib.asynccontextmanager
async def fresh() -> AsyncIterator[Program]:
    """A proxy that has served one small request."""
    with tempfile.TemporaryDirectory(prefix="ctxproxy-memory-") as folder:
        async with ScriptedUpstream(Answer("noted")) as upstream, Program(Path(folder), {"upstream": {"base_url": f"{upstream.url}/v1"}}) as program:
            upstream.calls = _Forgetting()
            assert await program.chat(body(history(-1, 3)), "warm") == 200
            yield program


class _Forgetting(list[Any]):
    """The upstream's calls, not kept: a gigabyte of bodies would be."""

    def append(self, call: Any) -> None:
        return


def main() -> int:
    """Measure, print, and compare with the limits."""
    parser = argparse.ArgumentParser(description="The proxy's memory with many idle sessions and with a large body.")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--messages", type=int, default=200)
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments.sessions, arguments.messages))
    for name, taken, limit in found:
        print(f"{name}: {taken / MEGABYTE:.1f} MB (limit {limit / MEGABYTE:.0f} MB{', OVER' if taken > limit else ''})")
    return int(any(taken > limit for _, taken, limit in found))


if __name__ == "__main__":
    sys.exit(main())
