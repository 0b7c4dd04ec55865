"""The faster counter counts what tiktoken counts: on all shared material, on every character, on hostile texts."""

from __future__ import annotations

import json
import random
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.tokenizers import BytePairTokenizer, library, open_tokenizer
from ctxproxy.tokenizers import open as opening
from ctxproxy.tokenizers.fast import LIBRARY, FastTokenizer, faster, may_differ
from tests.extras import needs
from tests.shared_dir import shared
from tests.test_tokenizers import NAMES, TEXTS, long_texts

HALVES = ["\ud83d", "a\udfffb", "\ude00\ud83d"]


@pytest.fixture(scope="module", params=NAMES)
def both(request: pytest.FixtureRequest) -> tuple[FastTokenizer, BytePairTokenizer]:
    """The faster one and tiktoken's."""
    needs("fast", LIBRARY)
    reference = opening.load_reference(request.param)
    fast = faster(reference)
    assert isinstance(fast, FastTokenizer)
    return fast, reference


def strings_of(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            yield from strings_of(list(value.values()))
        case list():
            for inner in value:
                yield from strings_of(inner)


def corpus(folder: str) -> Iterator[str]:
    """Each file of a shared folder as it is and, of those in JSON, each string in them."""
    for file in sorted(path for path in shared(folder).rglob("*") if path.suffix in (".json", ".jsonl", ".md", ".py", ".txt", ".c", ".sh", ".csv")):
        text = file.read_text(encoding="utf-8")
        yield text
        for line in text.splitlines() if file.suffix == ".jsonl" else [text] if file.suffix == ".json" else []:
            yield from strings_of(json.loads(line))


@pytest.mark.parametrize("folder", ["captures", "quality/data", "acceptance", "perf", "spec"])
def test_all_shared_material_counts_alike(both, folder):
    fast, reference = both
    texts = set(corpus(folder))
    assert texts
    assert [text[:80] for text in texts if fast.count(text) != reference.count(text)] == []


def in_every_place(char: str) -> str:
    """A text in which the character stands after and before letters, digits, blanks, punctuation, line breaks and itself."""
    return f"x{char}\n {char}a.{char}1{char}A{char}'s B'{char}l  {char}{char}!{char}\r\n\t{char} {char}"


def test_every_character_that_is_counted_faster_counts_alike_in_every_place(both):
    fast, reference = both
    chars = [char for char in map(chr, range(sys.maxunicode + 1)) if not may_differ(char)]
    assert len(chars) > 50_000
    assert [hex(ord(char)) for char in chars if fast.count(in_every_place(char)) != reference.count(in_every_place(char))] == []


UNICODE_17 = [
    *("088F", "0C5C", "0CDC", "1ACF-1ADD", "1AE0-1AEB", "A7CE-A7CF", "A7D2", "A7D4", "A7F1", "10940-10959", "10EC5-10EC7", "10EFA-10EFB"),
    *("11B60-11B67", "11DB0-11DDB", "11DE0-11DE9", "16EA0-16EB8", "16EBB-16ED3", "16FF2-16FF6", "187F8-187FF", "18D09-18D1E", "18D80-18DF2"),
    *("1E6C0-1E6DE", "1E6E0-1E6F5", "1E6FE-1E6FF", "2B73A-2B73F", "2CEA2-2CEAD", "323B0-33479"),
]
"""The letters, digits and marks that tiktoken 0.14 knows and toktok 0.3 does not: found by counting each code point in twenty places."""


def spans(rows: list[str]) -> Iterator[str]:
    for row in rows:
        first, _, last = row.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


def test_characters_of_recent_versions_of_unicode_go_to_tiktoken(both):
    fast, reference = both
    chars = list(spans(UNICODE_17))
    assert [char for char in chars if not may_differ(char)] == []
    assert [char for char in chars if fast.count(in_every_place(char)) != reference.count(in_every_place(char))] == []


def test_a_character_that_no_version_of_unicode_has_goes_to_tiktoken_unless_it_can_only_be_a_sign():
    free = [char for char in map(chr, range(0x80, 0x10000)) if unicodedata.category(char) == "Cn"]
    assert {ord(char) >> 8 for char in free if not may_differ(char)} <= set(range(0x20, 0x2C))


@pytest.mark.parametrize(
    "text", ["", "plain", "naïve — “quoted”", "你好，世界", "заметка", "✅ done ⭐", "👩🏽\u200d🚀 🇩🇪", "ﷺ", "e\u0301", "\ufffd"]
)
def test_ordinary_texts_are_counted_faster(text):
    assert not may_differ(text)


@pytest.mark.parametrize("text", ["𝕏", "𓀀", "𠀋", "\u0c5c\n", "abc" * 1000 + "\U00018d11", *HALVES])
def test_texts_that_may_differ_are_told(text):
    assert may_differ(text)


@given(TEXTS)
def test_texts_count_alike(both, text):
    fast, reference = both
    assert fast.count(text) == reference.count(text)


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "M", "P", "S", "Z", "Cc", "Cf"], max_codepoint=0xFFFF), max_size=40))
@settings(max_examples=300)
def test_characters_of_the_first_plane_in_any_order_count_alike(both, text):
    fast, reference = both
    assert fast.count(text) == reference.count(text)


