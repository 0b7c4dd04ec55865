"""Where a phrase stands in a message: in its text, its parts, the arguments of its calls, also behind the escapes of JSON.

Letter case counts for nothing, nor how words are parted: by one blank, by many, by a line break; between Chinese characters by none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ctxproxy.core import cuts, jsontext
from ctxproxy.core.messages import Message
from ctxproxy.core.sentences import MAX_CHARS, split

MOST_CHARS = 400
"""Of a phrase."""
AROUND_CHARS = 80
SENTENCE_CHARS = 1000
"""The longest text that is given as the sentence of a phrase."""
ESCAPED_TIMES = 3
"""A call's arguments are JSON in JSON; what a program printed of it may be in a third one."""
WIDE = re.compile("[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
"""Writing that sets no blanks between words: Han, kana, and their full-width marks."""
ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
NOT_SAID = frozenset({"role", "type", "file_data", "data"})
"""Keys whose values nobody said: kinds, and media as base64."""


@dataclass(frozen=True, slots=True)
class Found:
    """A phrase in a message: `place` is the path of the field, `excerpt` shows it among its neighbours, `sentence` is all of its line or
    sentence as it was said.
    """

    place: str
    excerpt: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is looked for; made by `phrase_of`."""

    text: str
    pattern: re.Pattern[str]

    def in_text(self, text: str) -> bool:
        """Whether a text holds it."""
        return any(self.pattern.search(reading) for reading in _readings(text))

    def in_message(self, message: Message) -> bool:
        """Whether a message holds it anywhere."""
        return any(self.in_text(text) for _, text in said_in(message))

    def find(self, message: Message) -> Found | None:
        """The first place of a message that holds it."""
        places = ((place, text) for place, text in said_in(message) if self.in_text(text))
        return next((self._found(place, text) for place, text in places), None)

    def _found(self, place: str, text: str) -> Found:
        """A phrase in a text that holds it; if that is JSON, in one of its strings, should it be in one."""
        inner: tuple[str, str] | None = (place, text)
        while inner is not None:
            place, text = inner
            inner = next(((at, one) for at, one in _strings_of(text, place) if self.in_text(one)), None)
        reading, found = next((reading, found) for reading in _readings(text) if (found := self.pattern.search(reading)))
        return Found(place, _excerpt(reading, *found.span()), _sentence(reading, *found.span()))


def phrase_of(text: str) -> Phrase:
    """The phrase of a text; raises ValueError if it is blank or too long."""
    words = text.split()
    if not words:
        raise ValueError("is empty")
    if len(text) > MOST_CHARS:
        raise ValueError(f"is longer than {MOST_CHARS} characters")
    forms = dict.fromkeys(unicodedata.normalize(form, " ".join(words)) for form in ("NFC", "NFD"))
    return Phrase(" ".join(words), re.compile("|".join(map(_loose, forms)), re.IGNORECASE))


def _loose(text: str) -> str:
    """The pattern of a text whose words are parted by single blanks."""
    chars = [(char, before == " ") for before, char in pairwise(" " + text) if char != " "]
    parts = [re.escape(chars[0][0])]
    for (left, _), (right, parted) in pairwise(chars):
        wide = WIDE.match(left) or WIDE.match(right)
        parts.append((r"\s*" if wide else r"\s+" if parted else "") + re.escape(right))
    return "".join(parts)


def said_in(message: Message) -> Iterator[tuple[str, str]]:
    """Every text of a message with the path of its field, media left out; in order."""
    return _strings(message.fields, "")


def _strings(value: Any, place: str) -> Iterator[tuple[str, str]]:
    waiting = [(place, value)]
    while waiting:
        at, one = waiting.pop()
        if isinstance(one, str):
            if not one.startswith("data:"):
                yield at, one
        elif isinstance(one, list):
            waiting += [(f"{at}[{n}]", item) for n, item in reversed(list(enumerate(one)))]
        else:
            members = one.items() if isinstance(one, dict) else ()
            waiting += [(f"{at}.{key}" if at else str(key), item) for key, item in reversed(members) if key not in NOT_SAID]


def _strings_of(text: str, place: str) -> Iterator[tuple[str, str]]:
    """The strings of a text that is a JSON object or array; none of any other."""
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        value = jsontext.decode(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return
    yield from _strings(value, place)


def _readings(text: str) -> Iterator[str]:
    """A text as it stands, and without the escapes of JSON, layer by layer."""
    yield text
    for _ in range(ESCAPED_TIMES):
        plain = ESCAPE.sub(_unescaped, text) if "\\" in text else text
        if plain == text:
            return
        text = PAIR.sub(_joined, plain)
        yield text


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else SHORT_ESCAPES.get(found[2], found[2])


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _excerpt(text: str, start: int, end: int) -> str:
    """What stands around a range, on one line."""
    first = min(cuts.after(text, start - AROUND_CHARS), start)
    last = max(cuts.before(text, end + AROUND_CHARS), end)
    words = " ".join(text[first:last].split())
    return ("… " if first else "") + words + (" …" if last < len(text) else "")


def _sentence(text: str, start: int, end: int) -> str:
    """The lines that hold a range; of long ones the sentences that do; of longer ones what stands around it."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    if last - first > MAX_CHARS:
        first, last = _sentences_around(text, first, last, start, end)
    if last - first > SENTENCE_CHARS:
        first = max(first, min(cuts.after(text, start - AROUND_CHARS), start))
        last = min(last, max(cuts.before(text, first + SENTENCE_CHARS), start + 1))
    return text[first:last].strip()


def _sentences_around(text: str, first: int, last: int, start: int, end: int) -> tuple[int, int]:
    """The bounds of the sentences between `first` and `last` that hold a range."""
    bounds = list(_bounds(text, first, last))
    return max((at for at, _ in bounds if at <= start), default=first), min((at for _, at in bounds if at >= end), default=last)


def _bounds(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    for sentence in split(text[first:last]):
        at = text.find(sentence, first, last)
        if at >= 0:  # not as it stands where its blanks were levelled
            first = at + len(sentence)
            yield at, first
