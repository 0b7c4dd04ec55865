"""A client's body: taken in within its limit, read, and compared with the last bodies of its session, so that only what is new is read again."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from aiohttp import web

from ctxproxy.core import wire
from ctxproxy.core.codings import decode_body
from ctxproxy.core.commands import Heard, command_of, heard
from ctxproxy.core.fronts import Front, continued, front_of, kept_bytes
from ctxproxy.core.messages import Message, Tip, identity
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


class _Known:
    """A request that the next one may begin with, and whether no message in it is a command."""

    def __init__(self, request: ChatRequest, *, is_plain: bool) -> None:
        self.request = request
        self.is_plain = is_plain
        self.size_bytes = kept_bytes(request)

    @cached_property
    def front(self) -> Front | None:
        """Looked for when there is another body, for many conversations never go on; None where it is not sure."""
        return front_of(self.request)

    def begins(self, body: bytes) -> bool:
        """Whether a body begins with its front."""
        return self.front is not None and self.front.begins(body)


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
        known = _going_on(before, body) if before else None
        if known is None:
            before = None
            known = await asyncio.to_thread(_read_large, body) if len(body) > READ_HERE_BYTES else _read_whole(body)
        if (name or known.front) and known.size_bytes <= self._most and erasures == self._erasures:
            self._keep(_key_of(name) if name else _keys(name, body, _end_of(known))[-1], known, before)
        return Heard(known.request, None) if known.is_plain else heard(known.request, enabled=commands)

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Let go of these sessions' bodies, and of all that came without a name: whose they are is not known any more."""
        self._erasures += 1
        for key in [key for key in self._known if key.startswith(UNNAMED)] + [_key_of(session.name) for session in keys]:
            self._let_go(key)

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        """Let go of the session's bodies: they may hold these messages."""
        await self.erase([key])

    def _longest(self, keys: Sequence[bytes], body: bytes) -> _Known | None:
        fits = [known for key in keys for known in self._known.get(key, ()) if known.begins(body)]
        return max(fits, key=_end_of, default=None)

    def _keep(self, key: bytes, new: _Known, before: _Known | None) -> None:
        """Remember a front in place of the one that it goes on from, and let the names go that were not used for longest."""
        branches = [known for known in self._let_go(key) if known is not before]
        kept = self._known[key] = [new, *branches[: MOST_BRANCHES - 1]]
        self._left -= sum(known.size_bytes for known in kept)
        while self._left < 0:
            self._let_go(next(iter(self._known)))

    def _let_go(self, key: bytes) -> list[_Known]:
        gone = self._known.pop(key, [])
        self._left += sum(known.size_bytes for known in gone)
        return gone


def _going_on(before: _Known, body: bytes) -> _Known | None:
    """A request that goes on from an earlier one; None where only the whole body tells what it is."""
    front = continued(before.front, body) if before.front else None
    if front is None:
        return None
    seen = len(before.request.messages) if before.is_plain else 0
    known = _Known(front.request, is_plain=before.is_plain and _is_plain(front.request.messages[seen:]))
    known.front = front
    return known


def _read_whole(body: bytes) -> _Known:
    chat = wire.parse(body)
    return _Known(chat, is_plain=_is_plain(chat.messages))


def _read_large(body: bytes) -> _Known:
    """The request of a body with what takes long: the messages' identities, its front."""
    known = _read_whole(body)
    for message in known.request.messages:
        identity(message)
    _ = known.front
    return known


def _is_plain(messages: Iterable[Message]) -> bool:
    return not any(map(command_of, messages))


def _end_of(known: _Known) -> int:
    """Where its front ends; 0 without one."""
    return known.front.end if known.front else 0


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
    if (request.content_length or 0) > most_bytes:
        raise _too_large(most_bytes)
    parts: list[bytes] = []
    size = 0
    while not (content := request.content).at_eof():
        chunk = content.read_nowait() if content.is_eof() else await content.readany()  # a short one is there with its head
        size += len(chunk)
        if size > most_bytes:
            raise _too_large(most_bytes)
        parts += [chunk] if chunk else []
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is larger than listen.max_body_mb allows ({most_bytes} bytes); raise it, or send a smaller body")


def decoded(request: web.Request, encoded: bytes, most_bytes: int) -> bytes:
    """A body without its content coding; the same object where it has none."""
    if "Content-Encoding" not in request.headers:
        return encoded
    plain = decode_body(encoded, ",".join(request.headers.getall("Content-Encoding")), most_bytes)
    return encoded if plain == encoded else plain


def read_once(request: web.Request, encoded: bytes, most_bytes: int) -> ChatRequest:
    """The request of a body of which nothing is remembered."""
    return wire.parse(decoded(request, encoded, most_bytes))
