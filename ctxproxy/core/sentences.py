"""Where a text may be parted: sentences of English and Chinese prose, lines of code and logs, fields of JSON.

Linear in the length of the text: only replacements of fixed strings, no pattern that could go back.
"""

from __future__ import annotations

MAX_CHARS = 280
"""Longer pieces are parted further: what is chosen piece by piece should not cost a whole page."""
UNIT_CHARS = 400
"""A line up to this length is one thought (measured: parting it costs more of what is found again than it saves)."""
HAN_END = "。！？；"
HAN_ENDS = tuple(HAN_END)
ENDS = tuple((end + " ", end + "\n") for end in ".!?") + tuple((end, end + "\n") for end in HAN_END)
CLOSERS = tuple((end + "\n" + close, end + close + "\n") for end in HAN_END for close in "”’」』）)")
ABBREVIATIONS = frozenset(
    ("e.g.", "i.e.", "Mr.", "Mrs.", "Ms.", "Dr.", "Prof.", "St.", "vs.", "No.", "Nr.", "approx.", "cf.", "al.", "Fig.", "Inc.", "Ltd.")
)
JSON_BREAKS = (("},", "},\n"), ("],", "],\n"), (', "', ',\n "'), (',"', ',\n"'))
PROSE_BREAKS = (("; ", ";\n "), (", ", ",\n "), ("，", "，\n"), ("、", "、\n"))
NUMBER_CHARS = 4
"""A fragment no longer than this before a full stop is a list number or an initial ("12.", "J."), no sentence."""


def split(text: str, max_chars: int = MAX_CHARS) -> list[str]:
    """The sentences, lines or fields of a text in order, without blanks around them, each at most `max_chars` long."""
    out: list[str] = []
    for line in text.splitlines():
        if len(line) <= max_chars and not _has_end(line):
            out.append(line.strip())
        else:
            for sentence in _sentences(line):
                out += [sentence] if len(sentence) <= max_chars else parted(sentence, max_chars)
    return [piece for piece in out if piece]


def units(text: str, most_chars: int = UNIT_CHARS, *, indented: bool = False) -> list[str]:
    """The lines of a text, those over `most_chars` parted between sentences: pieces that can stand alone, short messages whole; with
    the blanks before each line if it is to stand among its neighbours, as code does.
    """
    packed_chars = min(MAX_CHARS, most_chars)
    out: list[str] = []
    for line in text.splitlines():
        if len(line) <= most_chars:
            out.append(line.rstrip() if indented else line.strip())
        else:
            sentences = split(line, packed_chars)
            out += _packed([sentence + ("" if sentence.endswith(HAN_ENDS) else " ") for sentence in sentences], packed_chars)
    return [unit for unit in out if unit and not unit.isspace()]


def _has_end(line: str) -> bool:
    return ". " in line or "! " in line or "? " in line or (not line.isascii() and any(end in line for end in HAN_END))


def _sentences(line: str) -> list[str]:
    for old, new in ENDS:
        line = line.replace(old, new)
    if not line.isascii():
        for old, new in CLOSERS:
            line = line.replace(old, new)
    out: list[str] = []
    open_end = False
    for piece in line.split("\n"):
        stripped = piece.strip()
        if open_end and out and stripped:
            out[-1] += " " + stripped
        elif stripped:
            out.append(stripped)
        open_end = bool(stripped) and _goes_on(stripped)
    return out


def _goes_on(piece: str) -> bool:
    if not piece.endswith("."):
        return False
    last = piece[piece.rfind(" ") + 1 :]
    return last.lstrip("([\"'") in ABBREVIATIONS or (len(piece) <= NUMBER_CHARS) or (len(last) == 2 and last[0].isupper())


def parted(piece: str, max_chars: int) -> list[str]:
    """A long piece in parts of at most `max_chars`: between fields if it looks like JSON, else between clauses, words, characters."""
    breaks = JSON_BREAKS if '":' in piece else PROSE_BREAKS
    for old, new in breaks:
        piece = piece.replace(old, new)
    units: list[str] = []
    for unit in piece.split("\n"):
        units += [unit] if len(unit) <= max_chars else _hard_parts(unit, max_chars)
    return _packed(units, max_chars)


def _hard_parts(unit: str, max_chars: int) -> list[str]:
    words: list[str] = []
    for word in unit.split(" "):
        words += [word[at : at + max_chars] for at in range(0, len(word), max_chars)]
    return _packed([word + " " for word in words], max_chars)


def _packed(units: list[str], max_chars: int) -> list[str]:
    """Neighbours joined as long as they fit."""
    out: list[str] = []
    held: list[str] = []
    size = 0
    for unit in units:
        if held and size + len(unit) > max_chars:
            out.append("".join(held).strip())
            held, size = [], 0
        held.append(unit)
        size += len(unit)
    return [*out, "".join(held).strip()]
