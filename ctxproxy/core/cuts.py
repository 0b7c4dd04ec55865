"""Where a text may be cut: never inside a character as its reader sees it, an escape sequence or, if a blank is near, a word.

Grapheme rules are those of UAX #29 that occur in chats: joiners, marks, variation selectors, skin tones, flags, jamo, CR LF.
"""

from __future__ import annotations

import re
import unicodedata

WORD_REACH_CHARS = 40
"""How far a cut moves to spare a word or a number: half a number would be a false fact."""
GRAPHEME_REACH_CHARS = 64
"""Longest run of joined characters that is kept whole; more is no writing but noise."""

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
BLANK = re.compile(r"\s")


def before(text: str, at: int) -> int:
    """The last position not after `at` where the text may end."""
    if at >= len(text):
        return len(text)
    at = max(at, 0)
    if at and not (text[at].isspace() or text[at - 1].isspace()):
        at = _word_start(text, at)
    at = _escape(text, at)[0]
    for step in range(min(at, GRAPHEME_REACH_CHARS)):
        if not _joined(text, at - step):
            return at - step
    return 0 if at <= GRAPHEME_REACH_CHARS else at


def after(text: str, at: int) -> int:
    """The first position not before `at` from which the text may go on."""
    if at <= 0:
        return 0
    if at < len(text) and not (text[at].isspace() or text[at - 1].isspace()):
        at = _word_end(text, at)
    at = _escape(text, min(at, len(text)))[1]
    for step in range(min(len(text) - at, GRAPHEME_REACH_CHARS)):
        if not _joined(text, at + step):
            return at + step
    return len(text) if len(text) - at <= GRAPHEME_REACH_CHARS else at


def _word_start(text: str, at: int) -> int:
    for step in range(1, min(at, WORD_REACH_CHARS) + 1):
        if text[at - step].isspace():
            return at - step + 1
    return _outside_word(text, at, -1)


def _word_end(text: str, at: int) -> int:
    blank = BLANK.search(text, at, at + WORD_REACH_CHARS)
    return blank.start() if blank else _outside_word(text, at, 1)


def _outside_word(text: str, at: int, step: int) -> int:
    """The nearest place that is not inside an ASCII word or number; `at` if there is none in reach."""
    place = at
    for _ in range(WORD_REACH_CHARS):
        if not 0 < place < len(text) or not (_in_word(text[place - 1]) and _in_word(text[place])):
            return place
        place += step
    return at


def _in_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in "._-")


def _escape(text: str, at: int) -> tuple[int, int]:
    """The bounds of the terminal escape sequence around `at`; (at, at) if there is none."""
    start = text.rfind("\x1b", max(0, at - 32), at)
    found = ANSI.match(text, start) if start >= 0 else None
    return (start, found.end()) if found and found.end() > at else (at, at)


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of a position inside the text are one to the eye."""
    left, right = text[at - 1], text[at]
    if "\u200d" in (left, right):
        return True
    code = ord(right)
    if code < 0x300:
        return left == "\r" and right == "\n"
    if 0xDC00 <= code <= 0xDFFF:
        return 0xD800 <= ord(left) <= 0xDBFF
    if 0x1F1E6 <= code <= 0x1F1FF:
        return _flags_before(text, at) % 2 == 1
    return _extends(code) or unicodedata.category(right) in ("Mn", "Me", "Mc")


def _extends(code: int) -> bool:
    """Skin tones, tag characters and trailing Hangul jamo; selectors and marks have the categories of marks."""
    return 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F or 0x1160 <= code <= 0x11FF


def _flags_before(text: str, at: int) -> int:
    """How many regional indicators stand right before: flags are pairs of them."""
    count = 0
    while count < at and 0x1F1E6 <= ord(text[at - 1 - count]) <= 0x1F1FF and count < GRAPHEME_REACH_CHARS:
        count += 1
    return count
