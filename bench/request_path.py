"""Where the time of a request goes: one conversation that grows by a turn each time, each stage of `proxy/exchange.py` by itself.

    python -m bench.request_path [--messages 10,100,1000,5000] [--turns 20] [--chars 2000] [--profile FILE]

Prints for each length of the history, with everything fitting and with a budget of a quarter (compacting), the median processor time of each
stage in microseconds, of this process with all its threads; the first request, which is read, counted and stored whole, stands beside. The
upstream is a canned answer in memory, so no socket is in the figures; what is done behind the answers is waited for between two requests and
told as a stage of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import logging
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp.test_utils import make_mocked_request

from ctxproxy import wiring
from ctxproxy.config.load import load
from ctxproxy.config.reload import Holder
from ctxproxy.config.schema import Settings
from ctxproxy.ports import Call, Headers
from ctxproxy.proxy.early import EarlyCall
from ctxproxy.proxy.exchange import context_headers
from ctxproxy.proxy.identify import identify
from ctxproxy.proxy.keeping import Keeping
from ctxproxy.proxy.outgoing import call_for
from ctxproxy.proxy.prepare import prepare
from ctxproxy.proxy.rescue import Rescue
from ctxproxy.proxy.state import State

WORDS = ("proxy", "keeps", "turn", "long", "conversation", "sends", "fits", "window", "while", "nothing", "said", "lost", "budget", "answer")
WORDS_SHARE = 0.97
"""The rest are numbers."""
STAGES = ("read", "identify", "prepare", "plan", "send", "headers", "settle", "behind")
REPLY = "fine, and what comes next?"


@dataclass(slots=True)
class Canned:
    """An upstream that answers at once."""

    status: int = 200
    reason: str = "OK"
    headers: Headers = (("Content-Type", "application/json"),)

    async def send(self, call: Call) -> Canned:
        return self

    async def chunks(self) -> AsyncIterator[bytes]:
        choice = {"index": 0, "message": {"role": "assistant", "content": REPLY}, "finish_reason": "stop"}
        yield json.dumps({"id": "1", "object": "chat.completion", "model": "gpt-4o", "choices": [choice]}).encode()

    async def close(self) -> None:
        return


@dataclass(slots=True)
class Timer:
    """Processor microseconds by stage."""

    taken: dict[str, list[float]] = field(default_factory=lambda: {stage: [] for stage in STAGES})
    profile: cProfile.Profile | None = None
    """What takes part in all stages before the answer, if anything."""

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        profile = self.profile if stage != "behind" else None
        if profile:
            profile.enable()
        began = time.process_time_ns()
        yield
        if profile:
            profile.disable()
        self.taken[stage].append((time.process_time_ns() - began) / 1000)


def said(dice: random.Random, role: str, chars: int) -> str:
    words = (dice.choice(WORDS) if dice.random() < WORDS_SHARE else str(dice.randrange(1000)) for _ in range(chars // 5))
    text = " ".join(words)
    return json.dumps({"role": role, "content": text}, separators=(",", ":"))


def body_of(messages: list[str]) -> bytes:
    return ('{"messages":[' + ",".join(messages) + '],"model":"gpt-4o","max_tokens":100}').encode()


async def one_request(state: State, settings: Settings, body: bytes, timer: Timer) -> None:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-bench-000000", "X-Session-Id": "bench"}
    request = make_mocked_request("POST", "/v1/chat/completions", headers=headers)
    with timer.of("read"):
        chat = (await state.bodies.read("bench", body, commands=True)).chat
    with timer.of("identify"):
        caller = identify(request, chat, settings, state.secret)
    target = caller.target
    early = EarlyCall(state.tasks, lambda: state.upstream(target.base_url).send(call_for(request, target, settings, body)))
    with timer.of("prepare"):
        prepared = await prepare(state, settings, chat, caller, lambda: None)
    rescue = Rescue(state, request, settings, prepared)
    with timer.of("plan"):
        ready = await rescue.first_plan()
    with timer.of("send"):
        got = await rescue.answer(ready, early)
    with timer.of("headers"):
        context_headers(settings.sessions.header, prepared, got)
    with timer.of("settle"):
        await Keeping(state, settings, prepared, got, rescue.asked).settle(True)
    with timer.of("behind"):
        await idle(state)


async def idle(state: State) -> None:
    """Wait until nothing is left to be done behind the answers."""
    while running := tuple(state.tasks._running):  # noqa: SLF001  nobody else waits for all of it
        await asyncio.wait(running)


def configured(folder: Path, budget: int | None) -> Holder:
    """Settings with room for all, or with a budget."""
    context = {"pre_rot_tokens": 100_000_000} if budget is None else {"max_tokens": budget}
    keys = {
        "listen": {"port": 0},
        "data_dir": str(folder),
        "context": context,
        "models": [{"match": "*", "window": 100_000_000}],
        "summarizer": {"kind": "extractive"},
    }
    file = folder / "config.yaml"
    file.write_text(json.dumps(keys), encoding="utf-8")
    return Holder(load(file, {}, {}), {})


async def measured(args: argparse.Namespace, count: int, budget: int | None, profile: cProfile.Profile | None) -> tuple[Timer, Timer]:
    """The first request, and those after it."""
    dice = random.Random(count)  # noqa: S311  the same words in every run
    messages = [said(dice, "user" if at % 2 == (count - 1) % 2 else "assistant", args.chars) for at in range(count)]
    first, later = Timer(), Timer()
    with tempfile.TemporaryDirectory() as folder:
        holder = configured(Path(folder), budget)
        async with wiring.running_state(holder.current) as state:
            state.upstream = lambda _: Canned()
            state.lull.open()  # what is done behind an answer begins at once
            await one_request(state, holder.current(), body_of(['{"role":"user","content":"warm up"}']), Timer())
            await one_request(state, holder.current(), body_of(messages), first)
            gc.collect()
            later.profile = profile
            for _ in range(args.turns):
                messages += [json.dumps({"role": "assistant", "content": REPLY}), said(dice, "user", 1000)]
                await one_request(state, holder.current(), body_of(messages), later)
    return first, later


def shown(name: str, timer: Timer) -> str:
    medians = [statistics.median(timer.taken[stage]) for stage in STAGES]
    return f"| {name} | " + " | ".join(f"{one:,.0f}" for one in (*medians, sum(medians[:-1]))) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", default="10,100,1000,5000")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--chars", type=int, default=2000, help="characters of a message of the history")
    parser.add_argument("--fits", action="store_true", help="only with room for all")
    parser.add_argument("--profile", type=Path, help="write a cProfile of the later requests there")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    profile = cProfile.Profile(time.thread_time) if args.profile else None
    print("| messages | " + " | ".join(STAGES) + " | before the answer |\n|---|" + "---|" * (len(STAGES) + 1), flush=True)
    for count in map(int, args.messages.split(",")):
        tokens = count * args.chars // 2
        for name, budget in (("fits", None), ("compacts", max(2000, tokens // 4)))[: 1 if args.fits else 2]:
            first, later = asyncio.run(measured(args, count, budget, profile))
            print(shown(f"{count}, {name}, first", first) + "\n" + shown(f"{count}, {name}, later", later), flush=True)
    if profile:
        profile.dump_stats(args.profile)


if __name__ == "__main__":
    main()
