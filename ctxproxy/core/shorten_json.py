"""Making a JSON text shorter so that it stays JSON: long strings are cut, long arrays and objects lose members, notices say so.

Numbers keep their spelling and repeated keys stay apart: nothing in the outcome says what the original did not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ctxproxy.core.language import Language
from ctxproxy.core.markers import Unit, omitted
from ctxproxy.core.selection import is_noteworthy, level, select

MEMBER_CHARS = 48
"""Smallest room that a member of an array or object is cut to before others are left out."""
FORMAT_SAMPLE_CHARS = 4000
NOTE_KEY = "[note]"
OMITTED_KEY = "[omitted]"

Cut: TypeAlias = Callable[[str, int, Language], str]
"""Shortens a plain text to a number of characters."""


class Number(NamedTuple):
    """A number as it was spelled."""

    literal: str


class Members(NamedTuple):
    """An object's members in order, repeated keys repeated."""

    pairs: list[tuple[str, Node]]


Node: TypeAlias = "str | bool | Number | Members | list[Node] | None"


def shorten_json(text: str, max_chars: int, language: Language, cut: Cut, banner: str = "") -> str | None:
    """The JSON text in about `max_chars` characters, still JSON; None if it is no object or array, or cannot get that short."""
    try:
        node: Node = json.loads(text, object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=Number)
        short = _Writer.like(text, language, cut).outcome(node, max_chars, banner)
    except (ValueError, RecursionError):
        return None
    return short if len(short) <= max(max_chars, 0) * 5 // 4 else None


@dataclass(frozen=True)
class _Writer:
    """Writes nodes in the manner of the original: its blanks after commas and colons, its escapes."""

    language: Language
    cut: Cut
    ascii_only: bool
    comma: str
    colon: str
    whole_texts: dict[int, str] = field(default_factory=dict)
    """Full text by node identity: each is asked for once per level above it."""

    @classmethod
    def like(cls, text: str, language: Language, cut: Cut) -> _Writer:
        sample = text[:FORMAT_SAMPLE_CHARS]
        escaped = text.isascii() and "\\u" in sample
        return cls(language, cut, escaped, ", " if ", " in sample and '": ' in sample else ",", ": " if '": ' in sample else ":")

    def outcome(self, node: Node, room: int, banner: str) -> str:
        if isinstance(node, Members):
            lead = [_quoted(NOTE_KEY) + self.colon + _quoted(banner)] if banner else []
            return self.members(node, room - sum(map(len, lead)) - 2, lead)
        if isinstance(node, list):
            lead = [_quoted(banner)] if banner else []
            return self.items(node, room - sum(map(len, lead)) - 2, lead)
        raise ValueError("neither an object nor an array")

    def string(self, value: str) -> str:
        return json.dumps(value, ensure_ascii=self.ascii_only)

    def whole(self, node: Node) -> str:
        """The full text of a node."""
        if isinstance(node, str):
            return self.string(node)
        if isinstance(node, Number):
            return node.literal
        if not isinstance(node, (Members, list)):
            return json.dumps(node)
        known = self.whole_texts.get(id(node))
        if known is None:
            known = self.whole_texts[id(node)] = self._joined(node)
        return known

    def _joined(self, node: Members | list[Node]) -> str:
        if isinstance(node, Members):
            return "{" + self.comma.join(self.string(key) + self.colon + self.whole(value) for key, value in node.pairs) + "}"
        return "[" + self.comma.join(map(self.whole, node)) + "]"

    def short(self, node: Node, room: int) -> str:
        """A node's text in about `room` characters."""
        whole = self.whole(node)
        if len(whole) <= room:
            return whole
        if isinstance(node, str):
            return self._short_string(node, len(whole), room)
        if isinstance(node, Members):
            return self.members(node, room - 2, [])
        if isinstance(node, list):
            return self.items(node, room - 2, [])
        return whole

    def _short_string(self, value: str, whole_chars: int, room: int) -> str:
        """Escapes make the text longer than the value: the room is scaled by what they did to the whole."""
        short = self.string(self.cut(value, max(room - 2, 0) * len(value) // max(whole_chars, 1), self.language))
        return short if len(short) < whole_chars else self.string(value)

    def members(self, node: Members, room: int, lead: Sequence[str]) -> str:
        keys = [self.string(key) + self.colon for key, _ in node.pairs]
        parts = self._fitted(keys, [value for _, value in node.pairs], room)
        note = _quoted(OMITTED_KEY) + self.colon
        return "{" + self.comma.join((*lead, *self._noted(parts, "keys", note, once=True))) + "}"

    def items(self, node: list[Node], room: int, lead: Sequence[str]) -> str:
        parts = self._fitted([""] * len(node), node, room)
        return "[" + self.comma.join((*lead, *self._noted(parts, "items", "", once=False))) + "]"

    def _fitted(self, prefixes: Sequence[str], nodes: Sequence[Node], room: int) -> list[str | None]:
        """The members' texts, each shortened to a fair share; None for those left out."""
        extra = len(self.comma)
        sizes = [len(prefix) + len(self.whole(node)) + extra for prefix, node in zip(prefixes, nodes, strict=True)]
        cap = max(level(sizes, room), min(room // 4, 1000), MEMBER_CHARS)
        parts = [prefix + self.short(node, cap - len(prefix) - extra) for prefix, node in zip(prefixes, nodes, strict=True)]
        sizes = [len(part) + extra for part in parts]
        if sum(sizes) <= room:
            return list(parts)
        kept = set(select(sizes, lambda at: is_noteworthy(parts[at]), room, MEMBER_CHARS))
        return [part if at in kept else None for at, part in enumerate(parts)]

    def _noted(self, parts: Sequence[str | None], unit: Unit, prefix: str, *, once: bool) -> list[str]:
        """The kept members with a notice in each gap, or one in the first for all."""
        out: list[str] = []
        missing = sum(part is None for part in parts)
        gap = 0
        for part in (*parts, ""):
            if part is None:
                gap += 1
                continue
            if gap and missing:
                out.append(prefix + _quoted(omitted(missing if once else gap, len(parts), unit, self.language)))
                missing = 0 if once else missing
            gap = 0
            out.append(part)
        return out[:-1]


def _quoted(note: str) -> str:
    """A text of ours as a JSON string: readable also where the original escapes what is not ASCII."""
    return json.dumps(note, ensure_ascii=False)
