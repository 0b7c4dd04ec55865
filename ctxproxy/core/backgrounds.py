"""What the background of a prompt holds when a stretch gives way: a ready summary or a stand-in, the user's words, rules, pins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxproxy.core.extractive import CountText, squeeze
from ctxproxy.core.facts import rules
from ctxproxy.core.frames import Background, frame_text, is_filler, parse, without_frames
from ctxproxy.core.language import Language
from ctxproxy.core.markers import is_marker
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.prompts import WORDINGS, shortened
from ctxproxy.core.records import Summary
from ctxproxy.core.summaries import Need, fitting, level, stand_in

WORDS_SHARE = 0.4
"""Of a background's room, at most: the user's own words."""
GOAL_SHARE = 0.5
"""Of the room for words, at most: the first of them, which says what all is for."""
RULES_SHARE = 0.3
LEAST_CHARS = 60
"""A smaller part of a message is not worth its place."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much a background may hold, in tokens."""

    total: int
    words: int
    summary: int


def background_of(
    messages: Sequence[Message],
    newer: Sequence[Message],
    ready: Summary | None,
    pins: Sequence[str],
    room: Room,
    count: CountText,
    language: Language,
) -> Background:
    """The background for `messages`, of which `ready` tells all but the `newer` ones; without it, all are `newer`."""
    earlier = [found for found in (parse(text_of(message)) for message in messages) if found]
    spoken = [message for message in messages if is_spoken(message)]
    held = Background("", pins=tuple(pins))
    left = max(0, room.total - count(frame_text(held, language)))
    words = _words(
        [*(word for one in earlier for word in one.words), *map(text_of, spoken)], min(room.words, int(left * WORDS_SHARE)), count, language
    )
    left -= sum(count(word) + 2 for word in words)
    summary = _summary(earlier, newer, words, ready, min(room.summary, left), count, language)
    known = level("\n".join((summary, *words, *pins)))
    found = dict.fromkeys([*(rule for one in earlier for rule in one.rules), *rules(spoken)])
    missing = [rule for rule in found if level(rule) not in known]
    kept = fitting(missing, min(int(room.total * RULES_SHARE), left - count(summary)), count)
    return Background(summary, tuple(words), tuple(kept), tuple(pins))


def is_spoken(message: Message) -> bool:
    """Whether a message is the user's own: no frame or filler of ours, no marker in place of one."""
    text = text_of(message)
    return message.role == "user" and parse(text) is None and not is_filler(message) and not is_marker(text)


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


def _summary(
    earlier: Sequence[Background],
    newer: Sequence[Message],
    words: Sequence[str],
    ready: Summary | None,
    most_tokens: int,
    count: CountText,
    language: Language,
) -> str:
    """A ready summary, with the best of what came after it; else the best of all, an earlier background's summary carried on."""
    told = ready.text if ready else "\n".join(one.summary for one in earlier)
    rest = tuple(message for message in newer if not (message.role == "user" and text_of(message) in words))
    if not rest:
        return squeeze(without_frames(told), most_tokens, count)
    return stand_in(Need("", rest, language, most_tokens), count, earlier=told)
