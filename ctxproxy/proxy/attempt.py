"""One upstream call, looked at before the client sees a byte: an answer that has surely begun, or a refusal as a value."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from ctxproxy.core.codings import MAX_BYTES, Decoder, decode_body, decoder
from ctxproxy.core.overflow import OTHER, Verdict, classify, classify_event, classify_finish
from ctxproxy.core.plain_answers import plain_answer
from ctxproxy.core.reply import Reply, reply_from_body
from ctxproxy.core.sse import Event
from ctxproxy.errors import BodyTooLarge, UnsupportedEncoding
from ctxproxy.ports import Response
from ctxproxy.proxy.streams import Pump, Stream, header
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
T = TypeVar("T")
ERROR_BYTES = 1_048_576
"""The longest error body that is looked at; longer ones are passed on unread."""
STREAM_BEGINS = (b"data:", b"event:", b":")
"""What only an event stream begins with: some servers name no content type for theirs, or a wrong one."""
HOLD_EMPTY_S = 0.1
"""How long events without any content (a bare role) are held back, to see whether an error follows them."""


class Whole(msgspec.Struct, frozen=True):
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
    if not failed and _is_stream(response, first):
        return await _begun(Stream(response, pump, _decoder(response)), first)
    body = await _gathered(first, pump.rest(), max_body_bytes)
    if len(body) > max_body_bytes:
        return Stream(response, pump, None, [body])  # too much to be gathered: it is relayed, and not understood
    return _whole(response, body, max_body_bytes)


async def _gathered(first: bytes, rest: AsyncIterator[bytes], max_body_bytes: int) -> bytes:
    """A body up to its end, or one chunk longer than the limit."""
    parts, size = [first], len(first)
    if size <= max_body_bytes:
        async for chunk in rest:
            parts.append(chunk)
            size += len(chunk)
            if size > max_body_bytes:
                break
    return first if len(parts) == 1 else b"".join(parts)


def _is_stream(response: Response, first: bytes) -> bool:
    """By what it begins with, else by its content type: gateways send an error as plain JSON under the type of the stream that it is in place of."""
    if first.startswith(STREAM_BEGINS):
        return True
    return header(response, "Content-Type").lower().startswith("text/event-stream") and not first.lstrip().startswith(b"{")


def _whole(response: Response, body: bytes, max_body_bytes: int) -> Whole | Refused:
    plain = plain_body(response, body, max_body_bytes)
    usual = _understood(lambda: plain_answer(plain), None) if response.status < 400 else None
    if usual is not None:
        return Whole(response, body, usual)
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
