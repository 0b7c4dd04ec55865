from __future__ import annotations

import base64
import gzip
import hashlib
import random
import socket
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxproxy.errors import ConfigError
from ctxproxy.tokenizers import LargerOf, bpe, encoding_for, open_tokenizer, tokenizer_for
from ctxproxy.tokenizers import open as opening
from tests.shared_dir import shared

NAMES = ("o200k_base", "cl100k_base")


def reference(name: str) -> tiktoken.Encoding:
    """The same encoding from the published rank file, counted without any cut of ours."""
    lines = shared(f"encodings/{name}.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}
    return tiktoken.Encoding(name, pat_str=opening.ENCODINGS[name].pattern, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 199_999})


@pytest.fixture(scope="module", params=NAMES)
def pair(request):
    return opening.load_reference(request.param), reference(request.param)


def exact(encoding: tiktoken.Encoding, text: str) -> int:
    return len(encoding.encode(text, disallowed_special=()))


# Counts that OpenAI's own examples and tokenizer page show, or that follow from the ranks: not taken from this program.
KNOWN = [
    ("cl100k_base", "tiktoken is great!", 6),  # the cookbook's example
    ("o200k_base", "tiktoken is great!", 6),
    ("cl100k_base", "antidisestablishmentarianism", 6),  # the cookbook's comparison of encodings
    ("cl100k_base", "2 + 2 = 4", 7),
    ("cl100k_base", "お誕生日おめでとう", 9),
    ("o200k_base", "お誕生日おめでとう", 8),
    ("o200k_base", "", 0),
    ("cl100k_base", "", 0),
]


@pytest.mark.parametrize(("name", "text", "tokens"), KNOWN)
def test_the_cookbooks_examples_have_the_cookbooks_counts(name, text, tokens):
    assert open_tokenizer(name).count(text) == tokens


@pytest.mark.parametrize("name", NAMES)
def test_the_patterns_are_tiktokens_own(name, monkeypatch):
    public = pytest.importorskip("tiktoken_ext.openai_public")
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda _url, expected_hash: {"hash": expected_hash})
    spec = getattr(public, name)()
    assert opening.ENCODINGS[name].pattern == spec["pat_str"]
    assert opening.ENCODINGS[name].sha256 == spec["mergeable_ranks"]["hash"]


TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=30),
        st.sampled_from(
            [
                "don't",
                "I'LL",
                " ",
                "   ",
                "\n",
                "\r\n",
                "\t",
                "中文",
                "，",
                "。",
                "1234567",
                "e\u0301",
                "👩🏽\u200d🚀",
                "<|endoftext|>",
                "/",
                "://",
                "_",
                "ﷺ",
            ]
        ),
        st.text("aA1 \n\t.'/中，\u0301\u00a0", max_size=40),
    ),
    max_size=12,
).map("".join)


@given(TEXTS)
def test_ordinary_texts_count_as_tiktoken_counts_them(pair, text):
    ours, theirs = pair
    assert ours.count(text) == exact(theirs, text)


@given(TEXTS, st.integers(2, 60))
@settings(max_examples=300)
def test_a_safe_cut_never_changes_a_count(pair, text, at):
    _, theirs = pair
    cut = bpe.SAFE_CUT.search(text, at)
    if cut:
        assert exact(theirs, text[: cut.start()]) + exact(theirs, text[cut.start() :]) == exact(theirs, text)


def test_the_left_side_of_a_safe_cut_is_a_letter_or_a_digit_to_the_encodings_too():
    for char in map(chr, range(sys.maxunicode + 1)):
        if char.isalnum():
            assert unicodedata.category(char)[0] in "LN", hex(ord(char))


@given(st.lists(st.one_of(st.text(max_size=8), st.sampled_from(["\ud83d", "\ude00", "\udfff"])), max_size=8).map("".join))
def test_lone_surrogates_count_as_replacement_characters(pair, text):
    ours, theirs = pair
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert ours.count(text) == exact(theirs, paired)


