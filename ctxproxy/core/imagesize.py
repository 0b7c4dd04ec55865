"""Width and height of an image from the first bytes of its file: PNG, JPEG, GIF, WebP, BMP."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MAX_EDGE_PX = 65_535
"""JPEG's and WebP's own bound is below; a larger number in another format is damage, not a picture that a model takes."""
JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The SOF markers (ITU-T T.81, table B.1): a frame header follows; DHT, JPG and DAC lie between them."""
JPEG_LONE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})
"""TEM, RSTn and SOI have no length."""


class Size(NamedTuple):
    """In pixels, both at least 1."""

    width: int
    height: int


def image_size(head: bytes) -> Size | None:
    """The size told by the head of a file; None if the format is another, or the head too short or damaged."""
    for magic, read in READERS:
        if head.startswith(magic):
            size = read(head)
            return size if size and 1 <= size.width <= MAX_EDGE_PX and 1 <= size.height <= MAX_EDGE_PX else None
    return None


def _png(head: bytes) -> Size | None:
    return Size(int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big"))


def _gif(head: bytes) -> Size | None:
    return Size(int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little"))


def _bmp(head: bytes) -> Size | None:
    if int.from_bytes(head[14:18], "little") == 12:  # the header of OS/2 has 16-bit sizes
        return Size(int.from_bytes(head[18:20], "little"), int.from_bytes(head[20:22], "little"))
    return Size(int.from_bytes(head[18:22], "little", signed=True), abs(int.from_bytes(head[22:26], "little", signed=True)))


def _webp(head: bytes) -> Size | None:
    """RFC 9649: lossy (`VP8 `), lossless (`VP8L`) and extended (`VP8X`) files."""
    kind = head[8:16]
    if kind == b"WEBPVP8 ":
        return Size(int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF)
    if kind == b"WEBPVP8L":
        bits = int.from_bytes(head[21:25], "little")
        return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1) if len(head) >= 25 else None
    if kind == b"WEBPVP8X":
        return Size(int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1) if len(head) >= 30 else None
    return None


def _jpeg(head: bytes) -> Size | None:
    """Walks from segment to segment up to the frame header."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker in JPEG_FRAMES:
            return Size(int.from_bytes(head[at + 7 : at + 9], "big"), int.from_bytes(head[at + 5 : at + 7], "big"))
        if marker == 0xFF:  # fill bytes may stand before any marker
            at += 1
        elif marker in JPEG_LONE_MARKERS:
            at += 2
        else:
            at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None


READERS: tuple[tuple[bytes, Callable[[bytes], Size | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8", _jpeg),
    (b"GIF8", _gif),
    (b"RIFF", _webp),
    (b"BM", _bmp),
)
"""By the bytes that a file begins with."""
