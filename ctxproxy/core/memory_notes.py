"""The text of daily memory files: sections, each under a mark that names its session and the tip it reaches up to.

A mark is a comment of Markdown that nobody sees; what a section's text holds of the kind is moved out of the way, so that no text can
pass for a section of its own, and a session's sections can be found and taken out again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from ctxproxy.core.messages import Tip

LONGEST_NAME = 120
"""Characters of a folder's name; file systems take 255 bytes."""
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
"""What stands for itself in a folder's name: capitals do not, since some file systems do not tell them from small letters."""
USER_SIGN = "@"
"""Before the name of a user's folder; a session's name has none, for it would be encoded there."""
MARK = "<!-- ctxproxy "
MARKED = re.compile(r"^<!-- ctxproxy (\S+) (\S+) -->$", re.MULTILINE)
SPOKEN_MARK = re.compile(r"^(?=[ \t]*<!-- ctxproxy )", re.MULTILINE)
NOTHING = frozenset({"", "none", "nothing", "n/a", "无", "没有"})


@dataclass(frozen=True, slots=True)
class Note:
    """A section: what was said in a session up to a tip, under a heading."""

    session: str
    """The session's name."""
    tip: Tip
    heading: str
    text: str


def folder_of(session: str, user: str) -> str:
    """The name of the folder for a session's notes: its user's where it has one. No two have the same, whatever is in their names."""
    return USER_SIGN + safe_name(user) if user else safe_name(session)


def safe_name(name: str) -> str:
    """A name as a folder can have it: percent-encoded but for small letters, digits, `_` and `-`; a long one cut, with a digest behind it."""
    encoded = "".join(letter if letter in PLAIN else _percent(letter) for letter in name)
    if len(encoded) <= LONGEST_NAME:
        return encoded or "%"
    told = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{encoded[: LONGEST_NAME // 2].rpartition('%')[0]}~{told}"


def _percent(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def is_nothing(text: str) -> bool:
    """Whether a text says no more than that there is nothing to say (000-S6)."""
    return text.strip(" \t\r\n.。!！\"'`*").lower() in NOTHING


def opening(day: str) -> str:
    """How a day's file begins."""
    return f"# {day}\n"


def mark(session: str, tip: Tip) -> str:
    """The line that a section begins with."""
    return f"{MARK}{quote(session, safe='', errors='surrogatepass')} {tip} -->"


def rendered(note: Note) -> str:
    """A section as it stands in a file."""
    return f"\n{mark(note.session, note.tip)}\n## {note.heading}\n\n{_harmless(note.text.strip())}\n"


def _harmless(text: str) -> str:
    return SPOKEN_MARK.sub(r"\\", text)


def notes_in(text: str) -> list[Note]:
    """The sections of a file, in order; what somebody wrote above the first one is none."""
    parts = MARKED.split(text)
    return [_read(unquote(name, errors="surrogatepass"), tip, part) for name, tip, part in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)]


def _read(session: str, tip: Tip, part: str) -> Note:
    first, _, rest = part.lstrip("\n").partition("\n")
    return Note(session, tip, first.removeprefix("## "), rest.strip())


def without(text: str, unwanted: Callable[[Note], bool]) -> str:
    """A file without some sections; "" where no section is left."""
    left = [note for note in notes_in(text) if not unwanted(note)]
    return MARKED.split(text, maxsplit=1)[0].rstrip("\n") + "\n" + "".join(map(rendered, left)) if left else ""
