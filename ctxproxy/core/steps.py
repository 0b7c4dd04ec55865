"""Steps of a turn: how often the model has called tools since the newest user message (000-06)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxproxy.core.messages import Message, tool_calls
from ctxproxy.core.policy import Policy


def steps_taken(history: Sequence[Message]) -> int:
    """The messages with tool calls after the newest user message; several calls in one message are one step."""
    taken = 0
    for message in reversed(history):
        if message.role == "user":
            break
        taken += bool(tool_calls(message))
    return taken


def at_limit(policy: Policy, history: Sequence[Message]) -> bool:
    """Whether the next step would be one more than `max_steps` allows."""
    return policy.max_steps is not None and steps_taken(history) >= policy.max_steps


def stopped(policy: Policy, history: Sequence[Message]) -> bool:
    """Whether the model is to answer without another call, not only to be counted."""
    return policy.stop_at_max_steps and not policy.observe and at_limit(policy, history)
