"""A message of a conversation, its identity, and the chain of tips that names every state of a history.

Must not know of sessions, stores or budgets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from ctxproxy.core import jsontext

Tip: TypeAlias = str
"""32 hex digits that name a history: a digest over a message's identity and its parent's tip. `ROOT` is the empty history."""

ROOT: Tip = ""
SYSTEM_ROLES = frozenset({"system", "developer"})
PLAIN_KEYS = frozenset({"role", "content"})
"""What nearly all messages consist of."""
IGNORED_WHEN_EMPTY = ("refusal", "tool_calls", "function_call", "audio", "annotations", "name", "reasoning_content", "reasoning")
"""Keys that clients add or leave out when they hold nothing; null, "" and [] in them mean absent."""
IGNORED = frozenset(
    {"cache_control", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "x_context", "provider_specific_fields", "parsed"}
)
"""Keys that come and go between two sendings of one message: moving cache marks, reasoning that clients drop, and what the official library
reads out of an answer (`parsed`, and `parsed_arguments` in its calls) and sends back with it."""


class Directives(NamedTuple):
    """What a client says of one message in `x_context` (INTERFACE.md §2)."""

    pin: bool = False
    drop_first: bool = False
    never_summarize: bool = False
    expire_after_turns: int | None = None


NO_DIRECTIVES = Directives()


class ToolCall(NamedTuple):
    """A function call of an assistant message; `arguments` is the JSON text as it stands."""

    id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True, eq=False):
    """One message: `raw` is its exact JSON text (UTF-8, without `x_context`), `fields` the decoded object."""

    raw: bytes
    fields: Mapping[str, Any]
    directives: Directives = NO_DIRECTIVES
    _calls: tuple[ToolCall, ...] | None = None
    """Read once: every stage asks."""
    _digest: bytes = b""
    _role: str | None = None
    _identity: bytes = b""
    _link: tuple[Tip, Tip] | None = None
    """The tip of a history that it was seen to follow, and the tip with it."""
    _tokens: tuple[str, int] | None = None
    """A way of counting, and what it gave."""
    _past: object = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.raw == other.raw and self.directives == other.directives

    def __hash__(self) -> int:
        return hash((self.raw, self.directives))

    def __repr__(self) -> str:
        return f"Message(raw={self.raw!r}, directives={self.directives!r})"

    def with_directives(self, directives: Directives) -> Message:
        """The same message under other directives."""
        return Message(self.raw, self.fields, directives)

    @property
    def past(self) -> object:
        """What is known of the history that ends with it (`pasts`); None if nothing is."""
        return self._past

    def keep_past(self, past: object) -> None:
        """Keep what is known of the history that ends with it."""
        force_setattr(self, "_past", past)

    @property
    def role(self) -> str:
        role = self._role
        if role is None:
            told = self.fields.get("role")
            force_setattr(self, "_role", role := told if isinstance(told, str) else "")
        return role

    @property
    def content(self) -> Any:
        return self.fields.get("content")

    @property
    def digest(self) -> bytes:
        """The digest of `raw`, under which what is known of the message is remembered."""
        if not self._digest:
            force_setattr(self, "_digest", digest(self.raw))
        return self._digest

    def identified(self, identify: Callable[[Message], bytes]) -> bytes:
        """Its identity, which `identify` gives the first time."""
        if not self._identity:
            force_setattr(self, "_identity", identify(self))
        return self._identity

    def counted(self, way: str, count: Callable[[Message], int]) -> int:
        """Its tokens, which `count` gives where it was not counted in the same way the last time."""
        known = self._tokens
        if known is None or known[0] != way:
            force_setattr(self, "_tokens", known := (way, count(self)))
        return known[1]

    def is_counted(self, way: str) -> bool:
        """Whether its tokens are known."""
        return self._tokens is not None and self._tokens[0] == way

    def tip_behind(self, parent: Tip, identify: Callable[[Message], bytes]) -> Tip:
        """The tip of a history that goes on from `parent` with it, remembered as such (`tips_of`)."""
        tip = next_tip(parent, self.identified(identify))
        force_setattr(self, "_link", (parent, tip))
        return tip

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """What `tool_calls` gives."""
        calls = self._calls
        if calls is None:
            force_setattr(self, "_calls", calls := _calls(self))
        return calls


def read(raw: bytes, directives: Directives = NO_DIRECTIVES) -> Message:
    """The message of a JSON text; raises ValueError if it is no JSON object."""
    fields = jsontext.decode(raw)
    if not isinstance(fields, dict):
        raise ValueError("a message must be a JSON object")
    return Message(raw, fields, directives)


def make(fields: Mapping[str, Any]) -> Message:
    """A message of ours, encoded compactly."""
    return Message(jsontext.encode(fields), fields)


def text_of(message: Message) -> str:
    """All text of a message's content: the string, or its text and refusal parts joined by line breaks; "" if none."""
    content = message.fields.get("content")
    if isinstance(content, str) and content:
        return content
    if isinstance(content, list):
        return "\n".join(part_text(part) for part in content if part_text(part))
    refusal = message.fields.get("refusal")
    return refusal if isinstance(refusal, str) else ""


