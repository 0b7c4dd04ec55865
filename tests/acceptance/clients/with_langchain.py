"""A conversation through LangChain's ChatOpenAI; arguments: base URL, session, `stream` or `whole`; the script comes on standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

URL, SESSION, MANNER = sys.argv[1:]
SCRIPT = json.load(sys.stdin)


def tool(kind: str) -> StructuredTool:
    def run(name: str) -> str:
        return str(SCRIPT["results"][kind][name])

    return StructuredTool.from_function(run, name=kind, description=f"{kind} a berth")


tools = {kind: tool(kind) for kind in SCRIPT["results"]}
chat = ChatOpenAI(model=SCRIPT["model"], base_url=URL, api_key="sk-tested", default_headers={"X-Session-Id": SESSION}, max_retries=0)
model = chat.bind_tools(list(tools.values()))
messages: list[Any] = [SystemMessage(SCRIPT["system"])]


def whole() -> Any:
    return model.invoke(messages)


def streamed() -> Any:
    chunks = iter(model.stream(messages))
    total = next(chunks)
    for chunk in chunks:
        total = total + chunk
    return total


ask: Callable[[], Any] = streamed if MANNER == "stream" else whole
answers, results = [], 0
for said in SCRIPT["turns"]:
    messages.append(HumanMessage(said))
    reply = ask()
    while reply.tool_calls:
        messages.append(reply)
        for call in reply.tool_calls:
            messages.append(tools[call["name"]].invoke(call))
            results += 1
        reply = ask()
    messages.append(reply)
    answers.append(reply.content)
print(json.dumps({"answers": answers, "results": results}))
