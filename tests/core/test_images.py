from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.images import FAMILIES, MEDIA_TYPES, PAGE_TOKENS, UNKNOWN, VIDEO_TOKENS, Size, Vision, image_tokens, media_tokens, vision_for
from tests.core.test_imagesize import APP1, SOF2, png

GPT_4O = vision_for("gpt-4o")


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def url(raw: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{b64(raw)}"


def wav(seconds: float, bytes_per_s: int) -> bytes:
    size = int(seconds * bytes_per_s)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 1, 1, bytes_per_s // 2, bytes_per_s, 2, 16, b"data", size)
    return head + bytes(size)


PUBLISHED = [
    # OpenAI's guide: its own examples
    ("gpt-4o", 1024, 1024, 765),
    ("gpt-4o", 2048, 4096, 1105),
    ("gpt-4o", 4096, 8192, 1105),
    ("gpt-4.1-mini", 1024, 1024, 1659),  # 1024 patches * 1.62
    ("gpt-4o", 512, 512, 255),
    ("gpt-4o", 1, 1, 255),
    ("gpt-4o", 910, 910, 765),
    ("gpt-4o", 2048, 512, 765),
    ("gpt-4o-mini", 1024, 1024, 25_501),
    ("gpt-4.1", 1024, 1024, 765),
    ("gpt-4.1-nano", 1024, 1024, 2_520),
    ("o4-mini", 1024, 1024, 1_762),
    ("o4-mini", 8000, 8000, 2_642),  # 1536 patches at most
    ("o3", 1024, 1024, 675),
    ("o1", 512, 512, 225),
    ("gpt-5", 1024, 1024, 630),
    ("gpt-5-mini", 1024, 1024, 1_659),
    ("gpt-5-nano", 1024, 1024, 2_520),
    ("gpt-5.2", 1024, 1024, 1_229),
    # Anthropic's table: about 54, 1334, 1600 at most
    ("claude-sonnet-4-5", 200, 200, 54),
    ("anthropic/claude-opus-4", 1000, 1000, 1_334),
    ("claude-3-haiku", 4000, 4000, 1_600),
    # Google's: 258 up to 384 px, else per 768-px crop
    ("gemini-2.5-flash", 384, 384, 258),
    ("google/gemini-2.0-flash", 1024, 1024, 1_032),
    ("gemini-3-pro", 100, 100, 1_120),
    ("qwen2.5-vl-7b", 1024, 1024, 1_371),  # 37 * 37 patches and two marks
    ("Qwen/Qwen3-VL-8B", 1024, 1024, 1_026),
    ("test-model", 1, 1, 765),
    ("test-model", 2048, 4096, 1105),
]


@pytest.mark.parametrize(("model", "width", "height", "tokens"), PUBLISHED)
def test_an_image_costs_what_its_provider_says(model, width, height, tokens):
    assert image_tokens(Size(width, height), vision_for(model)) == tokens


@pytest.mark.parametrize(("model", "tokens"), [("gpt-4o", 85), ("gpt-4o-mini", 2_833), ("gpt-5", 70), ("test-model", 85), ("gpt-4.1-mini", 1_659)])
def test_low_detail_costs_the_base_where_tiles_are_counted(model, tokens):
    part = {"type": "image_url", "image_url": {"url": url(png(1024, 1024)), "detail": "low"}}
    assert media_tokens(part, vision_for(model)) == tokens


IMAGE_PARTS = [
    {"type": "image_url", "image_url": {"url": url(png(512, 512))}},
    {"type": "image_url", "image_url": {"url": url(png(512, 512)), "detail": "auto"}},
    {"type": "image_url", "image_url": url(png(512, 512))},
    {"type": "input_image", "image_url": url(png(512, 512)), "detail": "high"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64(png(512, 512))}},
    {"type": "image", "image": url(png(512, 512))},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,\n" + b64(png(512, 512))}},
]


@pytest.mark.parametrize("part", IMAGE_PARTS)
def test_the_size_is_read_from_the_data_url_in_whatever_shape(part):
    assert media_tokens(part, GPT_4O) == 255


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}},
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64," + b64(b"<svg/>")}},
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "image_url", "image_url": None},
        {"type": "image_url"},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,éééé"}},
        {"type": "image_url", "image_url": 7},
    ],
)
def test_an_image_of_unknown_size_counts_as_1024_pixels(part):
    assert media_tokens(part, GPT_4O) == 765


def test_a_jpegs_size_is_found_behind_long_segments():
    photo = b"\xff\xd8" + APP1 * 3 + SOF2 + bytes(500_000)
    assert media_tokens({"type": "image_url", "image_url": {"url": url(photo, "image/jpeg")}}, GPT_4O) == 85 + 170 * 2


def test_a_jpeg_without_its_size_counts_as_1024_pixels():
    assert media_tokens({"type": "image_url", "image_url": {"url": url(b"\xff\xd8" + APP1, "image/jpeg")}}, GPT_4O) == 765


