"""What a new session of a known user starts with: one framed block that tells of the user's earlier sessions, bounded and made once (003-40)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxproxy.core.carryover import Digest
from ctxproxy.core.extractive import CountText, squeeze
from ctxproxy.core.frames import MEMORY, acknowledgement, item, said, without_frames
from ctxproxy.core.language import Language
from ctxproxy.core.memory_points import user_block
from ctxproxy.core.messages import Message
from ctxproxy.core.points import MemoryPoint
from ctxproxy.core.records import Summary
from ctxproxy.core.situation import Situation

MOST_TOKENS = 2000
"""Of the whole block."""
SHARE = 0.1
"""Of the prompt's budget, at most."""
ITEM_TOKENS = 400
"""Of one session, or one piece."""
LEAST_TOKENS = 16
"""What is left of an item in less room is not worth its place."""
TOO_MUCH = 4
"""A block that takes more than one in so many tokens of a prompt is left out: the model is another one by now, or its window smaller."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """Something of an earlier session: the day it is of, and what is told."""

    day: str
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """The messages that a session starts with; so many sessions and pieces are in it, and the facts as one."""

    messages: tuple[Message, Message]
    items: int


def room_for(prompt_tokens: int) -> int:
    """How many tokens the block may take in a prompt that may have so many."""
    return min(MOST_TOKENS, int(prompt_tokens * SHARE))


def told_of(summaries: Sequence[Summary], digest: Digest | None) -> str:
    """What tells of a session: its newest summary, and what was said after that in short; "" if there is nothing."""
    newest = max(summaries, key=lambda summary: summary.created, default=None)
    later = digest is not None and (newest is None or digest.created > newest.created)
    return "\n".join(text for text in (without_frames(newest.text) if newest else "", digest.text if digest and later else "") if text)


@dataclass(frozen=True, slots=True)
class Past:
    """All that may be told of a user's earlier sessions."""

    facts: Sequence[MemoryPoint] = ()
    sessions: Sequence[Remembered] = ()
    pieces: Sequence[Remembered] = ()


def block_of(past: Past, room: int, count_text: CountText, language: Language) -> Block | None:
    """The block: facts, sessions, pieces; each item shortened to its bound and left out where no room is left; None if there is nothing to tell."""
    wording = MEMORY[language]
    lines = [wording.title]
    items = 0
    left = room - count_text(wording.title) - count_text(acknowledgement(language).content) - len(MEMORY)
    if known := user_block(past.facts, min(ITEM_TOKENS, left), count_text, language):
        lines.append(known)
        left -= count_text(known) + 1
        items += 1
    for heading, found in ((wording.sessions, past.sessions), (wording.pieces, past.pieces)):
        kept = _fitting(found, left - count_text(heading), count_text)
        if kept:
            lines += [heading, *kept]
            left -= sum(count_text(line) + 1 for line in (heading, *kept))
            items += len(kept)
    return Block((said("user", "\n".join(lines)), acknowledgement(language)), items) if items else None


def _fitting(found: Sequence[Remembered], left: int, count_text: CountText) -> list[str]:
    """The items that fit, one after the other, as entries of a list."""
    kept: list[str] = []
    for one in found:
        entry = _entry(one, min(ITEM_TOKENS, left - 1), count_text)
        if entry:
            kept.append(entry)
            left -= count_text(entry) + 1
    return kept


def _entry(one: Remembered, room: int, count_text: CountText) -> str:
    """An item within its room, lines that are moved in counted; "" if too little of it fits."""
    bare = room - count_text(item(f"{one.day}: "))
    for _ in range(2):
        text = squeeze(one.text, bare, count_text).strip() if bare >= LEAST_TOKENS else ""
        entry = item(f"{one.day}: {text}") if text else ""
        over = count_text(entry) - room
        if over <= 0:
            return entry
        bare -= over
    return ""


def fits_beside(block_tokens: int, prompt_tokens: int) -> bool:
    """Whether a block stands in a prompt that may have so many tokens."""
    return block_tokens * TOO_MUCH <= prompt_tokens


def lighter(s: Situation, prompt_tokens: int) -> Situation:
    """The situation without its block, where that is too much for a prompt that may have so many tokens."""
    tokens = sum(map(s.count, s.preload))
    if not s.preload or fits_beside(tokens, prompt_tokens):
        return s
    return replace(s, preload=(), budget=replace(s.budget, fixed=s.budget.fixed - tokens))
