"""A request that begins with an earlier one's bytes, as nearly every next turn does: only what came since is read.

A front is a body up to the end of its last message. A body that begins with the same bytes is in the same place of the same JSON text there, so
what was read of it holds; what follows is read by the same rules as any body. Anything out of the ordinary is left to `wire.parse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ctxproxy.core import jsontext
from ctxproxy.core.wire import ChatRequest, Read, assembled, read_all
from ctxproxy.errors import CtxproxyError

BLANKS = b" \t\n\r"
"""RFC 8259 §2."""
READ_FACTOR, MESSAGE_BYTES = 3, 700
"""What a front takes in memory, about: its body, each message's own bytes, what was read of them, and what is remembered of each (measured)."""
MESSAGES = "messages"
SIGHT_BYTES = 64
"""Of a list's beginning by which it is found in its body."""


@dataclass(frozen=True, slots=True)
class Front:
    """The front of a request's body, with what it holds."""

    request: ChatRequest = field(repr=False)
    end: int
    """Where its last message ends."""
    before: Mapping[str, bytes] = field(repr=False)
    """The values that stand before the messages."""

    @property
    def size_bytes(self) -> int:
        """What it takes in memory."""
        return kept_bytes(self.request)

    def begins(self, body: bytes) -> bool:
        """Whether a body begins with the same bytes."""
        return body.startswith(memoryview(self.request.body)[: self.end])


def kept_bytes(request: ChatRequest) -> int:
    """What a request takes in memory with all that is remembered of it, about."""
    return READ_FACTOR * len(request.body) + MESSAGE_BYTES * len(request.messages)


def front_of(request: ChatRequest) -> Front | None:
    """The front of a request that was read as a whole; None where it has no message, or where its messages stand is not sure."""
    body, array = request.body, request.array
    if array is None or not request.messages:
        return None
    view = memoryview(array)
    start = body.find(view[:SIGHT_BYTES])
    bracket = start + len(view) - 1
    try:
        before = jsontext.members(body[:start] + b"[]}") if start >= 0 and body.startswith(view, start) else {}
        after = _after(body[bracket:])
    except ValueError:
        return None
    if not before or next(reversed(before)) != MESSAGES or bytes(before.pop(MESSAGES)) != b"[]" or MESSAGES in after:
        return None
    return Front(request, _end_of_last(body, bracket), {key: bytes(value) for key, value in before.items()})


def continued(front: Front, body: bytes) -> Front | None:
    """The front of a body that begins as this one does, with its request; None where only `wire.parse` can tell what that is."""
    rest = body[front.end :].lstrip(BLANKS)
    try:
        added, rest = _more(rest[1:]) if rest[:1] == b"," else (Read(()), rest)
        after = _after(rest)
        if MESSAGES in after:
            return None
        texts = {**front.before, MESSAGES: b"", **{key: bytes(value) for key, value in after.items()}}
        request = assembled(body, texts, _joined(front.request, added))
    except (ValueError, CtxproxyError):
        return None
    return Front(request, _end_of_last(body, len(body) - len(rest)), front.before)


def _more(rest: bytes) -> tuple[Read, bytes]:
    """The messages that follow a comma, and all from the list's closing bracket on; raises ValueError, WireError or BadRequest."""
    text = "[" + rest.decode()
    end = jsontext.end_of_value(text, 0)
    raws = jsontext.items(text[:end].encode())
    if not raws:
        raise ValueError("a comma without a message behind it")
    return read_all(raws), text[end - 1 :].encode()


def _after(rest: bytes) -> dict[str, msgspec.Raw]:
    """The values behind the list that a closing bracket ends; raises ValueError."""
    behind = rest[1:].lstrip(BLANKS)
    if rest[:1] != b"]" or behind[:1] not in (b",", b"}"):
        raise ValueError("the list of messages does not end here")
    values = jsontext.members(b"{" + behind.removeprefix(b","))
    if behind[:1] == b"," and not values:
        raise ValueError("a comma without a value behind it")
    return values


def _joined(earlier: ChatRequest, added: Read) -> Read:
    return Read((*earlier.messages, *added.messages), earlier.has_directives or added.has_directives)


def _end_of_last(body: bytes, bracket: int) -> int:
    """Where the last message ends, before the blanks in front of the closing bracket."""
    end = bracket
    while body[end - 1] in BLANKS:
        end -= 1
    return end
