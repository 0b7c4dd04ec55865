"""What a streamed event costs: read along by itself, relayed by the proxy and by a pass-through that reads nothing; and what holds up the loop.

    python -m bench.streams [--rounds 3] [--open 1000]

First the reading: processor time in µs an event by stage, event by event and many in one go. Then both proxies in turn, each a process of its
own with all its threads: events that come alone (100 streams, one each 20 ms) and all at once (16 streams at a time). `further event` is what
an event costs more, by the difference between long streams and short ones, so that the request itself is not in it; what is done behind the
answers is not either. At last the proxy with
many streams open: whether all finish, what a stream keeps in memory, and each step of its loop that took more than 10 ms of processor time.
Exits with 1 if there is such a step while streams are open, or if one of them does not finish.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.watched import SLOW, TOO_LONG_S
from bench.workers import cpu_s
from ctxproxy.core.plain_chunks import plain_chunk
from ctxproxy.core.reply import ReplyAssembler
from ctxproxy.core.sse import SseReader
from tests.acceptance.program import Program

DONE = b"data: [DONE]\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"
WARM_STREAMS = 10
MOST_BYTES = 1 << 24
STILL_S = 0.3
OF_A_LULL = " garbage >"
"""In the name of a step that waits until no stream is open."""
DELTAS = {
    "text": {"content": " word"},
    "reasoning": {"content": None, "reasoning_content": " hmm"},
    "a tool call": {"tool_calls": [{"index": 0, "function": {"arguments": '{"a'}}]},
}


@dataclass(frozen=True)
class Load:
    """Streams, how many of them at a time, and how their events come."""

    streams: int
    at_once: int
    events: int
    every_s: float = 0.0


ALONE = Load(100, 100, 100, 0.02)
TOGETHER = Load(160, 16, 500)
FEW_EVENTS = 5


def event(delta: object, number: int = 0) -> bytes:
    """An event as OpenAI writes it."""
    chunk = {
        "id": "chatcmpl-1234567890abcdef",
        "object": "chat.completion.chunk",
        "created": 1_764_000_000,
        "model": "gpt-4o",
        "system_fingerprint": f"fp_{number:010}",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}],
        "usage": None,
    }
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def best_us(work: Callable[[], object], events: int, times: int = 200) -> float:
    taken = []
    for _ in range(times):
        began = time.process_time_ns()
        work()
        taken.append(time.process_time_ns() - began)
    return min(taken) / events / 1000


def one_by_one(chunk: bytes) -> None:
    reader, assembler = SseReader(), ReplyAssembler()
    for one in reader.feed(chunk):
        assembler.feed(one.data, one.name)


def in_one_go(chunk: bytes) -> None:
    datas = SseReader().plain(chunk)
    assert datas is not None
    ReplyAssembler().feed_all(datas)


def reading(events: int = 34) -> None:
    """Print what reading costs."""
    print("| µs an event of | event by event | in one go | of that: cutting | of that: decoding |\n|---|---|---|---|---|")
    for name, delta in DELTAS.items():
        chunk = b"".join(event(delta, number) for number in range(events))
        datas = SseReader().plain(chunk) or []
        stages = (
            partial(one_by_one, chunk),
            partial(in_one_go, chunk),
            partial(SseReader().plain, chunk),
            lambda datas=datas: [plain_chunk(data) for data in datas],
        )
        print(f"| {name} | " + " | ".join(f"{best_us(work, events):.2f}" for work in stages) + " |", flush=True)


class Upstream:
    """Answers each request with a stream of the load that is set."""

    def __init__(self) -> None:
        self.load = Load(0, 0, FEW_EVENTS)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0))
                await self._stream(writer, self.load)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _stream(self, writer: asyncio.StreamWriter, load: Load) -> None:
        loop = asyncio.get_running_loop()
        began, pieces = loop.time(), [HEAD]
        for number in range(load.events):
            pieces.append(framed(event(DELTAS["text"], number)))
            if load.every_s:
                writer.write(b"".join(pieces))
                pieces.clear()
                await asyncio.sleep(began + (number + 1) * load.every_s - loop.time())
        writer.write(b"".join([*pieces, framed(DONE), LAST]))
        await writer.drain()


def framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Client:
    """Sends a load to a proxy, each request of a session of its own."""

    def __init__(self, url: str) -> None:
        self._host, self._port = url.removeprefix("http://").split(":")
        self._sent = 0

    async def send(self, load: Load, ramp_s: float = 0.0) -> int:
        """How many streams have come to their end."""
        left = iter(range(load.streams))

        async def lane(number: int) -> int:
            await asyncio.sleep(ramp_s * number / load.at_once)
            reader, writer = await asyncio.open_connection(self._host, self._port, limit=MOST_BYTES)
            whole = 0
            for _ in left:
                writer.write(self._request())
                answer = await reader.readuntil(LAST)
                whole += answer.count(b"data: {") == load.events and DONE in answer
            writer.close()
            return whole

        return sum(await asyncio.gather(*(lane(number) for number in range(load.at_once))))

    def _request(self) -> bytes:
        self._sent += 1
        messages = [{"role": "user", "content": f"{self._sent} " + "please go on with this and that " * 25}]
        body = json.dumps({"model": "gpt-4o", "stream": True, "messages": messages}).encode()
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-bench-000000\r\n"
        return f"{head}X-Session-Id: s{self._sent}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@asynccontextmanager
async def upstream() -> AsyncIterator[tuple[Upstream, dict[str, Any]]]:
    """A listening upstream, and the configuration of a proxy before it."""
    answers = Upstream()
    server = await asyncio.start_server(answers.answer, "127.0.0.1", 0, backlog=4096)
    async with server:
        yield answers, {"upstream": {"base_url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"}}


async def relaying(rounds: int) -> None:
    """Print what relaying costs."""
    print("| processor time | pass-through | ctxproxy | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        async with upstream() as (answers, keys):
            kinds = {"pass-through": ("bench.pass_through",), "ctxproxy": ("ctxproxy", "serve")}
            programs = {name: Program(_made(Path(folder) / name), keys, started_by) for name, started_by in kinds.items()}
            async with programs["pass-through"], programs["ctxproxy"]:
                for name, load in (("alone", ALONE), ("all at once", TOGETHER)):
                    measured = await _in_turn(programs.values(), answers, load, rounds)
                    for what, costs in zip((f"further event, {name}, µs", f"request with {FEW_EVENTS} events, ms"), measured, strict=True):
                        print(f"| {what} | {costs[0]:.2f} | {costs[1]:.2f} | {costs[1] / costs[0]:.2f} |", flush=True)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def _in_turn(programs: Collection[Program], answers: Upstream, load: Load, rounds: int) -> tuple[list[float], list[float]]:
    """For each program the median µs of a further event and ms of a request with few events."""
    further: list[list[float]] = [[] for _ in programs]
    request: list[list[float]] = [[] for _ in programs]
    clients = [Client(program.url) for program in programs]
    for _ in range(rounds):
        for at, program in enumerate(programs):
            short = await _cost_s(program, clients[at], answers, replace(load, events=FEW_EVENTS))
            long = await _cost_s(program, clients[at], answers, load)
            further[at].append((long - short) / load.streams / (load.events - FEW_EVENTS) * 1e6)
            request[at].append(short / load.streams * 1e3)
    return [statistics.median(one) for one in further], [statistics.median(one) for one in request]


async def _cost_s(program: Program, client: Client, answers: Upstream, load: Load) -> float:
    """Of a load until its last answer has come; what is done behind the answers is waited for."""
    answers.load = load
    before = cpu_s([program.pid])
    assert await client.send(load) == load.streams
    taken = cpu_s([program.pid]) - before
    await _still(program)
    return taken


async def _still(program: Program) -> None:
    """Wait until a program does nothing any more."""
    seen = 0.0
    while (now := cpu_s([program.pid])) > seen:
        seen = now
        await asyncio.sleep(STILL_S)


async def many_open(count: int) -> bool:
    """Print how the proxy does with many streams open; gives whether all is well."""
    with tempfile.TemporaryDirectory() as folder:
        async with upstream() as (answers, keys), Program(Path(folder), keys, ("bench.watched",)) as program:
            client = Client(program.url)
            await client.send(Load(WARM_STREAMS, 1, FEW_EVENTS))
            program.forget_peak()
            before = program.memory_bytes("VmRSS")
            answers.load = Load(count, count, 40, 0.25)
            finished = await client.send(answers.load, ramp_s=4.0)
            await _still(program)
            grown = (program.memory_bytes("VmHWM") - before) / count / 1024
        slow = [line.removeprefix(SLOW) for line in program.log if line.startswith(SLOW)]
    print(f"{count} streams open: {finished} finished; {grown:.0f} KB each at the peak; {len(slow)} steps of the loop over {TOO_LONG_S * 1e3:.0f} ms")
    print("\n".join(sorted(slow, reverse=True)[:20]))
    return finished == count and all(OF_A_LULL in line for line in slow)


async def measured(rounds: int, count: int) -> bool:
    """Print all that is measured with processes."""
    await relaying(rounds)
    return await many_open(count)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--open", type=int, default=1000, help="streams that are open at the same time")
    arguments = parser.parse_args()
    reading()
    return int(not asyncio.run(measured(arguments.rounds, arguments.open)))


if __name__ == "__main__":
    sys.exit(main())
