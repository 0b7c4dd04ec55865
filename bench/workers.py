"""Many sessions at once against one and against several workers: what a request costs, and whether every stored history is right.

    python -m bench.workers [sessions] [turns] [workers]

Thin clients ask the built-in model in turn, over as many kept connections as there are sessions, each turn on whichever is free. Prints for one
worker and for several: requests a second, processor time a request of all processes, and how many histories are not what was said.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from tests.acceptance.program import Program, session_path

CONNECTIONS = 100
HEADERS = {"X-Context-Mode": "append", "Authorization": "Bearer sk-tested"}


async def talk(http: aiohttp.ClientSession, url: str, session: str, turns: int) -> None:
    """A session's turns, one after the other."""
    for turn in range(turns):
        body = {"model": "demo", "messages": [{"role": "user", "content": f"{session} says {turn}"}]}
        async with http.post(f"{url}/v1/chat/completions", json=body, headers={**HEADERS, "X-Session-Id": session}) as answer:
            await answer.read()
            assert answer.status == 200, answer.status


async def wrong(program: Program, sessions: int, turns: int) -> int:
    """How many sessions do not hold just what was said in them, in order."""
    found = 0
    for n in range(sessions):
        page = await program.admin(f"{session_path(f's{n}')}/messages?limit=1000")
        said = [entry["message"]["content"] for entry in page["data"] if entry["message"]["role"] == "user"]
        found += said != [f"s{n} says {turn}" for turn in range(turns)] or len(page["data"]) != 2 * turns
    return found


def cpu_s(pids: list[int]) -> float:
    """Processor time of processes so far (proc(5): utime and stime, in hundredths)."""
    stats = [Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split() for pid in pids]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / 100


async def run(workers: int, sessions: int, turns: int) -> None:
    """One row."""
    keys = {"listen": {"port": 0, "workers": workers}, "upstream": {"base_url": "demo"}}
    with tempfile.TemporaryDirectory() as folder:
        async with Program(Path(folder), keys) as program:
            pids = [program.pid, *program.workers()]
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS)) as http:
                before, began = cpu_s(pids), time.perf_counter()
                await asyncio.gather(*(talk(http, program.url, f"s{n}", turns) for n in range(sessions)))
                took_s, cpu = time.perf_counter() - began, cpu_s(pids) - before
            requests, mistaken = sessions * turns, await wrong(program, sessions, turns)
            shares = ", ".join(f"{cpu_s([pid]):.1f}" for pid in pids)
    speed, cost = requests / took_s, cpu / requests * 1e3
    print(f"{workers} workers: {requests} requests, {speed:.0f}/s, {cost:.2f} ms CPU each ({shares} s); {mistaken} histories wrong")


async def main(sessions: int, turns: int, workers: int) -> None:
    """Print both rows."""
    for count in (1, workers):
        await run(count, sessions, turns)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    asyncio.run(main(*(given + [500, 4, 2][len(given) :])))
