"""What the built-in model refuses, in OpenAI's words: broken bodies, broken pairs of call and result, prompts over its window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxproxy.core import jsontext

CountText = Callable[[str], int]

MESSAGE_TOKENS = 3
"""Frame of a message, and of the reply that is begun; a name costs one more (OpenAI's cookbook on counting tokens)."""
IMAGE_TOKENS = 85
"""An image in low detail, OpenAI's vision guide."""
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


@dataclass(frozen=True, slots=True)
class Refused:
    """An error answer: status and OpenAI's four fields."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    type: str = "invalid_request_error"

    def as_body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


def wrong_shape(body: Any) -> Refused | None:
    """Why a body is no chat completion request; None if it is one."""
    if not isinstance(body, dict):
        return Refused(400, "We could not parse the JSON body of your request.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        return Refused(400, "you must provide a model parameter")
    return _wrong_list(body.get("messages")) or _wrong_limit(body) or _wrong_pair(body["messages"])


def overflow(body: Mapping[str, Any], prompt: int, functions: int, window: int) -> Refused | None:
    """The refusal of a prompt that, with the reply asked for, does not fit into `window`; `functions` of the `prompt` tokens are tools."""
    reply = reply_limit(body) or 0
    if prompt + max(reply, 1) <= window:
        return None
    parts = {"messages": prompt - functions, "functions": functions, "completion": reply}
    held = [f"{tokens} in the {name}" for name, tokens in parts.items() if tokens]
    names = [name for name, tokens in parts.items() if tokens]
    if reply:
        said = f"you requested {prompt + reply} tokens ({_listed(held, 'and')})"
    elif functions:
        said = f"your messages resulted in {prompt} tokens ({', '.join(held)})"
    else:
        said = f"your messages resulted in {prompt} tokens"
    told = f"This model's maximum context length is {window} tokens. However, {said}. Please reduce the length of the {_listed(names, 'or')}."
    return Refused(400, told, "messages", "context_length_exceeded")


def reply_limit(body: Mapping[str, Any]) -> int | None:
    """`max_completion_tokens`, else `max_tokens`, else None."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    return limit if isinstance(limit, int) else None


def message_tokens(message: Mapping[str, Any], count: CountText) -> int:
    """Tokens of one message: text, images, names, calls and its frame."""
    content = message.get("content")
    tokens = MESSAGE_TOKENS + count(str(message.get("role")))
    if isinstance(content, str):
        tokens += count(content)
    elif isinstance(content, list):
        tokens += sum(_part_tokens(part, count) for part in content if isinstance(part, dict))
    if isinstance(message.get("name"), str):
        tokens += 1 + count(message["name"])
    return tokens + (count(jsontext.encode(message["tool_calls"]).decode()) if message.get("tool_calls") else 0)


def tool_tokens(body: Mapping[str, Any], count: CountText) -> int:
    """Tokens of the tools offered, by their JSON text."""
    return count(jsontext.encode(body["tools"]).decode()) if body.get("tools") else 0


def _part_tokens(part: Mapping[str, Any], count: CountText) -> int:
    text = part.get("text", part.get("refusal"))
    return count(text) if isinstance(text, str) else IMAGE_TOKENS


def _wrong_list(messages: Any) -> Refused | None:
    if not isinstance(messages, list):
        return Refused(400, "Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
    if not messages:
        said = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
        return Refused(400, said, "messages", "empty_array")
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            return Refused(
                400, f"Invalid value for 'messages[{at}].role': supported are {', '.join(sorted(ROLES))}.", f"messages[{at}].role", "invalid_value"
            )
    return None


def _wrong_limit(body: Mapping[str, Any]) -> Refused | None:
    for key in ("max_completion_tokens", "max_tokens"):
        value = body.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            return Refused(400, f"Invalid value for '{key}': expected an integer >= 1.", key, "invalid_value")
    return None


def _wrong_pair(messages: Sequence[Mapping[str, Any]]) -> Refused | None:
    open_ids: list[str] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_ids:
                said = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                return Refused(400, said, f"messages.[{at}].role")
            open_ids.remove(str(message["tool_call_id"]))
            continue
        if open_ids:
            return _unanswered(open_ids, at)
        calls = message.get("tool_calls") if message["role"] == "assistant" else None
        open_ids = [str(call.get("id")) for call in calls or () if isinstance(call, dict)]
    return _unanswered(open_ids, len(messages)) if open_ids else None


def _unanswered(ids: Sequence[str], at: int) -> Refused:
    said = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(ids)}"
    )
    return Refused(400, said, f"messages.[{at}].role")


def _listed(names: Sequence[str], word: str) -> str:
    if len(names) < 3:
        return f" {word} ".join(names) if word == "or" else ", ".join(names)
    return f"{', '.join(names[:-1])}, {word} {names[-1]}"
