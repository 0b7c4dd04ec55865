"""A limit on the steps of a turn, over HTTP: what is told, and what goes up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.conftest import StartProxy
from tests.scripted_upstream import ScriptedUpstream, tool_call

FUNCTION = {"name": "read", "parameters": {"type": "object", "properties": {}}}
TOOLS: dict[str, Any] = {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "auto"}


def work(steps: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "find the bug"}]
    for n in range(steps):
        messages.append({"role": "assistant", "content": None, "tool_calls": [tool_call(f"c{n}", "read", {"path": f"f{n}.py"})]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"file {n}"})
    return messages


@pytest.mark.parametrize(("steps", "told"), [(14, {}), (15, {"max_steps": 1}), (16, {"max_steps": 1})])
async def test_the_sixteenth_step_of_a_turn_is_told_and_goes_up_as_it_came(
    proxy: StartProxy, upstream: ScriptedUpstream, steps: int, told: dict[str, int]
) -> None:
    running = await proxy(upstream, context={"preset": "cowagent"})
    said = await running.chat(work(steps), session="s", **TOOLS)
    assert said.actions == told
    assert [call.body for call in upstream.calls] == [said.sent]
    assert running.state.metrics.registry.get_sample_value("ctxproxy_max_steps_total") == len(told)


@pytest.mark.parametrize(
    ("tools", "key"), [(TOOLS, "tool_choice"), ({"tools": TOOLS["tools"]}, "tool_choice"), ({"functions": [FUNCTION]}, "function_call")]
)
async def test_a_turn_at_its_limit_is_answered_without_another_call_where_that_is_asked_for(
    proxy: StartProxy, upstream: ScriptedUpstream, tools: dict[str, Any], key: str
) -> None:
    running = await proxy(upstream, context={"max_steps": 3, "stop_at_max_steps": True})
    before, said = await running.chat(work(2), session="a", **tools), await running.chat(work(3), session="b", **tools)
    first, second = upstream.calls
    assert first.body == before.sent
    assert second.json == {**second.json, key: "none", "messages": work(3)}
    assert second.json.keys() - {key} == first.json.keys() - {key}
    assert said.actions == {"max_steps": 1}


async def test_a_request_without_tools_is_not_changed_at_the_limit(proxy: StartProxy, upstream: ScriptedUpstream) -> None:
    running = await proxy(upstream, context={"max_steps": 1, "stop_at_max_steps": True})
    said = await running.chat(work(2), session="s")
    assert "tool_choice" not in upstream.calls[0].json
    assert said.actions == {"max_steps": 1}