def test_random_texts_of_all_planes_count_alike(both):
    fast, reference = both
    rng = random.Random(17)
    pieces = ["\n", "\r\n", ".", "!", " ", "  ", "a", "B", "1", "'s", "/", "\t", "中", "é", "✅", *spans(UNICODE_17[:9]), *HALVES]
    for _ in range(10_000):
        text = "".join(rng.choice(pieces) if rng.random() < 0.7 else chr(rng.randrange(sys.maxunicode + 1)) for _ in range(rng.randint(1, 12)))
        assert fast.count(text) == reference.count(text), ascii(text)


@pytest.mark.parametrize("text", ["<|endoftext|>", "a<|im_start|>system<|im_sep|>", "<|start|>assistant<|channel|>", "<|fim_prefix|>x"])
def test_special_tokens_count_as_text_alike(both, text):
    fast, reference = both
    assert fast.count(text) == reference.count(text) > 2


@pytest.mark.parametrize("kind", sorted(long_texts()))
@pytest.mark.parametrize("chars", [100_000, 300_000])
def test_huge_texts_count_alike(both, kind, chars):
    fast, reference = both
    text = long_texts()[kind][:chars]
    assert fast.count(text) == reference.count(text)


# --- where the library is not there, or is not what we know ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference() -> BytePairTokenizer:
    return opening.load_reference("cl100k_base")


def test_without_the_library_tiktoken_counts(monkeypatch, reference):
    monkeypatch.setitem(sys.modules, LIBRARY, None)
    assert faster(reference) is reference


def alike(reference: BytePairTokenizer, **replaced: Any) -> SimpleNamespace:
    """A library that counts as the reference does."""
    return SimpleNamespace(**{"truncate": lambda text, _most, _encoding: (text, reference.count(text)), "__version__": "9.9", **replaced})


def refuses(*_args: object) -> None:
    raise KeyError("cl100k_base")


@pytest.mark.parametrize("replaced", [{"truncate": lambda *_: ("", 7)}, {"truncate": None}, {"truncate": lambda _text: 1}, {"truncate": refuses}])
def test_a_library_that_has_become_another_is_not_used(monkeypatch, reference, replaced):
    monkeypatch.setitem(sys.modules, LIBRARY, alike(reference, **replaced))
    assert faster(reference) is reference


def test_what_may_differ_is_never_given_to_the_library(monkeypatch, reference):
    given_to_it = []

    def truncate(text: str, _most: int, _encoding: str) -> tuple[str, int]:
        given_to_it.append(text)
        return text, reference.count(text)

    monkeypatch.setitem(sys.modules, LIBRARY, alike(reference, truncate=truncate))
    fast = faster(reference)
    given_to_it.clear()
    for text in ("one", "𝕏 two", "three ✅", "\ud83d four"):
        assert fast.count(text) == reference.count(text)
    assert given_to_it == ["one", "three ✅"]
    assert fast.library == "toktok 9.9"


def test_the_library_that_counts_is_named():
    assert library() == open_tokenizer("o200k_base").library
    assert library().split()[0] in (LIBRARY, "tiktoken")


def test_the_tokenizer_that_is_opened_is_the_faster_one_where_it_is_installed():
    needs("fast", LIBRARY)
    opening._load.cache_clear()
    assert {type(open_tokenizer(name)) for name in NAMES} == {FastTokenizer}


def test_the_lock_holds_the_version_whose_differences_are_known():
    lock = Path(__file__).resolve().parent.parent / "requirements-fast.lock"
    assert "\ntoktok-rs==0.3." in lock.read_text(encoding="utf-8")
