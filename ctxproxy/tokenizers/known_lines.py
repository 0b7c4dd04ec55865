"""Counting again what was counted before: a value, a long text that has changed in some lines only.

A frame is tried in several lengths, and the next one is nearly the last. Counts are remembered under keys of the texts; a line's when it is seen
the second time: to count it by itself takes longer than as part of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ctxproxy.core.memo import text_key

LEAST_CHARS = 2000
"""Shorter texts are looked up whole."""
LEAST_BREAKS, MOST_BREAKS = 4, 8192
"""Texts with fewer line breaks, or with more, are counted as soon as looked up."""
MOST_LINES = 16_384
"""Remembered in each of two generations, about 100 bytes each."""
SEEN = -1
"""In place of a count that nobody needed so far."""


class KnownLines:
    """Counts texts as `count` does, line by line where most of a text is known; safe to use from many threads.

    For encodings whose tokens never reach from one line into the next but where that begins with a blank or a slash.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def count(self, text: str) -> int:
        """What `count` gives for the text."""
        young, old = self._young, self._old
        if len(text) < LEAST_CHARS:
            known = young.get(key := text_key(text), old.get(key, SEEN))
            return self._remembered(key, self._count(text)) if known == SEEN else known
        if not LEAST_BREAKS <= text.count("\n") <= MOST_BREAKS:
            return self._count(text)
        lines = list(lines_of(text))
        keys = list(map(text_key, lines))
        found = [young.get(key, old.get(key)) for key in keys]
        unseen = sum([len(line) for line, tokens in zip(lines, found, strict=True) if tokens is None])
        if unseen > len(text) // 2:
            self._remember({key: SEEN for key, tokens in zip(keys, found, strict=True) if tokens is None})
            return self._count(text)
        counted = [self._count(line) if tokens is None or tokens == SEEN else tokens for line, tokens in zip(lines, found, strict=True)]
        self._remember(dict(zip(keys, counted, strict=True)))
        return sum(counted)

    def _remembered(self, key: int, tokens: int) -> int:
        self._remember({key: tokens})
        return tokens

    def _remember(self, counted: dict[int, int]) -> None:
        self._young.update(counted)
        if len(self._young) > MOST_LINES:
            self._old, self._young = self._young, {}


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text with their breaks, one that begins with a blank or a slash together with the line before."""
    first, *rest = text.split("\n")
    held = first
    for line in rest:
        if line and line[0] != "/" and not line[0].isspace():
            yield held + "\n"
            held = line
        else:
            held += "\n" + line
    yield held
