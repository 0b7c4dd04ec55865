"""The conversation that each real client holds, and a strict model behind the proxy that answers it.

60 turns; every third has the model call a tool, every ninth two at once. An early fact is pinned; the last turn asks for it.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from ctxproxy.tokenizers.open import open_tokenizer
from ctxproxy.upstream.demo_model import DemoModel
from ctxproxy.upstream.demo_rules import Refused
from tests.scripted_replies import Json, Received, Reply, Sse, chunk, completion

TURNS = 60
WINDOW = 4096
NEEDED = 8
"""How many windows the whole conversation fills, at least."""
MODEL = "strict-model"
SYSTEM = "You are the clerk of a small harbour. Be brief."
FACT = "The harbour code is QX-7741-B and no berth is given away on a Friday."
OTHER_FACT = "The crane in hall 12 lifts 3,250 kg."
QUESTION = "What is the harbour code?"
TOOLS = ("look_up", "weigh")
WORDS = """anchor barge buoy cable cargo chart clerk coal copper crane crew dock ferry fleet flour freight gate grain gull hatch hull invoice keel
ladder lamp ledger lock mast mooring night oar office paint pier pilot plank quay rain rope rudder salt sand ship shore signal sluice steam stern
storm tar tide timber tug wagon wharf winch wind""".split()  # noqa: SIM905  a list would take 60 lines


def spoken(turn: int) -> str:
    """What the user says in a turn."""
    if turn == 1:
        return f"Keep this in mind. {FACT} {OTHER_FACT}"
    if turn == TURNS - 1:
        return QUESTION
    told = f"Entry {turn} of the log. {prose(f'user {turn}', 160)}"
    if turn % 9 == 3:
        return f"{told} Call look_up and weigh for “berth {turn}”."
    return f"{told} Call look_up for “berth {turn}”." if turn % 3 == 0 else told


def found(tool: str, asked: str) -> str:
    """What a tool answers."""
    return f"{tool} {asked}: {prose(f'{tool} {asked}', 500)}"


def prose(seed: str, words: int) -> str:
    """Sentences that differ from those of any other seed."""
    draw = random.Random(seed)
    said = [" ".join(draw.choices(WORDS, k=9)).capitalize() + f" {draw.randrange(10, 10_000)}." for _ in range(words // 10)]
    return " ".join(said)


def script() -> dict[str, Any]:
    """All that a client needs to hold the conversation, as JSON: texts of the turns, tools, results by tool and argument."""
    berths = {f"berth {turn}" for turn in range(TURNS)}
    return {
        "model": MODEL,
        "system": SYSTEM,
        "turns": [spoken(turn) for turn in range(TURNS)],
        "results": {tool: {berth: found(tool, berth) for berth in sorted(berths)} for tool in TOOLS},
    }


def calls_expected() -> int:
    """How many tool calls the conversation has."""
    return sum(spoken(turn).count(tool) for turn in range(TURNS) for tool in TOOLS)


class StrictModel:
    """A script for the upstream: refuses broken pairs and prompts over the window as OpenAI does, and tells the true usage."""

    def __init__(self, before: Callable[[int], Awaitable[None]]) -> None:
        self._model = DemoModel(open_tokenizer("o200k_base").count, {MODEL: WINDOW})
        self._before = before
        self._asked = 0
        self.refused: list[str] = []

    async def __call__(self, call: Received) -> Reply:
        """`before(n)` is awaited before the nth request of the conversation is answered (summaries have no tools and are not counted)."""
        if call.json.get("tools"):
            await self._before(self._asked)
            self._asked += 1
        reply = self._model.reply(call.json)
        if isinstance(reply, Refused):
            self.refused.append(reply.message)
            return Json(reply.status, reply.as_body())
        total = reply.prompt_tokens + reply.completion_tokens
        usage = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens, "total_tokens": total}
        calls = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in reply.calls]
        if not call.json.get("stream"):
            return Json(200, completion(reply.text, tool_calls=calls, usage=usage))
        deltas = [{"tool_calls": [{"index": n, **one}]} for n, one in enumerate(calls)] + [{"content": word} for word in split(reply.text or "")]
        parts = [chunk({"role": "assistant", "content": None if calls else ""}), *map(chunk, deltas), chunk({}, finish=reply.finish)]
        asked = (call.json.get("stream_options") or {}).get("include_usage")
        return Sse(*parts, usage=usage if asked else None)


def split(text: str) -> list[str]:
    """A text in pieces of 40 characters."""
    return [text[at : at + 40] for at in range(0, len(text), 40)]
