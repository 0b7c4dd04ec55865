"""One coding agent's night: a session whose client sends all of its growing history, compacted often; what a request costs.

    python -m bench.night [turns] [budget]

The built-in model answers (its window is 8,192 tokens), half of the answers as a stream. Prints for each hundred turns: messages and megabytes of
the history, processor time a request, how long the median and the slowest one took, resident memory, size of the store. A request that is not
answered, or whose prompt is over the budget, ends it.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp

from bench.workers import cpu_s
from tests.acceptance.program import Program

WORDS = ("retry", "config", "parser", "token", "index", "cache", "window", "server", "client", "branch", "merge", "deploy", "table", "order", "error")
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}]
HEADERS = {"X-Session-Id": "night", "Authorization": "Bearer sk-tested"}
EVERY = 100


def text(draw: random.Random, words: int) -> str:
    """Words, some of them with a number."""
    return " ".join(draw.choice(WORDS) + (str(draw.randint(1, 9999)) if draw.random() < 0.15 else "") for _ in range(words))


def turn(draw: random.Random, number: int) -> list[dict[str, Any]]:
    """A task and up to four calls with results of 5 to 80 lines."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Task {number}: {text(draw, draw.randint(10, 60))}"}]
    for step in range(draw.randint(0, 4)):
        name = f"call_{number}_{step}"
        function = {"name": "read_file", "arguments": json.dumps({"path": f"src/{draw.choice(WORDS)}_{draw.randint(1, 50)}.py"})}
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": function}]})
        lines = "\n".join(text(draw, draw.randint(5, 14)) for _ in range(draw.randint(5, 80)))
        messages.append({"role": "tool", "tool_call_id": name, "content": lines})
    return messages


async def asked(http: aiohttp.ClientSession, url: str, history: list[dict[str, Any]], *, stream: bool) -> str:
    """What the built-in model says; raises AssertionError for anything but an answer within the budget."""
    body = json.dumps({"model": "demo", "messages": history, "tools": TOOLS, "stream": stream}).encode()
    headers = {**HEADERS, "Content-Type": "application/json"}
    async with http.post(f"{url}/v1/chat/completions", data=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        assert int(answer.headers["X-Context-Tokens-Sent"]) <= int(answer.headers["X-Context-Budget"])
        said = await answer.text()
    if not stream:
        return str(json.loads(said)["choices"][0]["message"]["content"])
    events = [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: {")]
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])


def resident_mb(pid: int) -> int:
    """Resident memory of a process (proc(5), kilobytes)."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) // 1024


def stored_mb(folder: Path) -> float:
    """Size of the store's files."""
    return sum(file.stat().st_size for file in folder.rglob("*.db*")) / 1e6


async def main(turns: int, budget: int) -> None:
    """Print a line for each hundred turns."""
    draw = random.Random(7)  # noqa: S311  nothing is kept secret with it
    history: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent. Never push to main without asking."}]
    took: list[float] = []
    keys = {"listen": {"port": 0}, "upstream": {"base_url": "demo"}, "context": {"max_tokens": budget}}
    with tempfile.TemporaryDirectory() as folder:
        async with Program(Path(folder), keys) as program, aiohttp.ClientSession() as http:
            before = cpu_s([program.pid])
            for number in range(1, turns + 1):
                history += turn(draw, number)
                began = time.perf_counter()
                reply = await asked(http, program.url, history, stream=draw.random() < 0.5)
                took.append((time.perf_counter() - began) * 1e3)
                history.append({"role": "assistant", "content": reply})
                if number % EVERY:
                    continue
                cpu, before = (cpu_s([program.pid]) - before) / EVERY * 1e3, cpu_s([program.pid])
                size = len(json.dumps(history)) / 1e6
                print(
                    f"{number} turns, {len(history)} messages, {size:.1f} MB: {cpu:.0f} ms CPU a request, median {median(took):.0f} ms,"
                    f" most {max(took):.0f}; {resident_mb(program.pid)} MB resident, {stored_mb(Path(folder)):.0f} MB stored",
                    flush=True,
                )
                took.clear()


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    asyncio.run(main(*(given + [300, 6_000][len(given) :])))
