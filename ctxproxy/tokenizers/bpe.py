"""Counting with tiktoken: any string, exact, in bounded time.

tiktoken's regular expression keeps a backtracking stack of a million places, and panics when one run of blanks is longer
(measured with 0.14); its merge loop is O(n log n) in an unbroken piece (quadratic before 0.13). So a long text is
cut where no token can lie across in either encoding, and by force only where there is no such place for long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import tiktoken

from ctxproxy.ports import Tokenizer
from ctxproxy.tokenizers.known_lines import KnownLines

MAX_CHUNK_CHARS = 262_144
"""A quarter of the length at which the stack overflows; a multiple of 128, the longest run of blanks that is one token."""
MIN_CHUNK_CHARS = MAX_CHUNK_CHARS // 2

SAFE_CUT = re.compile(r"(?<=\S)(?= )|(?<=[^\W_])(?=[\r\n\t.,;:!?(){}\[\]<>\"=+*/\\|@#$%&_—，。、；：！？「」“”（）《》-])")
"""Where both encodings' patterns always end a token: before a blank that follows no blank, and between a letter or digit and a
line break or punctuation. The apostrophe is left out (`don't`); Python's blanks hold all of Unicode's, so `\\S` is on the safe side."""


class BytePairTokenizer:
    """A `Tokenizer` over one tiktoken encoding; safe to use from many threads, which run side by side (no GIL while it counts)."""

    library = f"tiktoken {tiktoken.__version__}"

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding
        self._lines = KnownLines(self._counted)

    @property
    def name(self) -> str:
        return self._encoding.name

    def count(self, text: str) -> int:
        """Tokens of any string: special-token spellings count as plain text, lone surrogates as U+FFFD.

        Exact but for texts with more than 131,072 characters without a blank or punctuation: there each forced cut adds a token or two.
        """
        if len(text) <= MAX_CHUNK_CHARS:
            return self._lines.count(text)
        return sum(map(self._counted, chunks(text)))

    def _counted(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(text))


class LargerOf:
    """A `Tokenizer` for models whose encoding is not known: the larger of two counts, text by text."""

    def __init__(self, first: Tokenizer, second: Tokenizer) -> None:
        self._first = first
        self._second = second

    @property
    def name(self) -> str:
        return f"{self._first.name}|{self._second.name}"

    def count(self, text: str) -> int:
        """The larger count: neither encoding of the two can make more tokens of it."""
        return max(self._first.count(text), self._second.count(text))


def chunks(text: str) -> Iterator[str]:
    """The text in pieces of at most MAX_CHUNK_CHARS, cut at safe places where there are any."""
    start = 0
    while len(text) - start > MAX_CHUNK_CHARS:
        safe = SAFE_CUT.search(text, start + MIN_CHUNK_CHARS, start + MAX_CHUNK_CHARS)
        end = safe.start() if safe else start + MAX_CHUNK_CHARS
        yield text[start:end]
        start = end
    yield text[start:]
