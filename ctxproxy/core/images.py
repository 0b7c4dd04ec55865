"""What images, audio and files cost in tokens, by the providers' published formulas: never by the length of their base64.

Only the first bytes of a data URL are decoded, for width and height. Where size or provider are not known a stated default is taken.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from ctxproxy.core.imagesize import Size, image_size

Formula: TypeAlias = Literal["tiles", "patches", "area", "crops", "flat"]

UNKNOWN_SIZE = Size(1024, 1024)
"""Taken for images behind a link: 765 tokens in OpenAI's tiles, what most counters assume."""
HEAD_CHARS = 6_144
JPEG_HEAD_CHARS = 393_216
"""How much base64 is decoded to find the size: JPEG may have EXIF and colour profile segments of 64 kB each before it."""


@dataclass(frozen=True, slots=True)
class Vision:
    """How a model family counts images, and what a second of audio costs it."""

    formula: Formula
    base: int = 0
    """Tokens of an image beside its tiles; what `detail: low` costs."""
    unit: float = 1.0
    """Tokens per tile, patch or crop."""
    unit_px: int = 32
    """The edge of a patch."""
    max_units: int = 1_536
    floor: int = 0
    """No medium is counted for less (but images with `detail: low`)."""
    audio_per_s: int = 10
    """OpenAI: one token per 100 ms of a user's audio (Realtime guide, managing costs); Gemini: 32 a second; Qwen2-Audio: 25."""


UNKNOWN = Vision("tiles", 85, 170, floor=765, audio_per_s=32)
"""Models that are not known: OpenAI's commonest formula, yet not below a 1024-px image's cost, since many models scale small images up."""

FAMILIES: tuple[tuple[re.Pattern[str], Vision], ...] = tuple(
    (re.compile(pattern), vision)
    for pattern, vision in (
        # OpenAI, guide "Images and vision", section "Calculating costs": patches of 32 px times a factor, else tiles of 512 px
        (r"gpt-5(\.\d)?-mini|gpt-4\.1-mini", Vision("patches", unit=1.62)),
        (r"gpt-5(\.\d)?-nano|gpt-4\.1-nano", Vision("patches", unit=2.46)),
        (r"o4-mini", Vision("patches", unit=1.72)),
        (r"gpt-5\.[1-9]", Vision("patches", unit=1.2)),  # as users measured gpt-5.2 (community.openai.com 1372291)
        (r"gpt-5", Vision("tiles", 70, 140)),
        (r"gpt-4o-mini", Vision("tiles", 2_833, 5_667)),
        (r"o[13](?![a-z0-9])", Vision("tiles", 75, 150)),
        (r"computer-use", Vision("tiles", 65, 129)),
        (r"(chatgpt-4o|gpt-4)", Vision("tiles", 85, 170)),
        # Anthropic, "Vision": width * height / 750, scaled down to about 1.15 megapixels (1,600 tokens)
        (r"claude", Vision("area", unit=1 / 750, max_units=1_600)),
        # Google, "Understand and count tokens": 258 a crop of 768 px; Gemini 3: 1,120 at its default resolution
        (r"gemini-[3-9]", Vision("flat", 1_120, audio_per_s=32)),
        (r"gemini|gemma", Vision("crops", unit=258, audio_per_s=32)),
        # Qwen's model cards: one token per patch of 28 px (Qwen3-VL: 32 px), 16,384 at most, two marks
        (r"qwen-?3", Vision("patches", 2, unit_px=32, max_units=16_384, audio_per_s=25)),
        (r"qwen|qvq|qwq", Vision("patches", 2, unit_px=28, max_units=16_384, audio_per_s=25)),
    )
)
"""By the beginning of the model's name, the first that fits."""

IMAGE_TYPES = frozenset({"image_url", "input_image", "image"})
AUDIO_TYPES = frozenset({"input_audio", "audio", "audio_url"})
FILE_TYPES = frozenset({"file", "input_file", "document"})
VIDEO_TYPES = frozenset({"video_url", "video", "input_video"})
MEDIA_TYPES = IMAGE_TYPES | AUDIO_TYPES | FILE_TYPES | VIDEO_TYPES

DEFAULT_AUDIO_S = 30
"""Audio that is behind a link."""
COMPRESSED_BYTES_PER_S = 8_000
"""64 kbit/s, a common rate of spoken MP3, AAC and Opus files."""
LOWEST_BYTES_PER_S = 1_000
"""A WAV header that tells less is damaged: 8 kbit/s is the lowest rate of any telephone codec."""
PAGE_TOKENS = 2_000
"""A PDF page is sent as its text and a picture; Anthropic ("PDF support") states 1,500 to 3,000 tokens of text a page, OpenAI's picture adds up to
1,105 to pages that have mostly less text."""
PAGE_BYTES = 50_000
"""Of a PDF whose pages cannot be counted because their objects are packed: between a page of text (some kB) and a scanned one (100 kB and more)."""
PDF_CHARS = 48_000_000
"""How much base64 of a PDF is searched for its pages: OpenAI takes files of 32 MB."""
PDF_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
PDF_COUNT = re.compile(rb"/Type\s*/Pages\b[^>]{0,400}?/Count\s+(\d{1,5})\b|/Count\s+(\d{1,5})\b[^>]{0,400}?/Type\s*/Pages\b")
"""ISO 32000-1, 7.7.3: page objects, and the page tree's number of leaves."""
TEXT_BYTES_PER_TOKEN = 3
VIDEO_TOKENS = 8_000
"""Half a minute at 258 tokens a second, Google's figure for video; no request tells the length."""