def test_special_token_spellings_are_plain_text(pair):
    ours, _ = pair
    assert ours.count("<|endoftext|>") > 1
    assert ours.count("<|im_start|>system") > 2


@cache
def long_texts() -> dict[str, str]:
    rng = random.Random(7)
    prose = "The quick brown fox doesn't jump; 1234 lazy dogs do.\n\n\tif (x == 'y') { return \"z\"; }  // 3.14\n"
    return {
        "prose and code": prose * 12_000,
        "chinese prose": "今天天气很好，我们去公园散步吧。然后回家吃饭！" * 30_000,
        "blanks": " " * 1_000_000,
        "tabs": "\t" * 1_100_000,
        "no-break blanks then a letter": "\u00a0" * 1_100_000 + "x",
        "line breaks": "\r\n" * 500_000,
        "unbroken chinese": "".join(chr(rng.randint(0x4E00, 0x9FA5)) for _ in range(600_000)),
        "base64": base64.b64encode(rng.randbytes(900_000)).decode(),
        "one letter": "a" * 1_000_000,
        "capitals": "A" * 1_000_000,
        "random letters": "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=1_000_000)),
        "digits": "1" * 1_000_000,
        "dashes": "-" * 1_000_000,
        "emoji": "👩🏽\u200d🚀" * 250_000,
        "marks": "\u0301" * 600_000,
        "minified json": '{"id":12345,"name":"x","tags":["a","b"],"ok":true},' * 20_000,
    }


PANICS = {"blanks", "tabs", "no-break blanks then a letter"}
"""Where tiktoken by itself overflows its stack; what the count must be follows from the longest token of the run."""


@pytest.mark.parametrize("kind", sorted(long_texts().keys() - PANICS))
def test_a_huge_text_counts_as_tiktoken_counts_it(pair, kind):
    ours, theirs = pair
    text = long_texts()[kind]
    assert ours.count(text) == pytest.approx(len(theirs.encode_ordinary(text)), rel=0.001)


@pytest.mark.parametrize("kind", ["prose and code", "chinese prose", "minified json"])
def test_a_huge_text_with_safe_places_counts_exactly(pair, kind):
    ours, theirs = pair
    text = long_texts()[kind]
    assert len(list(bpe.chunks(text))) > 1
    assert ours.count(text) == len(theirs.encode_ordinary(text))


@pytest.mark.parametrize("kind", sorted(PANICS))
def test_a_million_blanks_count_as_ten_times_a_tenth_of_them(pair, kind):
    ours, theirs = pair
    text = long_texts()[kind]
    tenth = len(text) // 1280 * 128
    assert ours.count(text) == pytest.approx(exact(theirs, text[:tenth]) * len(text) / tenth, rel=0.001)


@given(st.integers(0, 5), st.sampled_from([" ", "a", "中", "a ", "x.\n"]), st.text(max_size=5))
@settings(max_examples=30)
def test_chunks_are_the_text_and_bounded(blocks, unit, tail):
    text = unit * (blocks * bpe.MIN_CHUNK_CHARS) + tail
    pieces = list(bpe.chunks(text))
    assert "".join(pieces) == text
    assert all(len(piece) <= bpe.MAX_CHUNK_CHARS for piece in pieces)
    assert all(len(piece) >= bpe.MIN_CHUNK_CHARS for piece in pieces[:-1])


def test_the_shipped_data_are_the_published_files():
    for name in NAMES:
        unpacked = gzip.decompress((opening.resources.files("ctxproxy.tokenizers") / "data" / f"{name}.tiktoken.gz").read_bytes())
        assert unpacked == shared(f"encodings/{name}.tiktoken").read_bytes()
        assert hashlib.sha256(unpacked).hexdigest() in (opening.resources.files("ctxproxy.tokenizers") / "data" / "README.md").read_text()


