"""Which message lists the strictest upstream takes."""

from __future__ import annotations

from collections.abc import Sequence

from ctxproxy.core.messages import SYSTEM_ROLES, Message, tool_calls


def violations(messages: Sequence[Message]) -> list[str]:
    """The rules of the strictest upstream that a list breaks, in words; [] if it is valid.

    Every tool call answered right after its message, no orphan result, system messages only at the front, never empty.
    """
    found: list[str] = [] if messages else ["the list is empty"]
    open_ids: list[str] = []
    front = True
    for at, message in enumerate(messages):
        role = message.role
        if role not in SYSTEM_ROLES:
            front = False
        elif not front:
            found.append(f"messages[{at}] is a {role} message behind the front")
        if role == "tool":
            call_id = str(message.fields.get("tool_call_id"))
            if call_id in open_ids:
                open_ids.remove(call_id)
            else:
                found.append(f"messages[{at}] answers no call")
            continue
        if open_ids:
            found.append(f"messages[{at}] comes before the answers to {', '.join(open_ids)}")
        open_ids = [call.id for call in tool_calls(message)]
    if open_ids:
        found.append(f"no answers to {', '.join(open_ids)}")
    return found
