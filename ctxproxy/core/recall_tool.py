"""The recall tool: the model asks for the original behind a marker, and the proxy answers in the client's place (`context.recall_tool`).

Here is the tool as the model sees it, its calls as they stand in an answer, the originals in pages, the messages that a round adds
to the prompt, and the plain answer without any of it; `recall_stream` has the streamed one. Must not know of stores or of HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from msgspec import structs

from ctxproxy.core import cuts, jsontext, wire
from ctxproxy.core.markers import MARKER_DIGITS
from ctxproxy.core.messages import Message, make, part_text, read, text_of, tool_calls, with_fields
from ctxproxy.core.wire import ChatRequest

NAME = "ctxproxy_recall"
MAX_ROUNDS = 4
"""How often a model is answered in one request: the field's proxies allow 3 to 5; a model that asks on and on costs a whole prompt each time."""
NOTE_TOKENS = 40
"""Room for the line behind a page that says which part of the original it is."""
DESCRIPTION = (
    "Fetches the original text of an earlier part of this conversation that now stands shortened as [COMPACTED: topic · n tokens · marker] "
    "(or [已压缩: …]). For use only where the short form is not enough. A long original comes in pages: the line at the end of a page names the "
    "next offset."
)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": DESCRIPTION,
        "parameters": {
            "type": "object",
            "properties": {
                "marker": {"type": "string", "description": "The hex digits at the end of the shortened form."},
                "offset": {"type": "integer", "description": "The character at which the page begins; 0 if it is left out."},
            },
            "required": ["marker"],
        },
    },
}
MARKER = re.compile(rf"(?<![0-9a-z])[0-9a-f]{{{MARKER_DIGITS},32}}(?![0-9a-z])")
CALLED = ("tool_calls", "function_call")
"""Finish reasons that say that a tool was called."""
FINAL = ("content_filter", "error")
"""Finish reasons after which a model is not to be asked again."""
PARAGRAPH = "\n\n"
"""What stands between the texts of two rounds: each was a message of its own."""

Found: TypeAlias = Literal["shown", "in_part", "no_room", "not_found", "no_marker"]
CountText: TypeAlias = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class RecallCall:
    """What a model asks for; `marker` "" where none can be made out."""

    id: str
    marker: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of one call: the text for the model, and what became of it."""

    text: str
    found: Found


def is_taken(chat: ChatRequest) -> bool:
    """Whether the client has a tool of this name itself."""
    return any(name == NAME for name in _tool_names(chat.tools))


def has_tools(chat: ChatRequest) -> bool:
    """Whether a request brings tools of its own."""
    return bool(_items(chat.tools))


def can_offer(chat: ChatRequest) -> bool:
    """Whether the tool can be added to a request: not to several answers at once, to the older `functions`, or to tools that are no list."""
    return chat.n == 1 and chat.functions is None and (chat.tools is None or _items(chat.tools) is not None) and not is_taken(chat)


def offered(chat: ChatRequest) -> ChatRequest:
    """A request with the tool behind its own ones; every other byte stays."""
    own = (chat.tools or b"[]").strip()[1:-1].strip()
    tools = b"[" + own + (b"," if own else b"") + jsontext.encode(TOOL) + b"]"
    changed = structs.replace(chat, values={**chat.values, "tools": tools}, tools=tools)
    return structs.replace(changed, body=wire.render(changed, changed.messages))


def asks_only(message: Message) -> bool:
    """Whether an answer calls the tool, and no other: then the proxy can go on by itself."""
    names = _called(message)
    return bool(names) and all(name == NAME for name in names) and not message.fields.get("function_call")


def asked(message: Message) -> tuple[Message, tuple[RecallCall, ...]]:
    """An answer that calls this tool only, and its calls; each gets an id and arguments that are a JSON object, or an upstream may refuse it."""
    message = message if message.role == "assistant" else with_fields(message, role="assistant")
    calls: list[dict[str, Any]] = []
    read_calls: list[RecallCall] = []
    for number, (given, call) in enumerate(zip(_dicts(message.fields.get("tool_calls")), tool_calls(message), strict=True)):
        marker, offset, sound = _arguments(call.arguments)
        fresh = call.id and call.id not in [one.id for one in read_calls]
        read_calls.append(RecallCall(call.id if fresh else f"recall_{number}", marker, offset))
        arguments = call.arguments if sound else jsontext.encode({"marker": marker}).decode()
        calls.append({**given, "id": read_calls[-1].id, "function": {**(given.get("function") or {}), "name": NAME, "arguments": arguments}})
    same = calls == message.fields.get("tool_calls")
    return message if same else with_fields(message, tool_calls=calls), tuple(read_calls)


def answered(asking: Message, calls: Sequence[RecallCall], results: Sequence[Recalled]) -> tuple[Message, ...]:
    """What a round adds to the prompt: the call as the model made it, and a result for each."""
    return (asking, *(result_message(call, result.text) for call, result in zip(calls, results, strict=True)))


def result_message(call: RecallCall, text: str) -> Message:
    """A call's result as a message."""
    return make({"role": "tool", "tool_call_id": call.id, "content": text})


