"""A long streamed chat through the proxy against a real llama.cpp server, turn by turn; `scripts/try-llama` installs what it needs and runs it.

The proxy is told the server's address and nothing else. The client comes with a history from elsewhere that is longer than the window,
so that the very first request meets the server's own refusal; how the model counts is learned from it and from `usage`. What the model
says is of no worth (it is very small); what counts is that no error reaches the client.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from openai import APIError, AsyncOpenAI

from tests.acceptance.program import Program

WINDOW = 2048
ANSWER_TOKENS = 48
EARLIER = 25
"""Turns that the client brings along; about 2,700 tokens."""
READY_WITHIN_S = 60.0
SESSION = "llama"
PLACES = ("harbour", "mill", "library", "station", "market", "school", "forest", "bridge", "garden", "theatre")
THINGS = ("a red lantern", "three copper coins", "an old map", "a bag of flour", "two brass keys", "a broken clock", "a blue umbrella")


@dataclass(frozen=True)
class Turn:
    """What one turn of the chat came to; `counted` is the server's own count of the prompt, None where the turn failed."""

    seconds: float
    tokens_in: str = "-"
    sent: str = "-"
    counted: int | None = None
    attempts: str = "-"
    window: str = "-"
    actions: str = "-"
    error: str = ""


def spoken(number: int) -> str:
    """What the user says in a turn: about 90 tokens, different each time."""
    place, thing = PLACES[number % len(PLACES)], THINGS[number % len(THINGS)]
    return (
        f"Day {number + 1}. This morning I walked to the {place} and found {thing} under bench number {17 + 13 * number}. "
        f"A man called Otto {number + 1} told me that the {place} closes at {8 + number % 10}:{number % 6}5 and that {20 + 7 * number} people came "
        f"yesterday. I wrote it into my notebook on page {100 + number}, paid {number + 2} coins for tea, and went home by tram {number % 9 + 1}. "
        "Tell me in one sentence what I should do with it."
    )


@contextlib.asynccontextmanager
async def llama_server(folder: Path) -> AsyncIterator[str]:
    """The real server on a free port; gives its base URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = (
        str(folder / "venv" / "bin" / "python"),
        str(Path(__file__).with_name("llama_server.py")),
        str(folder / "model.gguf"),
        str(port),
        str(WINDOW),
    )
    with (folder / "server.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
        try:
            await _ready(f"http://127.0.0.1:{port}/health")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await process.wait()


async def _ready(url: str) -> None:
    async with asyncio.timeout(READY_WITHIN_S), aiohttp.ClientSession() as http:
        while True:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                async with http.get(url) as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.2)


async def turn(client: AsyncOpenAI, messages: list[Any]) -> Turn:
    """Ask for the next answer, streamed, and add it to the messages."""
    began = time.monotonic()
    try:
        raw = await client.chat.completions.with_raw_response.create(
            model="small", messages=messages, max_tokens=ANSWER_TOKENS, stream=True, stream_options={"include_usage": True}
        )
        text, counted = "", None
        async for chunk in raw.parse():
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            counted = chunk.usage.prompt_tokens if chunk.usage else counted
    except APIError as error:
        messages.append({"role": "assistant", "content": "(no answer)"})
        return Turn(time.monotonic() - began, error=error.message)
    messages.append({"role": "assistant", "content": text or "(nothing)"})
    shown = {name: raw.headers[f"X-Context-{name}"] for name in ("Tokens-In", "Tokens-Sent", "Attempts", "Window", "Actions")}
    seconds = time.monotonic() - began
    return Turn(seconds, shown["Tokens-In"], shown["Tokens-Sent"], counted, shown["Attempts"], shown["Window"], shown["Actions"])


async def chat(folder: Path, turns: int, summarizer: str) -> int:
    """Hold the chat, print a line a turn and the figures; the exit status."""
    with tempfile.TemporaryDirectory(prefix="ctxproxy-llama-", dir=folder) as own:
        async with llama_server(folder) as url:
            keys = {"upstream": {"base_url": url}, "summarizer": {"kind": summarizer}}
            async with Program(Path(own), keys) as program:
                done = await _held(program, turns)
                table = (await program.admin("models"))["data"]
    print(f"\nerrors at the client: {sum(bool(one.error) for one in done)}")
    print(f"overflows rescued:    {sum(not one.error and int(one.attempts) > 1 for one in done)}")
    known = [f"{row['model']} {row['window']} ({row['source']})" for row in table]
    print(f"window learned:       {', '.join(known) or 'none'}")
    print(f"count against theirs: {_ratio(done[:5])} in the first five turns, {_ratio(done[-5:])} in the last five")
    print(f"log lines of warning: {len(program.complaints)}")
    for line in program.complaints:
        print(f"  {line}")
    return int(any(one.error for one in done))


async def _held(program: Program, turns: int) -> list[Turn]:
    client = AsyncOpenAI(base_url=f"{program.url}/v1", api_key="sk-none", default_headers={"X-Session-Id": SESSION}, max_retries=0, timeout=600)
    messages: list[Any] = [{"role": "system", "content": "You are a friendly helper. Answer in one short sentence."}]
    for number in range(EARLIER):
        messages += [{"role": "user", "content": spoken(number)}, {"role": "assistant", "content": "Keep it dry, and ask Otto about it again."}]
    done: list[Turn] = []
    print(f"{'turn':>4} {'s':>6} {'in':>6} {'sent':>6} {'theirs':>6} {'calls':>5}  {'window':<18} actions")
    for number in range(turns):
        messages.append({"role": "user", "content": spoken(EARLIER + number)})
        one = await turn(client, messages)
        done.append(one)
        figures = f"{number + 1:>4} {one.seconds:>6.1f} {one.tokens_in:>6} {one.sent:>6} {one.counted or '-':>6} {one.attempts:>5}"
        print(f"{figures}  {one.window:<18} {one.error or one.actions}", flush=True)
    await client.close()
    return done


def _ratio(turns: list[Turn]) -> str:
    """Our count of the prompts over the server's own."""
    known = [one for one in turns if one.counted]
    theirs = sum(one.counted or 0 for one in known)
    return f"{sum(int(one.sent) for one in known) / theirs:.3f}" if theirs else "-"


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description="A long chat through ctxproxy against a real llama.cpp server.")
    parser.add_argument("folder", type=Path, help="holds venv (with xllamacpp) and model.gguf; scripts/try-llama makes it")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--summarizer", choices=("llm", "extractive", "off"), default="llm")
    arguments = parser.parse_args()
    return asyncio.run(chat(arguments.folder.resolve(), arguments.turns, arguments.summarizer))


if __name__ == "__main__":
    sys.exit(main())