@lru_cache(maxsize=1024)
def vision_for(model: str) -> Vision:
    """How a model counts media, by its name, also as `vendor/model` or `ft:model:…`."""
    name = model.lower().rpartition("/")[2].removeprefix("ft:")
    return next((vision for names, vision in FAMILIES if names.match(name)), UNKNOWN)


def media_tokens(part: Mapping[str, Any], vision: Vision = UNKNOWN) -> int:
    """The tokens of a content part whose `type` is one of MEDIA_TYPES; never raises, whatever the part holds."""
    kind = part.get("type")
    if kind in IMAGE_TYPES:
        return _image_part(part, vision)
    if kind in AUDIO_TYPES:
        return max(vision.floor, math.ceil(_audio_s(part) * vision.audio_per_s))
    if kind in FILE_TYPES:
        return max(vision.floor, _file_tokens(part))
    return VIDEO_TOKENS


def image_tokens(size: Size, vision: Vision, *, low_detail: bool = False) -> int:
    """The tokens of an image of this many pixels."""
    if low_detail and vision.formula == "tiles":
        return vision.base
    count = {"tiles": _tiles, "patches": _patches, "area": _area, "crops": _crops, "flat": _flat}[vision.formula]
    return max(vision.floor, math.ceil(vision.base + vision.unit * count(size, vision)))


def _tiles(size: Size, vision: Vision) -> int:
    """Fitted into 2048 px, then the short edge to 768 px (never enlarged), covered with 512-px tiles."""
    scale = min(1.0, 2048 / max(size))
    scale = min(scale, 768 / min(size))
    return _cover(size, scale, 512)


def _patches(size: Size, vision: Vision) -> int:
    return min(vision.max_units, _cover(size, 1.0, vision.unit_px))


def _area(size: Size, vision: Vision) -> float:
    return min(size.width * size.height, vision.max_units / vision.unit)


def _crops(size: Size, vision: Vision) -> int:
    return 1 if max(size) <= 384 else min(_cover(size, 1.0, 768), vision.max_units)


def _flat(size: Size, vision: Vision) -> int:
    return 0


def _cover(size: Size, scale: float, edge: int) -> int:
    return math.ceil(round(size.width * scale, 3) / edge) * math.ceil(round(size.height * scale, 3) / edge)


def _image_part(part: Mapping[str, Any], vision: Vision) -> int:
    holder = part.get("image_url")
    detail = holder.get("detail") if isinstance(holder, dict) else part.get("detail")
    return image_tokens(_size_of(_payload(part)), vision, low_detail=detail == "low")


def _size_of(payload: str) -> Size:
    size = image_size(_decoded(payload, HEAD_CHARS))
    if size is None and payload.startswith("/9j/"):  # FF D8 FF: a JPEG with its size further in
        size = image_size(_decoded(payload, JPEG_HEAD_CHARS))
    return size or UNKNOWN_SIZE


def _audio_s(part: Mapping[str, Any]) -> float:
    payload = _payload(part)
    if not payload:
        return DEFAULT_AUDIO_S
    size_bytes = len(payload) * 3 / 4
    head = _decoded(payload, HEAD_CHARS)
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        bytes_per_s = int.from_bytes(head[28:32], "little")  # in the fmt chunk, which by the format comes first
        return size_bytes / (bytes_per_s if bytes_per_s >= LOWEST_BYTES_PER_S else COMPRESSED_BYTES_PER_S)
    return size_bytes / COMPRESSED_BYTES_PER_S


def _file_tokens(part: Mapping[str, Any]) -> int:
    payload = _payload(part)
    size_bytes = len(payload) * 3 // 4
    if _media_type(part).startswith("text/") or _media_type(part) == "application/json":
        return size_bytes // TEXT_BYTES_PER_TOKEN
    return PAGE_TOKENS * (_pdf_pages(payload) or max(1, math.ceil(size_bytes / PAGE_BYTES)))


def _pdf_pages(payload: str) -> int:
    """Pages of a PDF whose page objects, or the count in its page tree, stand open in the file; 0 if none does."""
    if not payload.startswith("JVBERi"):  # %PDF-
        return 0
    document = _decoded(payload, PDF_CHARS)
    counts = [int(first or second) for first, second in PDF_COUNT.findall(document)]
    return max(len(PDF_PAGE.findall(document)), *counts, 0)


def _source(part: Mapping[str, Any]) -> Any:
    """The value that holds the data: under the part's own type in OpenAI's parts, under `source` in Anthropic's."""
    kind = str(part.get("type"))
    return part.get(kind) or part.get("source") or part.get("image_url") or part


def _payload(part: Mapping[str, Any]) -> str:
    """The base64 text of a part; "" if there is only a link or an id."""
    source = _source(part)
    values = [source.get(key) for key in ("url", "data", "file_data")] if isinstance(source, dict) else [source]
    text = next((value for value in values if isinstance(value, str) and value), "")
    if text.startswith("data:"):
        return text.partition(",")[2]
    return "" if "://" in text[:32] else text


def _media_type(part: Mapping[str, Any]) -> str:
    source = _source(part)
    if not isinstance(source, dict):
        return ""
    text = source.get("file_data") or source.get("url")
    if isinstance(text, str) and text.startswith("data:"):
        return text[5:105].partition(",")[0].partition(";")[0]
    return str(source.get("media_type") or "")


def _decoded(payload: str, chars: int) -> bytes:
    """The bytes of the first so many characters of a base64 text; b"" if it is none."""
    head = "".join(payload[:chars].split())
    try:
        return binascii.a2b_base64(head[: len(head) // 4 * 4])
    except ValueError:
        return b""
