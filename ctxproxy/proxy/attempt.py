"""One upstream call, looked at before the client sees a byte: an answer that has surely begun, or a refusal as a value."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ctxproxy.core.codings import MAX_BYTES, Decoder, decode_body, decoder
from ctxproxy.core.overflow import OTHER, Verdict, classify, classify_event, classify_finish
from ctxproxy.core.reply import DONE, Reply, ReplyAssembler, reply_from_body
from ctxproxy.core.sse import Event, SseReader
from ctxproxy.errors import BodyTooLarge, CtxproxyError, UnsupportedEncoding
from ctxproxy.ports import Response
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
T = TypeVar("T")
ERROR_BYTES = 1_048_576
"""The longest error body that is looked at; longer ones are passed on unread."""
UNREAD_BYTES = 16_384
"""Of a stream that are relayed before they are read along: some eighty events in one go cost half of what they cost one by one."""
STREAM_BEGINS = (b"data:", b"event:", b":")
"""What only an event stream begins with: some servers name no content type for theirs, or a wrong one."""
HOLD_EMPTY_S = 0.1
"""How long events without any content (a bare role) are held back, to see whether an error follows them."""


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

    async def rest(self) -> AsyncIterator[bytes]:
        """All chunks that have not been peeked at, as they come."""
        if self._pending is not None:
            await asyncio.wait([self._pending])
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
    _seam: bytes = b""
    """The end of the chunk before, for a mark that lies across two."""
    _may_end: bool = False
    """Its mark has been seen: the event that ends it is read when its last byte comes."""

    def hold(self, chunk: bytes) -> list[Event]:
        """Keep a raw chunk back for the client, and read it; gives its events that have data."""
        self.held.append(chunk)
        self._look_for_end(chunk)
        return self.feed(chunk)

    def watch(self, chunk: bytes) -> None:
        """Keep a raw chunk that is on its way, and read it together with those after it; at once where it may hold the stream's end."""
        self._unread.append(chunk)
        self._unread_bytes += len(chunk)
        self._look_for_end(chunk)
        if self._may_end or self._unread_bytes > UNREAD_BYTES:
            self.catch_up()

    def catch_up(self) -> None:
        """Let the assembler see what is kept."""
        if self._unread:
            chunk = b"".join(self._unread)
            self._unread.clear()
            self._unread_bytes = 0
            self.feed(chunk)

    def feed(self, chunk: bytes) -> list[Event]:
        """Let the assembler see a raw chunk; gives its events that have data. What does not decode ends the watching, never the relaying."""
        if self.decoder is None:
            return []
        try:
            return self._fed(self.decoder, chunk)
        except (BodyTooLarge, UnsupportedEncoding, ValueError):
            self.decoder = None
        except Exception as error:
            log.exception("an answer could not be read along, it is relayed all the same: %s", type(error).__name__)
            self.decoder = None
        return []

    def _look_for_end(self, chunk: bytes) -> None:
        joint = self._seam + chunk
        self._may_end = self._may_end or DONE in joint or header(self.response, "Content-Encoding") != ""
        self._seam = joint[1 - len(DONE) :]

    def _fed(self, decoder: Decoder, chunk: bytes) -> list[Event]:
        found = [event for event in self.reader.feed(decoder.feed(chunk)) if event.data]
        for event in found:
            self.assembler.feed(event.data, event.name)
        return found


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that is there as a whole: raw body as it came, and what it says."""

    response: Response
    body: bytes
    reply: Reply | None


@dataclass(frozen=True, slots=True)
class Refused:
    """An error, with its raw body as it came and what it means."""

    response: Response
    body: bytes
    verdict: Verdict


def header(response: Response, name: str) -> str:
    """A response header's value, "" if it is absent; names have no case."""
    wanted = name.lower()
    return next((value for key, value in response.headers if key.lower() == wanted), "")


