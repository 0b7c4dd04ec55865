"""Which encoding a model has, and the encodings built from this package's own data."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import zlib
from functools import cache
from importlib import resources
from threading import Lock
from typing import NamedTuple

import tiktoken

from ctxproxy.errors import ConfigError
from ctxproxy.ports import Tokenizer
from ctxproxy.tokenizers.bpe import BytePairTokenizer, LargerOf
from ctxproxy.tokenizers.fast import FastTokenizer, faster


class Published(NamedTuple):
    """What OpenAI publishes of an encoding beside its ranks (tiktoken's `openai_public.py`): the data's sha256 and the splitting pattern."""

    sha256: str
    pattern: str


_UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

ENCODINGS = {
    "o200k_base": Published(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "|".join(
            (
                rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_ENDING}",
                rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_ENDING}",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            )
        ),
    ),
    "cl100k_base": Published(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}

MODELS = (
    (re.compile(r"gpt-4o|chatgpt-4o|gpt-4\.\d|gpt-5|gpt-oss|o[134](?![a-z0-9])|codex-mini|computer-use"), "o200k_base"),
    (re.compile(r"gpt-4(?![a-z0-9.])|gpt-3\.?5|text-embedding-(?:ada-002|3-)|(?:davinci|babbage)-002"), "cl100k_base"),
)
"""Model names by their beginning, as in tiktoken's `model.py` (gpt-oss: o200k_harmony, which has the same ranks and pattern)."""

_LOADING = Lock()


def open_tokenizer(encoding: str) -> Tokenizer:
    """The tokenizer of an encoding; the first call takes about half a second of processor time (call it in a thread), later ones nothing.

    Raises ConfigError for an encoding that is not there, or if its data are damaged.
    """
    with _LOADING:
        return _load(encoding)


def library() -> str:
    """What counts, with its version; opens a tokenizer if none is open."""
    with _LOADING:
        return _load("o200k_base").library


def tokenizer_for(model: str, encoding: str | None = None) -> Tokenizer:
    """The tokenizer of a model: of the configured encoding if one is given, else by name, else the larger of both encodings; see open_tokenizer."""
    known = encoding or encoding_for(model)
    if known is not None:
        return open_tokenizer(known)
    return LargerOf(open_tokenizer("o200k_base"), open_tokenizer("cl100k_base"))


def encoding_for(model: str) -> str | None:
    """The encoding of an OpenAI model, also as `vendor/model` or `ft:model:…`; None if it is not known."""
    name = model.lower().rpartition("/")[2].removeprefix("ft:")
    return next((encoding for names, encoding in MODELS if names.match(name)), None)


@cache
def _load(encoding: str) -> BytePairTokenizer | FastTokenizer:
    return faster(load_reference(encoding))


def load_reference(encoding: str) -> BytePairTokenizer:
    """A new tokenizer that counts with tiktoken alone; raises as open_tokenizer does."""
    if encoding not in ENCODINGS:
        raise ConfigError(f"unknown encoding {encoding!r}; known are {', '.join(ENCODINGS)}")
    ranks = _ranks(encoding)
    built = tiktoken.Encoding(encoding, pat_str=ENCODINGS[encoding].pattern, mergeable_ranks=ranks, special_tokens={})
    ranks.clear()  # the encoder has its own copy; this one, of use only for other calls than ours, is some 20 MB
    return BytePairTokenizer(built)


def _ranks(encoding: str) -> dict[bytes, int]:
    try:
        published = gzip.decompress((resources.files("ctxproxy.tokenizers") / "data" / f"{encoding}.tiktoken.gz").read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"the data of encoding {encoding} cannot be read ({error}); install ctxproxy again") from error
    if hashlib.sha256(published).hexdigest() != ENCODINGS[encoding].sha256:
        raise ConfigError(f"the data of encoding {encoding} are damaged (sha256 differs); install ctxproxy again")
    pairs = (line.split(b" ") for line in published.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in pairs}
