"""What a prompt costs in tokens: the arithmetic around a tokenizer, message by message.

The frame of a message is the one in OpenAI's cookbook, "How to count tokens with tiktoken": 3 tokens a message, its role and
content, 1 more for a name, 3 that prime the reply. What the cookbook leaves out is counted on the safe side. A part is never
counted above its own JSON bytes, for no byte-level encoding makes more tokens than there are bytes; on that `surely_fits` rests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from ctxproxy.core import jsontext
from ctxproxy.core.images import MEDIA_TYPES, UNKNOWN, Vision, media_tokens
from ctxproxy.core.messages import PLAIN_KEYS, Message

CountText: TypeAlias = Callable[[str], int]

MESSAGE_TOKENS = 3
NAME_TOKENS = 1
REPLY_PRIMER_TOKENS = 3
CALL_TOKENS = 6
"""A call's own frame: in OpenAI's harmony format `<|start|>assistant to=functions.…<|channel|>commentary json<|message|>…<|call|>`, some ten
tokens, of which the message has paid four."""
PART_TOKENS = 1
"""A content part after the first: templates join text parts by a line break, or wrap each in a mark."""
TOOLS_TOKENS = 12
"""The frame around all tools (the cookbook's `func_end`)."""
REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""Several names for one text, of which clients send up to three copies: the longest counts."""
OPAQUE_KEYS = frozenset({"type", "id", "index", "format", "signature", "data", "cache_control", "tool_use_id", "encrypted_content", "mime_type"})
"""What no model reads as text: marks for the server, and what is encrypted or binary."""


def message_tokens(message: Message, count: CountText, vision: Vision = UNKNOWN) -> int:
    """The tokens of one message, of whatever shape; `vision` tells how the model counts media. Never raises but for what `count` raises."""
    bound = len(message.raw) + 1
    content = message.fields.get("content")
    if type(content) is str and message.fields.keys() == PLAIN_KEYS:
        return min(MESSAGE_TOKENS + count(message.role) + count(content), bound)
    try:
        texts = min(_frame_and_texts(message.fields, count), bound)
    except RecursionError:
        texts = bound  # nested too deeply to be walked
    return texts + sum(media_tokens(part, vision) for part in _media(message.fields))


def fixed_tokens(tools: bytes | None, functions: bytes | None, response_format: bytes | None, count: CountText) -> int:
    """The tokens of what a request carries beside its messages, each as its JSON text or None, and of the primer of the reply.

    Schemas count as compact JSON: OpenAI shows models a TypeScript form of them, which is shorter, other servers print JSON.
    """
    schemas = sum(_schema_tokens(raw, count, TOOLS_TOKENS) for raw in (tools, functions) if raw)
    return REPLY_PRIMER_TOKENS + schemas + (_schema_tokens(response_format, count, 0) if response_format else 0)


def surely_fits(body_bytes: int, budget_tokens: int, *, has_media: bool) -> bool:
    """Whether a request body of so many bytes has at most so many tokens, whatever it says: then nothing need be counted.

    Media cost more than their bytes when they are links, so a body with any is never sure. With `budget_tokens` = the trigger of a budget
    without a fixed part, a body that surely fits is below the trigger of any: (F + H) <= 0.8 P implies H <= 0.8 (P - F).
    """
    return not has_media and body_bytes <= budget_tokens


def has_media(messages: Iterable[Message]) -> bool:
    """Whether any message holds an image, audio, a video or a file."""
    return any(True for message in messages for _ in _media(message.fields))


def _frame_and_texts(fields: Mapping[str, Any], count: CountText) -> int:
    plain = (value for value in (fields.get("role"), fields.get("refusal")) if isinstance(value, str))
    tokens = MESSAGE_TOKENS + sum(count(text) for text in plain)
    name = fields.get("name")
    if isinstance(name, str) and name:
        tokens += NAME_TOKENS + count(name)
    tokens += _content_tokens(fields.get("content"), count)
    tokens += sum(_call_tokens(call, count) for call in _calls(fields))
    return tokens + max(_nested_tokens(fields.get(key), count) for key in REASONING_KEYS)


def _content_tokens(content: Any, count: CountText) -> int:
    if not isinstance(content, list):
        return _nested_tokens(content, count)
    joints = PART_TOKENS * max(0, len(content) - 1)
    return joints + sum(_nested_tokens(part, count) for part in content if not _is_media(part))


def _call_tokens(call: Any, count: CountText) -> int:
    """A call's name and arguments: `{function: {name, arguments}}`, `{custom: {name, input}}`, or either's inner value."""
    body = call
    for key in ("function", "custom"):
        body = call.get(key) or body
    if not isinstance(body, dict):
        return CALL_TOKENS + count(str(body))
    inputs = (body.get(key) for key in ("name", "arguments", "input"))
    return CALL_TOKENS + sum(count(value if isinstance(value, str) else _compact(value)) for value in inputs if value is not None)


def _calls(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = fields.get("tool_calls")
    found = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    legacy = fields.get("function_call")
    return [*found, legacy] if isinstance(legacy, dict) else found


def _nested_tokens(value: Any, count: CountText) -> int:
    """All strings in a value but opaque ones: what a template may print of a part or field that we do not know."""
    if isinstance(value, str):
        return count(value)
    if isinstance(value, dict):
        return sum(_member_tokens(key, inner, count) for key, inner in value.items() if key not in OPAQUE_KEYS)
    if isinstance(value, list):
        return sum(_nested_tokens(inner, count) for inner in value if not _is_media(inner))
    return 0


def _member_tokens(key: str, value: Any, count: CountText) -> int:
    if key != "text" and isinstance(value, str) and value.startswith("data:"):
        return UNKNOWN.floor  # a medium in a part of a type that we do not know
    return _nested_tokens(value, count)


def _media(fields: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for part in _items(fields.get("content")):
        if _is_media(part):
            yield part
        elif isinstance(part, dict):  # a tool result as a part, in Anthropic's shape
            yield from (inner for inner in _items(part.get("content")) if _is_media(inner))


def _items(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _is_media(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in MEDIA_TYPES


def _schema_tokens(raw: bytes, count: CountText, frame_tokens: int) -> int:
    try:
        value = jsontext.decode(raw)
        return min(frame_tokens + count(_compact(value)), len(raw)) if value else 0
    except (ValueError, RecursionError):
        return len(raw)


def _compact(value: Any) -> str:
    return jsontext.encode(value).decode()
