"""A conversation through a pydantic-ai agent; arguments: base URL, session, `stream` or `whole`; the script comes on standard input."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

URL, SESSION, MANNER = sys.argv[1:]
SCRIPT = json.load(sys.stdin)
results: list[str] = []


def tool(kind: str) -> Tool[None]:
    def run(name: str) -> str:
        results.append(SCRIPT["results"][kind][name])
        return results[-1]

    return Tool(run, takes_ctx=False, name=kind, description=f"{kind} a berth")


async def hold() -> list[str]:
    client = AsyncOpenAI(base_url=URL, api_key="sk-tested", default_headers={"X-Session-Id": SESSION}, max_retries=0)
    model = OpenAIChatModel(SCRIPT["model"], provider=OpenAIProvider(openai_client=client))
    agent = Agent(model, instructions=SCRIPT["system"], tools=[tool(kind) for kind in SCRIPT["results"]])
    answers: list[str] = []
    history: list[Any] = []
    for said in SCRIPT["turns"]:
        if MANNER == "stream":
            async with agent.run_stream(said, message_history=history) as run:
                answers.append(await run.get_output())
                history = run.all_messages()
        else:
            done = await agent.run(said, message_history=history)
            answers.append(done.output)
            history = done.all_messages()
    await client.close()
    return answers


print(json.dumps({"answers": asyncio.run(hold()), "results": len(results)}))
