"""Content codings undone piece by piece, within a bound: gzip, deflate, br, zstd, and stacks of them (RFC 9110 §8.4).

Imports brotli and zstd although it is core: both are deterministic functions of bytes, without I/O, as zlib is.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Protocol

import brotli  # type: ignore[import-untyped]

from ctxproxy.errors import BodyTooLarge, UnsupportedEncoding

if sys.version_info >= (3, 14):  # pragma: no cover  (one of the two, by the interpreter)
    from compression import zstd
else:  # pragma: no cover
    from backports import zstd

MAX_BYTES = 64 * 1024 * 1024
"""As `listen.max_body_mb` has it by default."""
MAX_STACKED = 5
"""More codings than this on one body are an attack on whoever undoes them (curl draws its line at 5 too, CVE-2022-32206)."""
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}
"""8 MB, the most that an encoder may ask of an HTTP peer (RFC 9659 §3)."""


class Decoder(Protocol):
    """Undoes one body's codings; raises UnsupportedEncoding if the data is damaged, BodyTooLarge beyond the bound."""

    def feed(self, data: bytes) -> bytes:
        """What can be decoded so far; b"" if nothing yet."""
        ...

    def finish(self) -> bytes:
        """The rest; raises UnsupportedEncoding if the data ends too early (no data at all is an empty body)."""
        ...


class _Codec(Protocol):
    """One run of a coding: a gzip member, a zstd frame, a deflate or brotli stream."""

    @property
    def ended(self) -> bool: ...
    def decode(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        """At most about `most` bytes of output, and the data behind the end of the run; all other data is consumed, unless `most` came out."""
        ...


class _Zlib:
    """A gzip member or a deflate stream; "deflate" is zlib's format, yet some send it bare (RFC 9110 §8.4.1.2)."""

    def __init__(self, *, gzip: bool) -> None:
        self._z = zlib.decompressobj(16 + zlib.MAX_WBITS) if gzip else None
        self._head = b""

    @property
    def ended(self) -> bool:
        return self._z is not None and self._z.eof

    def decode(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        if self._z is None:
            data = self._head = self._head + data
            if len(data) < 2:
                return b"", b""
            self._z = zlib.decompressobj(zlib.MAX_WBITS if _has_zlib_header(data) else -zlib.MAX_WBITS)
        out = self._z.decompress(data, most)
        return out, self._z.unused_data


class _Brotli:
    def __init__(self) -> None:
        self._b = brotli.Decompressor()

    @property
    def ended(self) -> bool:
        return bool(self._b.is_finished())

    def decode(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        return bytes(self._b.process(data, output_buffer_limit=most)), b""


class _Zstd:
    def __init__(self) -> None:
        self._z = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)

    @property
    def ended(self) -> bool:
        return self._z.eof

    def decode(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        return self._z.decompress(data, most), self._z.unused_data


class _Runs:
    """The runs of one coding: gzip members (RFC 1952 §2.2) and zstd frames (RFC 8878 §3.1) may follow each other, others stand alone."""

    def __init__(self, coding: str, max_bytes: int) -> None:
        self._coding = coding
        self._start = _STARTS[coding]
        self._max_bytes = max_bytes
        self._decoded_bytes = 0
        self._run: _Codec | None = None

    def feed(self, data: bytes) -> bytes:
        pieces = []
        while data:
            if self._run is None or self._run.ended:
                data = data.lstrip(b"\0") if self._run else data  # some writers pad the end with zeros
                if not data:
                    break
                self._run = self._next_run()
            piece, data = self._decode(self._run, data)
            pieces.append(piece)
        return b"".join(pieces)

    def finish(self) -> bytes:
        if self._run and not self._run.ended:
            raise UnsupportedEncoding(f"the {self._coding} data ends too early", param="Content-Encoding")
        return b""

    def _next_run(self) -> _Codec:
        if self._run and self._coding not in _REPEATED:
            raise UnsupportedEncoding(f"there is data behind the end of the {self._coding} stream", param="Content-Encoding")
        return self._start()

    def _decode(self, run: _Codec, data: bytes) -> tuple[bytes, bytes]:
        try:
            piece, rest = run.decode(data, self._max_bytes - self._decoded_bytes + 1)
        except (zlib.error, brotli.error, zstd.ZstdError) as error:
            raise UnsupportedEncoding(f"the data is not valid {self._coding}: {error}", param="Content-Encoding") from None
        self._decoded_bytes += len(piece)
        if self._decoded_bytes > self._max_bytes:
            raise BodyTooLarge(f"the body is larger than {self._max_bytes} bytes once {self._coding} is undone")
        return piece, rest


class _Stack:
    """Codings undone one after the other, the one applied last first; none: the data passes as it is."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def feed(self, data: bytes) -> bytes:
        for one in self._decoders:
            data = one.feed(data)
        return data

    def finish(self) -> bytes:
        data = b""
        for one in self._decoders:
            data = one.feed(data) + one.finish()
        return data


_STARTS: dict[str, Callable[[], _Codec]] = {
    "gzip": lambda: _Zlib(gzip=True),
    "x-gzip": lambda: _Zlib(gzip=True),
    "deflate": lambda: _Zlib(gzip=False),
    "br": _Brotli,
    "zstd": _Zstd,
}
_REPEATED = frozenset({"gzip", "x-gzip", "zstd"})
SUPPORTED = tuple(_STARTS)


def codings(header: str) -> list[str]:
    """The codings that a Content-Encoding names, in the order of their application, lower case; `identity` and blanks are none."""
    names = (name.strip(" \t").lower() for name in header.split(","))
    return [name for name in names if name not in ("", "identity")]


def decoder(coding: str, max_bytes: int = MAX_BYTES) -> Decoder:
    """A decoder for the value of a Content-Encoding; raises UnsupportedEncoding, naming the coding and what is supported.

    `max_bytes` bounds what all `feed` calls together may give.
    """
    named = codings(coding)
    if len(named) > MAX_STACKED:
        raise UnsupportedEncoding(f"{len(named)} content codings on one body; at most {MAX_STACKED} are undone", param="Content-Encoding")
    unknown = [name for name in named if name not in _STARTS]
    if unknown:
        raise UnsupportedEncoding(f"content coding {unknown[0]!a} is not supported; supported are {', '.join(SUPPORTED)}", param="Content-Encoding")
    return _Stack([_Runs(name, max_bytes) for name in reversed(named)])


def decode_body(body: bytes, header: str, max_bytes: int) -> bytes:
    """A whole body with its codings undone; raises UnsupportedEncoding (unknown, damaged, cut off) or BodyTooLarge (over `max_bytes`)."""
    if not header:
        return body
    undo = decoder(header, max_bytes)
    return undo.feed(body) + undo.finish()


def _has_zlib_header(data: bytes) -> bool:
    """RFC 1950 §2.2: method 8 in the low half, and the two bytes are a multiple of 31."""
    return data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
