"""When the built-in model calls a tool, and with which arguments: by the words of the last user message, nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctxproxy.core import jsontext
from ctxproxy.core.messages import ToolCall

ASKED = re.compile(r"\b(?:use|call|run|try)\s+(?:the|a|an|your|any|some)\s+tools?\b|(?:使?用|调用|运行)(?:一下|这个|那个|你的)?工具", re.IGNORECASE)
QUOTED = re.compile(r"“([^”]+)”|\"([^\"]+)\"|`([^`]+)`|「([^」]+)」|『([^』]+)』")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
PATHLIKE = re.compile(r"(?:https?://|[~.]?/)[\w./:?=&%+-]+|\b[\w-]+(?:/[\w.-]+)+|\b[\w-]+\.[a-z]{1,4}\b")
VALUE_CHARS = 120
MAX_DEPTH = 5
"""Schemas that refer to themselves end here."""


def wanted(body: Mapping[str, Any], text: str) -> tuple[ToolCall, ...]:
    """The calls that a user text asks for: the tools it names, the first one if it only says to use a tool; `tool_choice` wins."""
    offered = _offered(body.get("tools"))
    choice = body.get("tool_choice")
    if not offered or choice == "none":
        return ()
    if isinstance(choice, dict):
        name = _function(choice).get("name")
        names = [name] if name in offered else []
    else:
        names = [name for name in offered if _is_named(name, text)]
        if not names and (choice == "required" or ASKED.search(text)):
            names = [next(iter(offered))]
    if body.get("parallel_tool_calls") is False:
        names = names[:1]
    return tuple(_call(name, offered[name], text, len(body["messages"])) for name in names)


def filled(schema: Any, text: str, key: str = "", depth: int = 0) -> Any:
    """A value that a JSON schema allows, made of the words of a text; `key` is the property's name."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        named = [option for option in schema["enum"] if str(option).lower() in text.lower()]
        return max(named, key=lambda option: len(str(option)), default=schema["enum"][0])
    for union in ("anyOf", "oneOf", "allOf"):
        if schema.get(union):
            return filled(schema[union][0], text, key, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return _of_kind(kind[0] if isinstance(kind, list) and kind else kind, schema, text, key, depth)


def _of_kind(kind: Any, schema: Mapping[str, Any], text: str, key: str, depth: int) -> Any:
    match kind:
        case "object":
            properties = schema.get("properties") or {}
            names = schema.get("required") or list(properties)
            return {name: filled(properties.get(name, {}), text, name, depth + 1) for name in names}
        case "array":
            return [filled(schema["items"], text, key, depth + 1)] if schema.get("items") else []
        case "integer" | "number":
            number = float(_number(text, schema))
            return int(number) if kind == "integer" else number
        case "boolean" | "null":
            return True if kind == "boolean" else None
    return _string(text, key)


def _string(text: str, key: str) -> str:
    """What stands in quotes, else a path for a key that asks for one, else the text."""
    if quoted := QUOTED.search(text):
        return next(group for group in quoted.groups() if group)[:VALUE_CHARS]
    if re.search(r"path|file|dir|url|uri", key, re.IGNORECASE) and (path := PATHLIKE.search(text)):
        return path[0].rstrip(".,")[:VALUE_CHARS]
    return " ".join(text.split())[:VALUE_CHARS]


def _number(text: str, schema: Mapping[str, Any]) -> str:
    found = NUMBER.search(text)
    return found[0][:15] if found else str(schema.get("minimum", 1))


def _offered(tools: Any) -> dict[str, Any]:
    functions: Sequence[Mapping[str, Any]] = [_function(tool) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return {f["name"]: f.get("parameters") or {} for f in functions if isinstance(f.get("name"), str)}


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function")
    return function if isinstance(function, dict) else {}


def _is_named(name: str, text: str) -> bool:
    spoken = re.escape(name).replace("_", "[_ ]")
    return re.search(rf"(?<![A-Za-z0-9_]){spoken}(?![A-Za-z0-9_])", text, re.IGNORECASE) is not None


def _call(name: str, schema: Any, text: str, at: int) -> ToolCall:
    arguments = jsontext.encode(filled({"type": "object", **schema}, text)).decode()
    digest = hashlib.blake2b(f"{at}\n{name}\n{arguments}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return ToolCall(f"call_{digest}", name, arguments)
