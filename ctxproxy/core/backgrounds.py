"""What the background of a prompt holds when a stretch gives way: a ready summary, the user's words, rules, pins, passages, exact values.

The summary is a model's; the rest is there with or without one, word for word, chosen anew from the whole stretch each time, so that it
does not wear out from one compaction to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxproxy.core.extractive import CountText, extract, squeeze
from ctxproxy.core.facts import rank
from ctxproxy.core.frames import FILLERS, TITLES, Background, frame_text, parse, without_frames
from ctxproxy.core.language import Language
from ctxproxy.core.markers import is_marker
from ctxproxy.core.memo import Memo, no_memo
from ctxproxy.core.messages import Message, make, text_of, tool_calls
from ctxproxy.core.prompts import WORDINGS, shortened
from ctxproxy.core.records import Summary
from ctxproxy.core.summaries import fitting, level, not_in

WORDS_SHARE = 0.08
"""Of a background's room, at most: the user's own words."""
GOAL_SHARE = 0.8
"""Of the room for words, at most: the first of them, which says what all is for."""
VALUES_SHARE, BARE_VALUES_SHARE = 0.2, 0.02
"""Of what is left, at most: exact values by themselves; the smaller share where no tool is called (a number says little without its
sentence). Measured on agents' conversations: a fifth finds more of what is used again than a tenth or a quarter."""
LEAST_CHARS = 60
"""A smaller part of a message is not worth its place."""
LEAST_TOKENS = 24
"""Nor are passages in less room."""
FRAME_TOKENS = 40
"""What a frame takes beside its background, at most."""
LEAST_SHARE = 0.25
"""Of the limit: what a frame may hold where the newest messages alone reach the target."""
SUMMARY_SHARE = 0.06
"""Of a small background, at most: the model's summary."""
HEADING_TOKENS = 14
"""At most, of a section."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much a background may hold, in tokens."""

    total: int
    words: int
    summary: int


def filled(room: Room, target: int, limit: int, staying: int) -> Room:
    """The room that a frame has where it may take all that `staying` tokens leave of the target, or a share of the limit if that is more
    and fits.
    """
    least = min(int(LEAST_SHARE * limit), max(limit - staying, 0))
    total = max(least, target - staying) - FRAME_TOKENS
    return Room(total, room.words, min(room.summary, int(SUMMARY_SHARE * total)))


class Source(NamedTuple):
    """What a background is made of: the messages that give way, those of them that passages are of, and a summary that is ready."""

    messages: Sequence[Message]
    newer: Sequence[Message]
    ready: Summary | None = None


def background_of(
    source: Source,
    pins: Sequence[str],
    room: Room,
    count: CountText,
    language: Language,
    rules: Sequence[str] = (),
    memo: Memo = no_memo,
) -> Background:
    """The background: a ready summary, passages and values of the newer messages, words of all; `rules` have room of their own."""
    messages, newer, ready = source
    texts = list(map(text_of, messages))
    earlier = [found for text in texts if text.startswith(TITLES) and (found := parse(text))]
    spoken = [text for message, text in zip(messages, texts, strict=True) if message.role == "user" and _is_theirs(text)]
    left = max(0, room.total - count(frame_text(Background("", pins=tuple(pins)), language)))
    words = _words([*(word for one in earlier for word in one.words), *spoken], min(room.words, int(left * WORDS_SHARE)), count, language)
    left -= _tokens(words, count)
    told = ready.text if ready else "\n".join(one.summary for one in earlier)
    summary = squeeze(without_frames(told), max(0, min(room.summary, left)), count)
    left -= count(summary)
    known = level("\n".join((summary, *words, *pins)))
    kept = [rule for rule in rules if level(rule) not in known]
    passages, values = _rest(newer, earlier, frozenset((*words, *kept)), known, left, count, language, memo)
    return Background(summary, tuple(words), tuple(kept), tuple(pins), passages, values)


def _is_theirs(text: str) -> bool:
    return not (text.startswith(TITLES) or text in FILLERS or is_marker(text))


def _tokens(items: Sequence[str], count: CountText) -> int:
    """What a section of these items takes."""
    return HEADING_TOKENS + sum(count(item) + 2 for item in items) if items else 0


def is_spoken(message: Message) -> bool:
    """Whether a message is the user's own: no frame or filler of ours, no marker in place of one."""
    return message.role == "user" and _is_theirs(text_of(message))


def _words(texts: Sequence[str], most_tokens: int, count: CountText, language: Language) -> list[str]:
    """The user's words that fit: the first, then the newest backwards, the one at the bound shortened; oldest first."""
    order = [0, *range(len(texts) - 1, 0, -1)] if texts else []
    chosen: dict[int, str] = {}
    for place, at in enumerate(order):
        room = int(most_tokens * GOAL_SHARE) if place == 0 else most_tokens
        text = _clipped(texts[at], room, count, language)
        if not text:
            if place:
                break
            continue
        chosen[at] = text
        most_tokens -= count(text) + 2
    return list(dict.fromkeys(chosen[at] for at in sorted(chosen) if chosen[at].strip()))


def _clipped(text: str, most_tokens: int, count: CountText, language: Language) -> str:
    tokens = count(text) + 2
    if tokens <= most_tokens:
        return text
    most_chars = int(len(text) * most_tokens / tokens * 0.8) - len(WORDINGS[language].cut)
    short = shortened(text, most_chars, WORDINGS[language].cut) if most_chars >= LEAST_CHARS else ""
    return short if short and count(short) + 2 <= most_tokens else ""


def _rest(
    messages: Sequence[Message],
    earlier: Sequence[Background],
    said: frozenset[str],
    known: str,
    most_tokens: int,
    count: CountText,
    language: Language,
    memo: Memo,
) -> tuple[str, tuple[str, ...]]:
    """The passages that say most, and the exact values that stand nowhere else, in what room is left; earlier ones are carried on."""
    texts = list(map(text_of, messages))
    ours = FILLERS | {text for text in texts if text.startswith(TITLES)}
    theirs = ours | said
    fresh = [m for m, text in zip(messages, texts, strict=True) if text not in (theirs if m.role == "user" else ours)]
    carried = [make({"role": "", "content": one.passages}) for one in earlier if one.passages]
    share = VALUES_SHARE if any(tool_calls(message) for message in messages) else BARE_VALUES_SHARE
    for_values = int(most_tokens * share)
    room = most_tokens - for_values - HEADING_TOKENS
    passages = extract([*carried, *fresh], room, count, language, said, memo) if room >= LEAST_TOKENS else ""
    held = "\n".join((known, *said, passages))
    values = dict.fromkeys([*(value for one in earlier for value in one.values), *rank(fresh, memo)])
    missing = not_in(values, held)
    return passages, tuple(fitting(missing, for_values - HEADING_TOKENS, count))