def test_an_image_is_never_counted_by_its_length():
    part = {"type": "image_url", "image_url": {"url": url(png(800, 600) + bytes(4_000_000))}}
    assert media_tokens(part) == 765


AUDIO = [
    # part, tokens of gpt-4o-audio (10 a second), tokens of Gemini (32 a second)
    ({"data": b64(wav(60, 32_000)), "format": "wav"}, 600, 1_920),
    ({"data": b64(wav(60, 8_000)), "format": "wav"}, 600, 1_920),
    ({"data": b64(b"\xff\xfb\x90" + bytes(479_997)), "format": "mp3"}, 600, 1_920),
    ({"data": b64(wav(60, 999)), "format": "wav"}, 75, 240),  # a damaged header: taken for a compressed file
    ({"url": "https://example.com/a.wav"}, 300, 960),
    ({}, 300, 960),
]


@pytest.mark.parametrize(("audio", "openai", "gemini"), AUDIO)
def test_audio_is_counted_by_its_seconds(audio, openai, gemini):
    part = {"type": "input_audio", "input_audio": audio}
    assert media_tokens(part, vision_for("gpt-4o-audio-preview")) == pytest.approx(openai, rel=0.01)
    assert media_tokens(part, vision_for("gemini-2.5-pro")) == pytest.approx(gemini, rel=0.01)


def pdf(body: bytes) -> dict[str, object]:
    return {"type": "file", "file": {"filename": "a.pdf", "file_data": url(b"%PDF-1.7\n" + body, "application/pdf")}}


TREE = b"1 0 obj << /Type /Pages /Kids [2 0 R] /Count 3 >> endobj " + b"2 0 obj << /Type /Page >> endobj " * 3
FILES = [
    (pdf(TREE), 3, "page objects"),
    (pdf(TREE + bytes(3_000_000)), 3, "page objects among large pictures"),
    (pdf(b"<< /Type/Pages /Kids [] /Count 40 >>"), 40, "the page tree's count, the pages being packed"),
    (pdf(b"<< /Count 12 /Kids [] /Type /Pages >>"), 12, "the same in another order"),
    (pdf(b"<< /Type /Outlines /Count 99 >> << /Type /Page >>"), 1, "the count of bookmarks is no count of pages"),
    (pdf(bytes(500_000)), 11, "packed: one page for 50 kB begun"),
    (pdf(b""), 1, "a page at least"),
    ({"type": "file", "file": {"file_id": "file-1"}}, 1, "only an id"),
    ({"type": "file", "file": {"file_data": url(b"PK\x03\x04" + bytes(120_000), "application/zip")}}, 3, "no PDF"),
    ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": b64(b"%PDF-1.4" + TREE)}}, 3, "Anthropic's shape"),
    ({"type": "input_file", "file_data": url(b"%PDF-1.4" + TREE, "application/pdf")}, 3, "the flat shape"),
    ({"type": "file", "file": "nonsense"}, 1, "no object"),
]


@pytest.mark.parametrize(("part", "pages", "why"), FILES)
def test_a_file_is_counted_by_its_pages(part, pages, why):
    assert media_tokens(part) == pages * PAGE_TOKENS, why


def test_the_pdf_of_case_034_stays_far_below_its_base64_length():
    part = {"type": "file", "file": {"filename": "contract.pdf", "file_data": "data:application/pdf;base64," + "JVBERi0xLjQK" * 3000}}
    assert media_tokens(part) == PAGE_TOKENS


@pytest.mark.parametrize("kind", ["text/csv", "application/json"])
def test_a_text_file_is_counted_by_its_bytes(kind):
    part = {"type": "file", "file": {"file_data": url(b"x" * 30_000, kind)}}
    assert media_tokens(part, GPT_4O) == 10_000


def test_an_empty_text_file_of_an_unknown_model_has_the_floor():
    assert media_tokens({"type": "file", "file": {"file_data": url(b"x", "text/plain")}}) == UNKNOWN.floor


def test_video_has_a_fixed_estimate():
    assert media_tokens({"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}}) == VIDEO_TOKENS


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=20)),
    lambda inner: st.dictionaries(st.sampled_from(["url", "data", "file_data", "image_url", "source", "detail", "media_type"]), inner, max_size=4),
)


@given(st.sampled_from(sorted(MEDIA_TYPES)), JSON, JSON)
def test_any_part_has_some_tokens_and_none_raises(kind, inner, source):
    for vision in (UNKNOWN, GPT_4O, vision_for("claude-3")):
        assert media_tokens({"type": kind, kind: inner, "source": source}, vision) > 0


@given(st.integers(1, 65_535), st.integers(1, 65_535), st.sampled_from([vision for _, vision in FAMILIES] + [UNKNOWN, Vision("area", unit=1 / 750)]))
def test_no_picture_is_free_and_none_costs_a_window(width, height, vision):
    assert 0 < image_tokens(Size(width, height), vision) < 500_000
