"""A stream that has begun: relayed as it comes, and read along in few goes; its end is known as soon as its last byte is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from ctxproxy.core.codings import Decoder
from ctxproxy.core.reply import DONE, ReplyAssembler
from ctxproxy.core.sse import Event, SseReader
from ctxproxy.errors import BodyTooLarge, CtxproxyError, UnsupportedEncoding
from ctxproxy.ports import Response
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
UNREAD_BYTES = 8192
"""Of a stream that are relayed before they are read along: some thirty events in one go cost a quarter of what they cost one by one."""
EVENT_END = b"\n\n"
"""Of nearly all streams; one that has other line ends is read as it comes, and to the same effect."""


class Pump:
    """A response's raw chunks, with a look ahead that may time out and loses nothing."""

    def __init__(self, response: Response, tasks: Tasks) -> None:
        self._chunks = response.chunks()
        self._tasks = tasks
        self._pending: asyncio.Task[bytes | CtxproxyError | None] | None = None

    async def _pull(self) -> bytes | CtxproxyError | None:
        try:
            return await anext(self._chunks, None)
        except CtxproxyError as error:
            return error

    async def peek(self, timeout_s: float | None) -> bytes | None:
        """The next chunk, None at the end; raises TimeoutError if none comes in time, and upstream errors."""
        if timeout_s is None and self._pending is None:
            return await anext(self._chunks, None)
        self._pending = self._pending or self._tasks.start(self._pull(), "peek")
        done, _ = await asyncio.wait([self._pending], timeout=timeout_s)
        if not done:
            raise TimeoutError
        return self._taken()

    def _taken(self) -> bytes | None:
        assert self._pending is not None
        result, self._pending = self._pending.result(), None
        if isinstance(result, CtxproxyError):
            raise result
        return result

    def rest(self) -> AsyncIterator[bytes]:
        """All chunks that have not been peeked at, as they come."""
        return self._chunks if self._pending is None else self._after(self._pending)

    async def _after(self, pending: asyncio.Task[bytes | CtxproxyError | None]) -> AsyncIterator[bytes]:
        await asyncio.wait([pending])
        first = self._taken()
        if first is None:
            return
        yield first
        async for chunk in self._chunks:
            yield chunk


@dataclass(slots=True)
class Stream:
    """A stream that has begun: raw chunks held so far, those to come, and what they have told."""

    response: Response
    pump: Pump
    decoder: Decoder | None
    """None: its coding is unknown or it does not decode; it is relayed, and not understood."""
    held: list[bytes] = field(default_factory=list)
    reader: SseReader = field(default_factory=SseReader)
    assembler: ReplyAssembler = field(default_factory=ReplyAssembler)
    _unread: list[bytes] = field(default_factory=list)
    _unread_bytes: int = 0
    _begun_event: bytes = b""
    """Decoded, the event that began at the end of what was read."""
    _seam: bytes = b""
    """The end of the chunk before, for a mark that lies across two; empty where none can."""
    _may_end: bool = False
    """Its mark has been seen, or cannot be: the event that ends the stream is read when its last byte comes."""

    def __post_init__(self) -> None:
        self._may_end = header(self.response, "Content-Encoding") != ""

    def hold(self, chunk: bytes) -> list[Event]:
        """Keep a raw chunk back for the client, and read it; gives its events that have data, up to the first that says something."""
        self.held.append(chunk)
        self._look_for_end(chunk)
        found: list[Event] = []
        self._read(chunk, lambda data: self._up_to_output(data, found))
        return found

    def watch(self, chunk: bytes) -> bool:
        """Keep a raw chunk that is on its way, and read it together with those after it; gives whether the stream's end has come.

        It is read at once where it may hold that end.
        """
        self._unread.append(chunk)
        self._unread_bytes += len(chunk)
        is_much = self._unread_bytes > UNREAD_BYTES
        self._look_for_end(chunk, within=not is_much)  # what is read now need not be looked through
        if is_much and not self._may_end:
            self._read(self._taken(), self._whole_events)
        if self._may_end:
            self.catch_up()
        return self.assembler.done

    def catch_up(self) -> None:
        """Let the assembler see all that is kept."""
        if self._unread or self._begun_event:
            self._read(self._taken(), self._to_the_end)

    def end(self) -> None:
        """The body has come to its end: an event whose blank line it left out counts, too."""
        self.catch_up()
        if self.decoder is not None and (event := self.reader.finish()):
            self.assembler.feed(event.data, event.name)

    def _look_for_end(self, chunk: bytes, *, within: bool = True) -> None:
        """Whether the stream's mark has come: across two chunks or, unless they are read anyway, `within` one."""
        if (within and DONE in chunk) or (self._seam and DONE in self._seam + chunk[: len(DONE)]):
            self._may_end = True
        self._seam = b"" if chunk.endswith(b"\n") else (self._seam + chunk[1 - len(DONE) :])[1 - len(DONE) :]

    def _taken(self) -> bytes:
        chunk = b"".join(self._unread)
        self._unread.clear()
        self._unread_bytes = 0
        return chunk

    def _read(self, chunk: bytes, read: Callable[[bytes], None]) -> None:
        """Have a raw chunk read. What does not decode ends the watching, never the relaying."""
        if self.decoder is None:
            return
        try:
            read(self.decoder.feed(chunk))
        except (BodyTooLarge, UnsupportedEncoding, ValueError):
            self.decoder = None
        except Exception as error:
            log.exception("an answer could not be read along, it is relayed all the same: %s", type(error).__name__)
            self.decoder = None

    def _up_to_output(self, data: bytes, found: list[Event]) -> None:
        """Read event by event until something has come, then all that is behind it."""
        at = 0
        while at < len(data) and not self.assembler.has_output:
            end = _end_of(data.find(EVENT_END, at), data)
            found += self._events(data[at:end])
            at = end
        (self._to_the_end if self._may_end else self._whole_events)(data[at:])

    def _whole_events(self, data: bytes) -> None:
        """Read all but the event that has begun at the end; that is kept for the next time unless it is long."""
        data = self._begun_event + data
        end = _end_of(data.rfind(EVENT_END), data)
        end = end if len(data) - end <= UNREAD_BYTES else len(data)
        self._begun_event = data[end:]
        texts = self.reader.plain(data[:end])
        if texts is None:
            self._events(data[:end])
        else:
            self.assembler.feed_all(texts)
        self._may_end = self._may_end or DONE in (data if texts is None else self._begun_event)

    def _to_the_end(self, data: bytes) -> None:
        """Read all, and keep nothing."""
        self._whole_events(data)
        begun, self._begun_event = self._begun_event, b""
        self._events(begun)

    def _events(self, data: bytes) -> list[Event]:
        """Let the assembler see decoded data; gives its events that have data."""
        found = [event for event in self.reader.feed(data) if event.data]
        for event in found:
            self.assembler.feed(event.data, event.name)
        return found


def _end_of(mark: int, data: bytes) -> int:
    """Behind the blank line that was found at `mark`; behind all where none was."""
    return mark + len(EVENT_END) if mark >= 0 else len(data)


def header(response: Response, name: str) -> str:
    """A response header's value, "" if it is absent; names have no case."""
    wanted = name.lower()
    for key, value in response.headers:
        if key.lower() == wanted:
            return value
    return ""
