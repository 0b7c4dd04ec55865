"""Error texts made comparable: escapes undone, echoes of user text taken out, figures replaced by a mark; all linear in a bounded length.

Knows nothing of what the words mean; `overflow_signs` reads the result.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

MAX_TEXT_CHARS = 8_000
"""How much of one message is read: providers state the fault in the first sentences, gateways append traces after it."""
HEAD_CHARS = 6_000
"""Of a longer message this much of the head is read, and the rest of the bound from its end (a fallback's error comes last)."""
MAX_FIGURE = 10**12

MARK = "#"
"""Stands for a figure in `Marked.text`."""

_BACKSLASHES = re.compile(r"\\{2,}")
_ESCAPED_QUOTE = re.compile(r"\\([\"'])")
_ESCAPED_BLANK = re.compile(r"\\[nrt]")
_ESCAPED_CHARACTER = re.compile(r"\\u([0-9a-fA-F]{4})")
_URL = re.compile(r"\bhttps?:[^\s\"'<>()]{1,400}|\b[a-z0-9-]{1,40}(?:\.[a-z0-9-]{1,40}){1,5}/[^\s\"'<>()]{1,300}", re.IGNORECASE)
_GROUP_SPACE = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_SPACED_GROUPS = re.compile(r"(?<![\w.,+-])\d{1,3}(?: \d{3}){1,4}(?![\d.,/]\d|\d)")
_TRACE_LINE = re.compile(r"\bfile \"[^\"\n]{1,200}\", line \d{1,7}(?:, in [\w<>.]{1,80})?")
"""A line of a Python traceback: its file is not one that somebody sent."""
_TAG = re.compile(r"<[^<>]{1,200}>")
_ARROW = re.compile(r"[-=]{1,3}>")
"""`-> 400` compares nothing."""
_OPENING = re.compile(r"(?<![\w])'(?=\S)|[\"“「『《«]")
_CLOSING = {'"': re.compile('"'), "'": re.compile(r"'(?!\w)"), "“": re.compile("”"), "「": re.compile("」"), "『": re.compile("』")}
_CLOSING |= {"《": re.compile("》"), "«": re.compile("»")}
_SPEAKER = re.compile(r"(?:message|msg|errors?|detail|reason|raw|exception|description|returned|says?|said)[\"'\s:=({\[b]{0,8}$", re.IGNORECASE)
_QUOTES = re.compile(r"[\"`*“”「」『』]|(?<!\w)'|'(?!\w)")
_WORD_DOT = re.compile(r"(?<=[a-z0-9_\])])\.(?=[a-z_\[])|(?<=[a-z_\])])\.(?=\d+[.a-z_\[])")
_FIGURE = re.compile(
    r"(?:(?<![a-z\d_.\-/@])|(?<=\d/)(?=\d{3,8}(?![\d/])))(\d{1,3}(?:[,_']\d{3}){1,4}|\d{1,3}(?:\.\d{3}){1,4}(?= tokens)"
    r"|\d{1,15})(?:\.0+)?(?!(?!tokens?\b)[a-z\d_年月日]|/(?!\d{3,8}(?![\d/]))|-(?!tokens?\b)[\da-z]|[.,]\d)"
)
_BLANKS = re.compile(r"\s+")

MAX_WORDS_OF_A_NAME = 2


@dataclass(frozen=True, slots=True)
class Marked:
    """A folded message: lower case, one blank between words, every figure a `#` whose value stands in `figures` at its place in the order."""

    text: str
    figures: tuple[int, ...]
    marks: tuple[int, ...]
    """Where in `text` the marks are."""

    def figure_at(self, position: int) -> int:
        """The value of the mark at a position of `text`."""
        return self.figures[self.marks.index(position)]


def marked(text: str) -> Marked:
    """A message of any length as `Marked`; never raises, looks at no more than `MAX_TEXT_CHARS`."""
    folded = _fold(_bounded(text))
    pieces: list[str] = []
    figures: list[int] = []
    marks: list[int] = []
    end = length = 0
    for found in _FIGURE.finditer(folded):
        value = int(re.sub(r"\D", "", found.group(1)))
        if value > MAX_FIGURE:
            continue
        pieces += [folded[end : found.start()], MARK]
        length += found.start() - end
        marks.append(length)
        figures.append(value)
        length += 1
        end = found.end()
    return Marked("".join([*pieces, folded[end:]]), tuple(figures), tuple(marks))


def _bounded(text: str) -> str:
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return text[:HEAD_CHARS] + "\n" + text[HEAD_CHARS + 1 - MAX_TEXT_CHARS :]


def _fold(text: str) -> str:
    text = _BACKSLASHES.sub(r"\\", text)  # each wrapping doubled them
    text = _ESCAPED_BLANK.sub(" ", _ESCAPED_QUOTE.sub(r"\1", _ESCAPED_CHARACTER.sub(_character, text)))
    text = _ARROW.sub(" ", html.unescape(_TAG.sub(" ", text)))
    text = _SPACED_GROUPS.sub(lambda found: found.group().replace(" ", ","), _GROUP_SPACE.sub(",", text))
    text = unicodedata.normalize("NFKC", text)[:MAX_TEXT_CHARS].replace("’", "'").replace(MARK, " ").lower()
    text = _URL.sub(" ", _TRACE_LINE.sub(" ", text))
    text = _QUOTES.sub("", without_echoes(text))
    return _BLANKS.sub(" ", _WORD_DOT.sub("_", text)).strip()


def _character(found: re.Match[str]) -> str:
    return chr(int(found.group(1), 16))


def without_echoes(text: str) -> str:
    """The text without what it quotes: quoted stretches of three words and more go, unless they are introduced as an error's message."""
    kept: list[str] = []
    at = 0
    unclosed: set[str] = set()
    while (opening := _OPENING.search(text, at)) is not None:
        quote = opening.group()
        closing = None if quote in unclosed else _CLOSING[quote].search(text, opening.end())
        if closing is None:
            unclosed.add(quote)
            kept.append(text[at : opening.end()])
            at = opening.end()
            continue
        inside = text[opening.end() : closing.start()]
        kept.append(text[at : opening.start()])
        kept.append(f" {inside} " if _may_speak(inside, text[max(0, opening.start() - 32) : opening.start()]) else " ")
        at = closing.end()
    return "".join([*kept, text[at:]])


def _may_speak(inside: str, before: str) -> bool:
    return (len(inside) <= 64 and len(inside.split()) <= MAX_WORDS_OF_A_NAME) or bool(_SPEAKER.search(before))
