"""A conversation through the official Python library; arguments: base URL, session, `stream` or `whole`; the script comes on standard input."""

from __future__ import annotations

import json
import sys
from typing import Any

from openai import OpenAI

URL, SESSION, MANNER = sys.argv[1:]
SCRIPT = json.load(sys.stdin)
PARAMETERS = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS: Any = [{"type": "function", "function": {"name": n, "description": f"{n} a berth", "parameters": PARAMETERS}} for n in SCRIPT["results"]]
client = OpenAI(base_url=URL, api_key="sk-tested", default_headers={"X-Session-Id": SESSION}, max_retries=0)
messages: list[Any] = [{"role": "system", "content": SCRIPT["system"]}]


def whole() -> Any:
    return client.chat.completions.create(model=SCRIPT["model"], messages=messages, tools=TOOLS).choices[0].message


def streamed() -> Any:
    with client.chat.completions.stream(model=SCRIPT["model"], messages=messages, tools=TOOLS) as stream:
        return stream.get_final_completion().choices[0].message


answers, results = [], 0
for said in SCRIPT["turns"]:
    messages.append({"role": "user", "content": said})
    reply = streamed() if MANNER == "stream" else whole()
    while reply.tool_calls:
        messages.append(reply)
        for call in reply.tool_calls:
            found = SCRIPT["results"][call.function.name][json.loads(call.function.arguments)["name"]]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
            results += 1
        reply = streamed() if MANNER == "stream" else whole()
    messages.append(reply)
    answers.append(reply.content)
print(json.dumps({"answers": answers, "results": results}))