def recalled(call: RecallCall, original: Message | None, room_tokens: int, count: CountText) -> Recalled:
    """The result of a call: the original word for word where it fits, else the page of it that begins at the call's offset."""
    if not call.marker:
        return Recalled(f"[no marker: it is the {MARKER_DIGITS} hex digits at the end of a shortened form]", "no_marker")
    if original is None:
        return Recalled(f"[nothing in this conversation stands behind the marker {call.marker}]", "not_found")
    text = original_text(original)
    start = min(call.offset, len(text))
    if start == 0 and count(text) <= room_tokens:
        return Recalled(text, "shown")
    end = page_end(text, start, room_tokens - NOTE_TOKENS, count)
    if end == start and start < len(text):
        return no_room(call)
    rest = f"the next offset is {end}" if end < len(text) else "this is its end"
    return Recalled(f"{text[start:end]}\n[characters {start} to {end} of {len(text)}; {rest}]", "in_part")


def no_room(call: RecallCall) -> Recalled:
    """The result where the prompt is too full for the original."""
    return Recalled(f"[the original behind {call.marker} is too large to be shown now: the context is full]", "no_room")


def unreadable(call: RecallCall) -> Recalled:
    """The result where the original cannot be had because of a fault."""
    return Recalled(f"[the original behind {call.marker} cannot be read now]", "not_found")


def original_text(message: Message) -> str:
    """What a message said, as text: its texts as they are, a line for what is no text, its calls."""
    content = message.content
    pieces = [part_text(part) or _not_text(part) for part in content] if isinstance(content, list) else [text_of(message)]
    pieces += [f"[call of {call.name}: {call.arguments}]" for call in tool_calls(message)]
    return "\n".join(piece for piece in pieces if piece)


def page_end(text: str, start: int, room_tokens: int, count: CountText) -> int:
    """Where the page that begins at `start` ends: as far as some tokens reach; `start` where nothing fits."""
    end, tokens = len(text), count(text[start:])
    while tokens > room_tokens and end > start:
        share = max(room_tokens, 0) / tokens
        end = start + min(cuts.before(text[start:], int((end - start) * share * 0.95)), end - start - 1)
        tokens = count(text[start:end])
    return end


def without_calls(message: Message) -> Message:
    """An answer as the client may see it; the message itself where it calls nothing of ours."""
    if NAME not in _called(message):
        return message
    kept = [one for one in _dicts(message.fields.get("tool_calls")) if _name(one) != NAME]
    fields = {key: value for key, value in message.fields.items() if key != "tool_calls"}
    if kept:
        return make({**fields, "tool_calls": kept})
    return make({**fields, "content": fields.get("content") or ""})  # null is legal beside a call only


def plain_answer(body: bytes, said: Sequence[str]) -> bytes:
    """The body of a plain answer without calls of ours, behind what the model said in earlier rounds; `body` itself where that changes nothing."""
    values = jsontext.members(body)
    choices = [_plain_choice(bytes(raw), said) for raw in jsontext.items(values["choices"])]
    if all(new is None for new, _ in choices):
        return body
    texts = {key: bytes(value) for key, value in values.items()}
    return jsontext.object_of({**texts, "choices": b"[" + b",".join(new or old for new, old in choices) + b"]"})


def _plain_choice(raw: bytes, said: Sequence[str]) -> tuple[bytes | None, bytes]:
    """A choice made anew (None where nothing changes), and as it was."""
    texts = {key: bytes(value) for key, value in jsontext.members(raw).items()}
    message = read(texts.get("message", b"{}"))
    shown = without_calls(message)
    if said:
        shown = with_fields(shown, content=_behind(said, shown.content))
    if shown is message:
        return None, raw
    changed = {**texts, "message": shown.raw}
    if shown.fields.get("tool_calls") is None and jsontext.decode(texts.get("finish_reason", b"null")) in CALLED:
        changed["finish_reason"] = b'"stop"'
    return jsontext.object_of(changed), raw


def _behind(said: Sequence[str], content: Any) -> Any:
    before = PARAGRAPH.join(said)
    if isinstance(content, list):
        return [{"type": "text", "text": before}, *content]
    return before + PARAGRAPH + content if content else before


def _arguments(text: str) -> tuple[str, int, bool]:
    """Marker, offset, and whether the arguments are an object; a marker is found in broken JSON and inside its whole short form too."""
    try:
        value = jsontext.decode(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        value = None
    sound = isinstance(value, dict)
    named = value.get("marker") if isinstance(value, dict) else text
    found = MARKER.findall(named.lower()) if isinstance(named, str) else []
    return found[-1] if found else "", _offset(value.get("offset")) if isinstance(value, dict) else 0, sound


def _offset(value: Any) -> int:
    """A whole number from 0 on, also where a model writes it as a text or as 200.0."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 15:
        return int(value)
    return max(int(value), 0) if type(value) in (int, float) and abs(value) < 1e15 else 0


def _not_text(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    return f"[{kind} that cannot be shown here]" if isinstance(kind, str) and kind not in ("text", "refusal") else ""


def _called(message: Message) -> list[str]:
    return [_name(call) for call in _dicts(message.fields.get("tool_calls"))]


def _name(call: dict[str, Any]) -> str:
    body = call.get("function")
    return str(body.get("name")) if isinstance(body, dict) else ""


def _tool_names(tools: bytes | None) -> list[str]:
    return [_name(tool) for tool in _dicts(_items(tools))]


def _items(tools: bytes | None) -> list[Any] | None:
    """The tools of a request; None where they are absent or no list."""
    try:
        value = jsontext.decode(tools) if tools else None
    except ValueError:
        return None
    return value if isinstance(value, list) else None


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
