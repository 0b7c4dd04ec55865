"""Making one text shorter: beginning and end stay, error lines too, and a notice tells what is missing and how much.

Lines are whole lines of the original, JSON on one line stays JSON, data URLs and base64 go as a whole, characters are never cut
through. Sizes are in characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxproxy.core import cuts
from ctxproxy.core.language import Language
from ctxproxy.core.markers import omitted, omitted_data
from ctxproxy.core.selection import is_noteworthy, level, select
from ctxproxy.core.shorten_json import shorten_json

NOTICE_CHARS = 48
"""Room that a notice within a line takes."""
LINES_NOTICE_CHARS = 30
"""Room that a notice on a line of its own takes."""
PARSED_CHARS = 500_000
"""Longer JSON is cut like any text: parsing it would hold up the rest for longer than its shape is worth."""
BLOB_CHARS = 512
"""A run of base64 letters this long is data, not words."""
DATA_URL = re.compile(r"data:([\w/+.-]*)((?:;[\w=.-]+)*);base64,[A-Za-z0-9+/=_-]*")
BLOB = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{BLOB_CHARS},}}+={{0,2}}")


def shorten(text: str, max_chars: int, language: Language = "en", banner: str = "") -> str:
    """The text in at most about `max_chars` characters; the same string if it fits. `banner` is put in front of a cut text.

    A cut JSON text that stood on one line is valid JSON again, with the banner and the notices as strings inside.
    """
    if len(text) <= max_chars:
        return text
    stripped = text.strip()
    if len(stripped) <= PARSED_CHARS and stripped[:1] in ("{", "[") and "\n" not in stripped:
        short = shorten_json(stripped, max_chars, language, shorten, banner)
        if short is not None:
            return short
    room = max_chars - len(banner) - bool(banner)
    body = _shorten_lines(_without_data(text, language), room, language)
    return f"{banner}\n{body}" if banner else body


def _without_data(text: str, language: Language) -> str:
    """The text with data URLs and long base64 runs replaced by notices."""
    if ";base64," in text:
        text = DATA_URL.sub(lambda found: omitted_data(found[1] or "data URL", len(found[0]), language), text)
    if max(map(len, text.split("\n"))) >= BLOB_CHARS:
        text = BLOB.sub(lambda found: omitted_data("base64", len(found[0]), language) if _is_data(found[0]) else found[0], text)
    return text


def _is_data(run: str) -> bool:
    """Whether a long run looks like encoded bytes: mixed case and digits, in its middle, not one letter over and over."""
    middle = set(run[len(run) // 4 : len(run) // 4 + BLOB_CHARS // 2])
    return len(middle) >= 10 and any(map(str.isupper, middle)) and any(map(str.islower, middle)) and any(map(str.isdigit, middle))


def _shorten_lines(text: str, room: int, language: Language) -> str:
    if len(text) <= room:
        return text
    lines = text.split("\n")
    sizes = [len(line) + 1 for line in lines]
    longest = max(room // 4, 0)
    if max(sizes) > longest:
        cap = max(level(sizes, room), longest)
        lines = [_shorten_line(line, cap, language) if len(line) > cap else line for line in lines]
        sizes = [len(line) + 1 for line in lines]
    if len(lines) == 1 or sum(sizes) <= room + 1:
        return "\n".join(lines)
    failures = (lambda at: is_noteworthy(lines[at])) if is_noteworthy(text) else None
    return "\n".join(_with_notices(lines, select(sizes, failures, room, LINES_NOTICE_CHARS), language))


def _with_notices(lines: Sequence[str], kept: Sequence[int], language: Language) -> list[str]:
    """The kept lines, a notice in each gap."""
    out: list[str] = []
    last = -1
    for at in (*kept, len(lines)):
        if at > last + 1:
            out.append(omitted(at - last - 1, len(lines), "lines", language))
        out += lines[at : at + 1]
        last = at
    return out


def _shorten_line(line: str, room: int, language: Language) -> str:
    """Beginning and end of one line, a notice between."""
    room -= NOTICE_CHARS
    if room < NOTICE_CHARS // 2:
        return omitted(len(line), len(line), "characters", language)
    head = cuts.before(line, room * 3 // 5)
    tail = max(cuts.after(line, len(line) - room * 2 // 5), head)
    notice = omitted(tail - head, len(line), "characters", language)
    return f"{line[:head].rstrip(' ')} {notice} {line[tail:].lstrip(' ')}" if tail > head else line
