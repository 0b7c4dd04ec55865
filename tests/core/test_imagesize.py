from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.imagesize import MAX_EDGE_PX, READERS, Size, image_size

APP1 = b"\xff\xe1" + struct.pack(">H", 2 + 30_000) + bytes(30_000)
DHT = b"\xff\xc4" + struct.pack(">H", 2 + 20) + bytes(20)
SOF0 = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, 480, 640, 3)
SOF2 = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, 480, 640, 3)


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 6, 0, 0, 0)


def bmp(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<Iii", 40, width, height) + bytes(28)


def webp(chunk: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 4 + 8 + len(body)) + b"WEBP" + chunk + struct.pack("<I", len(body)) + body


HEADS = [
    ("png", png(640, 480)),
    ("gif 87a", b"GIF87a" + struct.pack("<HH", 640, 480) + bytes(3)),
    ("gif 89a", b"GIF89a" + struct.pack("<HH", 640, 480) + bytes(3)),
    ("bmp", bmp(640, 480)),
    ("bmp, rows from the top", bmp(640, -480)),
    ("bmp of OS/2", b"BM" + bytes(12) + struct.pack("<IHH", 12, 640, 480)),
    ("jpeg", b"\xff\xd8" + SOF0),
    ("progressive jpeg with EXIF and tables first", b"\xff\xd8" + APP1 + DHT + SOF2),
    ("jpeg with fill bytes and a lone marker", b"\xff\xd8\xff\xff\xff\x01" + DHT + b"\xff" + SOF0),
    ("webp lossy", webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 640 | 0x4000, 480))),
    ("webp lossless", webp(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14))),
    ("webp extended", webp(b"VP8X", bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"))),
]


@pytest.mark.parametrize(("kind", "head"), HEADS)
def test_the_size_stands_in_the_head(kind, head):
    assert image_size(head) == Size(640, 480), kind


@pytest.mark.parametrize(("kind", "head"), HEADS)
def test_a_head_cut_anywhere_gives_the_size_or_none_and_never_another(kind, head):
    cuts = range(len(head)) if len(head) < 200 else (*range(40), *range(len(head) - 40, len(head)))
    for end in cuts:
        size = image_size(head[:end])
        assert size is None or size == Size(640, 480) or size.width < 640 or size.height < 480, (kind, end, size)


UNKNOWN = [
    b"",
    b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    b"RIFF\x00\x00\x00\x00WAVEfmt ",
    webp(b"ALPH", bytes(20)),
    png(0, 480),
    png(640, MAX_EDGE_PX + 1),
    bmp(-640, 480),
    b"\xff\xd8" + APP1,
    b"\xff\xd8\x00\x00" + SOF0,
    webp(b"VP8L", b"\x2f"),
    webp(b"VP8X", bytes(4)),
]


@pytest.mark.parametrize("head", UNKNOWN)
def test_what_is_no_picture_of_a_known_kind_has_no_size(head):
    assert image_size(head) is None


def test_a_real_png_of_one_pixel_is_read():
    one = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
    assert image_size(one) == Size(1, 1)


@given(st.sampled_from([magic for magic, _ in READERS]), st.binary(max_size=64))
def test_any_bytes_give_a_sane_size_or_none(magic, rest):
    size = image_size(magic + rest)
    assert size is None or (1 <= size.width <= MAX_EDGE_PX and 1 <= size.height <= MAX_EDGE_PX)
