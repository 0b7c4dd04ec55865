"""A client's body: taken in within its limit, read, and compared with the last bodies of its session, so that only what is new is read again."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from aiohttp import web

from ctxproxy.core import wire
from ctxproxy.core.codings import decode_body
from ctxproxy.core.commands import Heard, command_of, heard
from ctxproxy.core.fronts import Front, continued, front_of
from ctxproxy.core.messages import Tip, identity
from ctxproxy.core.records import SessionKey
from ctxproxy.core.wire import ChatRequest
from ctxproxy.errors import BodyTooLarge

HEADS_BYTES = (32, 128, 512, 2048, 8192)
"""Of a body without a session's name so many bytes at most tell whose continuation it may be: as many as its front has."""
UNNAMED = b"\0"
"""No header's value begins like this."""
READ_HERE_BYTES = 262_144
"""Takes the loop two or three milliseconds."""
MOST_BRANCHES = 8
"""Bodies that are compared for one name: a conversation's own, its side requests' (titles, sub-agents), other conversations with its beginning."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A front, and that no message in it is a command."""

    front: Front
    is_plain: bool


class Bodies:
    """The last bodies of the sessions used last, in at most about `max_bytes`; what was read of one holds for whoever sends the same bytes.

    An `erasing.Part`.
    """

    def __init__(self, max_bytes: int) -> None:
        self._left = self._most = max_bytes
        self._known: OrderedDict[bytes, list[_Known]] = OrderedDict()
        self._erasures = 0

    async def read(self, name: str, body: bytes, *, commands: bool) -> Heard:
        """The request of a body, and the command that it is, if any; raises WireError and BadRequest.

        A large one of which nothing is known is read in a thread.
        """
        erasures, before = self._erasures, self._longest(_keys(name, body, len(body)), body)
        front = continued(before.front, body) if before else None
        if before is not None and front is not None:
            chat, seen = front.request, len(before.front.request.messages) if before.is_plain else 0
            is_plain = before.is_plain and not any(command_of(message) for message in chat.messages[seen:])
        else:
            before = None
            whole = await asyncio.to_thread(_read_whole, body) if len(body) > READ_HERE_BYTES else _read_whole(body)
            chat, front, is_plain = whole
        if front is not None and front.size_bytes <= self._most and erasures == self._erasures:
            self._keep(_keys(name, body, front.end)[-1], _Known(front, is_plain), before)
        return Heard(chat, None) if is_plain else heard(chat, enabled=commands)

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Let go of these sessions' bodies, and of all that came without a name: whose they are is not known any more."""
        self._erasures += 1
        for key in [key for key in self._known if key.startswith(UNNAMED)] + [_key_of(session.name) for session in keys]:
            self._let_go(key)

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        """Let go of the session's bodies: they may hold these messages."""
        await self.erase([key])

    def _longest(self, keys: Sequence[bytes], body: bytes) -> _Known | None:
        fits = [known for key in keys for known in self._known.get(key, ()) if known.front.begins(body)]
        return max(fits, key=lambda known: known.front.end, default=None)

    def _keep(self, key: bytes, new: _Known, before: _Known | None) -> None:
        """Remember a front in place of the one that it goes on from, and let the names go that were not used for longest."""
        branches = [known for known in self._let_go(key) if known is not before]
        kept = self._known[key] = [new, *branches[: MOST_BRANCHES - 1]]
        self._left -= sum(known.front.size_bytes for known in kept)
        while self._left < 0:
            self._let_go(next(iter(self._known)))

    def _let_go(self, key: bytes) -> list[_Known]:
        gone = self._known.pop(key, [])
        self._left += sum(known.front.size_bytes for known in gone)
        return gone


def _read_whole(body: bytes) -> tuple[ChatRequest, Front | None, bool]:
    """The request of a body, its front, and whether no message in it is a command; of a large one, the messages' identities are worked out, too."""
    chat = wire.parse(body)
    if len(body) > READ_HERE_BYTES:
        for message in chat.messages:
            identity(message)
    return chat, front_of(chat), not any(command_of(message) for message in chat.messages)


def _keys(name: str, body: bytes, end: int) -> list[bytes]:
    """What a body is looked for under, of which `end` bytes do not change any more; the last one is what it is kept under."""
    if name:
        return [_key_of(name)]
    heads = [body[:size] for size in HEADS_BYTES if size <= end] or [body[:end]]
    return [UNNAMED + hashlib.blake2b(head, digest_size=16).digest() for head in heads]


def _key_of(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


async def take_in(request: web.Request, most_bytes: int) -> bytes:
    """The body as it came; raises BodyTooLarge before more than the limit is in memory."""
    too_large = BodyTooLarge(f"the body is larger than listen.max_body_mb allows ({most_bytes} bytes); raise it, or send a smaller body")
    if (request.content_length or 0) > most_bytes:
        raise too_large
    parts: list[bytes] = []
    size = 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > most_bytes:
            raise too_large
        parts.append(chunk)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decoded(request: web.Request, encoded: bytes, most_bytes: int) -> bytes:
    """A body without its content coding; the same object where it has none."""
    plain = decode_body(encoded, ",".join(request.headers.getall("Content-Encoding", [])), most_bytes)
    return encoded if plain == encoded else plain


def read_once(request: web.Request, encoded: bytes, most_bytes: int) -> ChatRequest:
    """The request of a body of which nothing is remembered."""
    return wire.parse(decoded(request, encoded, most_bytes))
