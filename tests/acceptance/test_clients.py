"""Real clients hold a conversation of eight windows through the proxy, with tools, streamed and not, and notice nothing.

The window is not told: it is learned from the first refusal. The upstream refuses what OpenAI would refuse.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conversation import FACT, NEEDED, TURNS, WINDOW, StrictModel, calls_expected, script, spoken
from tests.acceptance.installed import node_clients, python_clients
from tests.acceptance.program import Program, session_path
from tests.scripted_upstream import ScriptedUpstream

PROGRAMS = Path(__file__).parent / "clients"
CLIENTS = ("openai", "langchain", "pydantic-ai", "openai-node", "ai-sdk-openai", "ai-sdk-compatible")
SESSION = "harbour"
PIN_AT = 4
"""The request of the conversation before whose answer the fact is pinned."""
MOST_REFUSED = 3


def command(client: str) -> list[str]:
    """The program that holds the conversation; skips the test where its library is not there."""
    match client:
        case "openai":
            return [sys.executable, str(PROGRAMS / "with_openai.py")]
        case "langchain" | "pydantic-ai":
            return [str(python_clients()), str(PROGRAMS / f"with_{client.replace('-', '_')}.py")]
    node, folder = node_clients()
    return [str(node), str(folder / ("with_openai.mjs" if client == "openai-node" else "with_ai_sdk.mjs"))]


async def held(words: Sequence[str]) -> Any:
    """What a client's program says at its end; it must succeed and say nothing else, no warning either."""
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, complaints = await process.communicate(json.dumps(script()).encode())
    assert (complaints.decode(), process.returncode) == ("", 0)
    return json.loads(out)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("manner", ["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_real_client_holds_a_conversation_of_eight_windows(client: str, manner: str, tmp_path: Path) -> None:
    words = command(client)
    provider = [client.removeprefix("ai-sdk-")] if client.startswith("ai-sdk-") else []

    async def pin_early(asked: int) -> None:
        if asked == PIN_AT:
            await program.admin(f"{session_path(SESSION)}/pins", {"text": FACT})

    model = StrictModel(pin_early)
    async with ScriptedUpstream(model) as upstream, Program(tmp_path, {"upstream": {"base_url": f"{upstream.url}/v1"}}) as program:
        said = await held([*words, f"{program.url}/v1", SESSION, manner, *provider])
        log = (await program.admin(f"{session_path(SESSION)}/messages"))["data"]
        windows = (await program.admin("models"))["data"]
    assert program.complaints == []
    assert len(said["answers"]) == TURNS
    assert said["results"] == calls_expected()
    assert all(said["answers"])
    assert "QX-7741-B" in said["answers"][-1]
    assert [entry["message"]["content"] for entry in log if entry["role"] == "user"] == [spoken(turn) for turn in range(TURNS)]
    assert sum(entry["role"] == "tool" for entry in log) == calls_expected()
    assert sum(entry["tokens"] for entry in log) > NEEDED * WINDOW
    assert [(row["window"], row["source"]) for row in windows] == [(WINDOW, "learned")]
    assert 1 <= len(model.refused) <= MOST_REFUSED
    kept = [call for call in upstream.calls if call.json.get("tools")][PIN_AT + 1 :]
    assert all(FACT in json.dumps(call.messages) for call in kept)
