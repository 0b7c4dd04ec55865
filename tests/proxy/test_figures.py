"""What is told of each request: its line in the log, and the counters that a monitor reads."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from tests.proxy.conftest import StartProxy
from tests.proxy.running import Running
from tests.scripted_upstream import Answer, Json, Received, ScriptedUpstream

FILLER = "some words that say little " * 24


def talk(turns: int) -> list[dict[str, Any]]:
    said = [{"role": role, "content": f"{n}: {FILLER}"} for n in range(turns) for role in ("user", "assistant")]
    return [*said, {"role": "user", "content": "last question?"}]


def is_summary(call: Received) -> bool:
    return call.header("X-Purpose") == "summary"


def counter(running: Running, name: str, **labels: str) -> float:
    return running.state.metrics.registry.get_sample_value(name, labels) or 0.0


async def test_the_line_of_a_request_tells_tokens_budget_actions_and_calls(
    proxy: StartProxy, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    running = await proxy(upstream, context={"max_tokens": 2000}, summarizer={"kind": "off"})
    with caplog.at_level(logging.INFO, "ctxproxy"):
        said = await running.chat(talk(20), session="s")
        await running.settled()
        logging.getLogger("ctxproxy").info("what comes after the request's line")
    line = next(record.getMessage() for record in caplog.records if "/v1/chat/completions" in record.getMessage())
    told = re.search(r"session=\w{8}:s tokens=(\d+)>(\d+) budget=2000 actions=(\S+) calls=1", line)
    assert told, line
    headers = [said.headers[f"X-Context-{name}"] for name in ("Tokens-In", "Tokens-Sent", "Actions")]
    assert list(told.groups()) == headers
    assert int(told[2]) < int(told[1])


@pytest.mark.parametrize(
    ("answer", "result"), [(Answer("They spoke of twenty small things, and nothing is open."), "made"), (Json(500, {}), "failed")]
)
async def test_each_summary_is_counted_by_what_came_of_it(proxy: StartProxy, upstream: ScriptedUpstream, answer: Any, result: str) -> None:
    running = await proxy(upstream, context={"max_tokens": 4000, "pipeline": [{"stage": "summarize"}, {"stage": "drop_oldest"}]})
    upstream.script = lambda call: answer if is_summary(call) else Answer("ok")
    await running.chat(talk(30), session="s")
    await running.settled()
    assert counter(running, "ctxproxy_summaries_total", result=result) == 1
    assert counter(running, "ctxproxy_stage_edits_total", stage="summarize") >= 1
