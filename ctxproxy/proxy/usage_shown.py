"""Answers whose `usage` is raised on their way to a client that compacts by itself; what we learn from stays the upstream's own."""

from __future__ import annotations

from ctxproxy.config.schema import Context
from ctxproxy.core.codings import MAX_BYTES, decode_body, decoder
from ctxproxy.core.usage_report import EventRaiser, Logical, raised
from ctxproxy.errors import BodyTooLarge, UnsupportedEncoding
from ctxproxy.proxy.attempt import Refused, Whole
from ctxproxy.proxy.prepare import Prepared
from ctxproxy.proxy.rescue import Got
from ctxproxy.proxy.streams import Stream, header

DECODED_BYTES = 2**50
"""The tee holds back no more than a line: a stream's length is bounded by nothing."""
OF_OTHER_BYTES = ("Content-Encoding", "Content-MD5", "Content-Digest", "Repr-Digest", "Digest", "ETag")
"""Headers that tell of the bytes as the upstream sent them (RFC 9110 §8.4, §8.8.3; RFC 9530)."""


def size_to_show(prepared: Prepared, got: Got) -> Logical | None:
    """The size that the client is to read in `usage`; None where it reads what the upstream wrote."""
    policy, plan = prepared.caller.policy, got.plan
    wanted = isinstance(policy, Context) and policy.report_usage == "logical"
    return Logical(plan.tokens_in, plan.tokens_sent, prepared.gauge.belief.window) if wanted and plan.tokens_in > plan.tokens_sent else None


def raised_body(got: Whole | Refused, size: Logical | None) -> bytes | None:
    """The body with its `usage` raised, its content coding undone; None where it goes out as it came."""
    if size is None or isinstance(got, Refused):
        return None
    try:
        plain = decode_body(got.body, header(got.response, "Content-Encoding"), MAX_BYTES)
    except (BodyTooLarge, UnsupportedEncoding):
        return None
    shown = raised(plain, size)
    return None if shown is plain else shown


class RaisedStream:
    """The chunks of a stream with the `usage` of its events raised, its content coding undone."""

    def __init__(self, stream: Stream, size: Logical) -> None:
        self._decoder = decoder(header(stream.response, "Content-Encoding"), DECODED_BYTES)
        self._raiser = EventRaiser(size)

    def feed(self, chunk: bytes) -> bytes:
        """What goes to the client; raises UnsupportedEncoding if the chunk does not decode."""
        return self._raiser.feed(self._decoder.feed(chunk))

    def finish(self) -> bytes:
        """What is held back still, whether or not the stream is at its end."""
        return self._raiser.finish()


def raised_stream(stream: Stream, size: Logical | None) -> RaisedStream | None:
    """None where the stream goes out as it came: nothing is to be raised, or its coding cannot be undone."""
    return None if size is None or stream.decoder is None else RaisedStream(stream, size)