def part_text(part: Any) -> str:
    """The text of a content part; "" for media."""
    if not isinstance(part, dict):
        return ""
    for key in ("text", "refusal"):
        value = part.get(key)
        if isinstance(value, str):
            return value
    return ""


def tool_calls(message: Message) -> tuple[ToolCall, ...]:
    """The calls of an assistant message, in order; () for any other."""
    return message.calls


def _calls(message: Message) -> tuple[ToolCall, ...]:
    calls = message.fields.get("tool_calls")
    if not calls or message.role != "assistant" or not isinstance(calls, list):
        return ()
    return tuple(_call(call) for call in calls if isinstance(call, dict))


def _call(call: dict[str, Any]) -> ToolCall:
    body = call.get("function") or call.get("custom") or {}
    if not isinstance(body, dict):
        body = {}
    arguments = body.get("arguments", body.get("input", ""))
    text = arguments if isinstance(arguments, str) else jsontext.encode(arguments).decode()
    return ToolCall(str(call.get("id", "")), str(body.get("name", "")), text)


def with_fields(message: Message, **changes: Any) -> Message:
    """A copy with some fields changed, encoded anew; all other fields, known or not, stay."""
    return Message(jsontext.encode(fields := {**message.fields, **changes}), fields, message.directives)


def leading_system(messages: Sequence[Message]) -> int:
    """How many system or developer messages stand at the front: they are not history."""
    for at, message in enumerate(messages):
        if message.role not in SYSTEM_ROLES:
            return at
    return len(messages)


def identity(message: Message) -> bytes:
    """16 bytes that are equal for two sendings of the same message, whatever client library wrote it.

    Only known re-serialisations are levelled: one text part and a plain string, absent and empty optional keys, key order,
    `cache_control`, dropped reasoning, an audio answer and its id. All else counts, every character of text and arguments included.
    """
    return message.identified(_identity)


def _identity(message: Message) -> bytes:
    fields, content = message.fields, message.fields.get("content")
    if type(content) is str and content and fields.keys() == PLAIN_KEYS and type(role := fields["role"]) is str:
        text = b'{"content":%b,"role":%b}' % (jsontext.canonical_text(content), jsontext.canonical_text(role))  # what the long way comes to
        return hashlib.blake2b(text, digest_size=16).digest()
    return hashlib.blake2b(jsontext.canonical(_levelled(message.fields)), digest_size=16).digest()


def _levelled(fields: Mapping[str, Any]) -> dict[str, Any]:
    out = {k: v for k, v in fields.items() if k not in IGNORED}
    for key in IGNORED_WHEN_EMPTY:
        if out.get(key) in (None, "", []):
            out.pop(key, None)
    content = _levelled_content(out.pop("content", None))
    if content not in (None, "", []):
        out["content"] = content
    audio = out.get("audio")
    if isinstance(audio, dict) and "id" in audio:
        out["audio"] = {"id": audio["id"]}  # what a client sends back of an audio answer, by the API reference
    calls = out.get("tool_calls")
    if isinstance(calls, list):
        out["tool_calls"] = [_levelled_call(call) if isinstance(call, dict) else call for call in calls]
    return out


def _levelled_call(call: Mapping[str, Any]) -> dict[str, Any]:
    out = {key: value for key, value in call.items() if key != "index"}
    function = out.get("function")
    if isinstance(function, dict):
        out["function"] = {key: value for key, value in function.items() if key != "parsed_arguments"}
    return out


def _levelled_content(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    parts = [{k: v for k, v in p.items() if k != "cache_control"} if isinstance(p, dict) else p for p in content]
    parts = [p for p in parts if not (isinstance(p, dict) and p.get("type") in ("thinking", "redacted_thinking", "reasoning"))]
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == {"type", "text"} and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def next_tip(parent: Tip, message_identity: bytes) -> Tip:
    """The tip of a history that goes on from `parent` with one more message."""
    return hashlib.blake2b(bytes.fromhex(parent) + message_identity, digest_size=16).hexdigest()


def chain(parent: Tip, identities: Iterable[bytes]) -> list[Tip]:
    """The tips after each of the messages, oldest first."""
    tips = []
    for one in identities:
        parent = next_tip(parent, one)
        tips.append(parent)
    return tips


def tips_of(parent: Tip, messages: Iterable[Message], identify: Callable[[Message], bytes] = identity) -> list[Tip]:
    """The tips after each of the messages, as `chain` gives them."""
    tips = []
    for message in messages:
        link = message._link  # noqa: SLF001  its own module; a long history is gone through for each request
        parent = link[1] if link is not None and link[0] == parent else message.tip_behind(parent, identify)
        tips.append(parent)
    return tips


def digest(raw: bytes) -> bytes:
    """16 bytes that name exact bytes: the key under which bodies, identities and counts are remembered."""
    return hashlib.blake2b(raw, digest_size=16).digest()