async def examine(response: Response, tasks: Tasks, max_body_bytes: int) -> Stream | Whole | Refused:
    """What an answer is; reads no more of a stream than its first events. Closes the response if that fails or is cancelled."""
    try:
        return await _examined(response, tasks, max_body_bytes)
    except BaseException:
        await response.close()
        raise


async def _examined(response: Response, tasks: Tasks, max_body_bytes: int) -> Stream | Whole | Refused:
    pump, failed = Pump(response, tasks), response.status >= 400
    first = b"" if failed else await pump.peek(None) or b""
    if not failed and (header(response, "Content-Type").lower().startswith("text/event-stream") or first.startswith(STREAM_BEGINS)):
        return await _begun(Stream(response, pump, _decoder(response)), first)
    body, rest = bytearray(first), pump.rest()
    while len(body) <= max_body_bytes:
        chunk = await anext(rest, None)
        if chunk is None:
            return _whole(response, bytes(body), max_body_bytes)
        body += chunk
    return Stream(response, pump, None, [bytes(body)])  # too much to be gathered: it is relayed, and not understood


def _whole(response: Response, body: bytes, max_body_bytes: int) -> Whole | Refused:
    plain = plain_body(response, body, max_body_bytes)
    verdict = _understood(lambda: classify(response.status, plain), OTHER) if len(plain) <= ERROR_BYTES else OTHER
    if response.status >= 400 or verdict.shrink_helps:
        return Refused(response, body, verdict)
    return Whole(response, body, _understood(lambda: reply_from_body(plain), None))


def _understood(read: Callable[[], T], otherwise: T) -> T:
    """What an answer is found to say; `otherwise` where a fault of ours keeps us from finding out: it is relayed all the same."""
    try:
        return read()
    except Exception as error:
        log.exception("an answer could not be read, it is relayed all the same: %s", type(error).__name__)
        return otherwise


async def _begun(stream: Stream, first: bytes) -> Stream | Refused:
    """Read up to the first event that says something: content, a call, a finish, or an error."""
    heard = False
    chunk: bytes | None = first or None
    while chunk is not None:
        found = stream.hold(chunk)
        heard = heard or bool(found)
        verdict = _understood(lambda: _verdict(stream, found), None)  # noqa: B023  it is called at once
        if verdict is not None:
            rest = [piece async for piece in stream.pump.rest()]
            return Refused(stream.response, b"".join([*stream.held, *rest]), verdict)
        if stream.decoder is None or stream.assembler.has_output or stream.assembler.is_finished:
            return stream
        try:
            chunk = await stream.pump.peek(HOLD_EMPTY_S if heard else None)
        except TimeoutError:
            return stream
    return stream


def _verdict(stream: Stream, found: list[Event]) -> Verdict | None:
    """The overflow that a stream tells of before any content; None if it tells of none."""
    if stream.assembler.has_output:
        return None
    verdicts = (classify_event(event.data, event.name) for event in found)
    verdict = next((verdict for verdict in verdicts if verdict is not None), None) or _empty_end(stream.assembler.result())
    return verdict if verdict is not None and verdict.shrink_helps else None


def _empty_end(reply: Reply) -> Verdict | None:
    """The overflow that the usage of a finished answer without content tells of."""
    made = reply.usage.completion_tokens if reply.usage else None
    verdicts = (classify_finish(choice.finish_reason, completion_tokens=made, has_output=False) for choice in reply.choices)
    return next((verdict for verdict in verdicts if verdict is not None), None)


def plain_body(response: Response, body: bytes, max_body_bytes: int = MAX_BYTES) -> bytes:
    """A body without its content coding; as it is where that cannot be undone."""
    try:
        return decode_body(body, header(response, "Content-Encoding"), max_body_bytes)
    except (BodyTooLarge, UnsupportedEncoding):
        return body


def _decoder(response: Response) -> Decoder | None:
    try:
        return decoder(header(response, "Content-Encoding"))
    except UnsupportedEncoding:
        return None