def test_opening_needs_no_network_and_no_cache_directory(monkeypatch, tmp_path):
    def refuse(*_args, **_kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    opening._load.cache_clear()
    assert open_tokenizer("cl100k_base").count("hello world") == 2
    assert not list(tmp_path.iterdir())


def test_threads_that_open_at_once_load_once_and_agree():
    opening._load.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(open_tokenizer, ["cl100k_base"] * 8))
        counts = list(pool.map(lambda t: t.count("tiktoken is great! " * 500), opened))
    assert len(set(map(id, opened))) == 1
    assert len(set(counts)) == 1


def test_an_unknown_encoding_is_named_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"'p50k'.*o200k_base, cl100k_base"):
        open_tokenizer("p50k")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (gzip.compress(b"YQ== 0\n", mtime=0), "are damaged"),
        (b"no gzip", "cannot be read"),
        (gzip.compress(b"YQ== 0\n" * 99, mtime=0)[:30], "cannot be read"),
        (gzip.compress(b"YQ== 0\n", mtime=0)[:12] + b"\xff" * 20, "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_damaged_data_stop_the_start(monkeypatch, tmp_path, content, says):
    (tmp_path / "data").mkdir()
    if content is not None:
        (tmp_path / "data" / "o200k_base.tiktoken.gz").write_bytes(content)
    monkeypatch.setattr(opening.resources, "files", lambda _package: tmp_path)
    with pytest.raises(ConfigError, match=says):
        opening._load.__wrapped__("o200k_base")


MODELS = [
    ("gpt-4o", "o200k_base"),
    ("gpt-4o-mini-2024-07-18", "o200k_base"),
    ("chatgpt-4o-latest", "o200k_base"),
    ("gpt-4.1-nano", "o200k_base"),
    ("gpt-4.5-preview", "o200k_base"),
    ("gpt-5", "o200k_base"),
    ("gpt-5.2-codex", "o200k_base"),
    ("gpt-oss-120b", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3-mini", "o200k_base"),
    ("o4-mini-2025-04-16", "o200k_base"),
    ("openai/gpt-4o", "o200k_base"),
    ("openrouter/openai/GPT-5-mini:free", "o200k_base"),
    ("ft:gpt-4o-mini-2024-07-18:org:name:id", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-4-turbo", "cl100k_base"),
    ("gpt-4-0613", "cl100k_base"),
    ("azure/gpt-35-turbo", "cl100k_base"),
    ("gpt-3.5-turbo-16k", "cl100k_base"),
    ("ft:gpt-3.5-turbo:org::id", "cl100k_base"),
    ("text-embedding-3-large", "cl100k_base"),
    ("davinci-002", "cl100k_base"),
    ("text-embedding-004", None),
    ("o30", None),
    ("gpt-4all", None),
    ("gpt-40", None),
    ("test-model", None),
    ("qwen2.5-coder", None),
    ("openai/", None),
    ("", None),
]


@pytest.mark.parametrize(("model", "encoding"), MODELS)
def test_a_models_encoding_is_known_by_its_name(model, encoding):
    assert encoding_for(model) == encoding


def test_an_unknown_model_is_counted_by_the_larger_of_the_two():
    o200k, cl100k = map(open_tokenizer, NAMES)
    larger = tokenizer_for("mystery-7b")
    assert larger.name == "o200k_base|cl100k_base"
    for text in ("你好世界，今天天气很好", "plain English words", "@@@@((((", "1" * 50):
        assert larger.count(text) == max(o200k.count(text), cl100k.count(text))
    assert larger.count("你好世界，今天天气很好") > o200k.count("你好世界，今天天气很好")


def test_a_configured_encoding_comes_before_the_models_name():
    assert tokenizer_for("gpt-4o", "cl100k_base") is open_tokenizer("cl100k_base")
    assert tokenizer_for("gpt-4o").name == "o200k_base"


def test_the_larger_of_two_asks_both():
    o200k, cl100k = map(open_tokenizer, NAMES)
    assert LargerOf(cl100k, o200k).count("𓀀𓁐") == LargerOf(o200k, cl100k).count("𓀀𓁐")
