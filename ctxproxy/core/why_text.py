"""The answer to "why did it forget this?" as a short text for people, English or Chinese; the API gives all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ctxproxy.core.language import Language
from ctxproxy.core.why import Held, Kind, StandIn, State, Step, Why

MOST_TOLD = 5
"""Messages that are told of; the oldest say it first, the others are counted."""
ShowTime: TypeAlias = Callable[[float], str]
"""Seconds since the epoch as the reader's clock shows them."""


class _Words(NamedTuple):
    nowhere: str
    found: str
    in_prompt: str
    not_in_prompt: str
    pinned: str
    place: str
    now: str
    left: str
    left_next: str
    stands: str
    stands_without: str
    nothing: str
    original: str
    more: str
    pin: str
    states: Mapping[State, str]
    kinds: Mapping[Kind, str]


WORDS: Mapping[Language, _Words] = {
    "en": _Words(
        nowhere="“{phrase}” stands in none of the {searched} messages of {session}.",
        found="“{phrase}” stands in {number} of the {searched} messages of {session}.",
        in_prompt="The next request carries it, at {places}.",
        not_in_prompt="The next request does not carry it.",
        pinned="It is pinned ({pins}).",
        place="{role}, turn {turn}, {time}: {excerpt}",
        now="now {state}: {why}",
        left="left the prompt at {time} with turn {turn}: {why}",
        left_next="leaves the prompt with the next request: {why}",
        stands="in its place: {kind} at #{at}, which holds it: {excerpt}",
        stands_without="in its place: {kind} at #{at}, which does not hold it: {excerpt}",
        nothing="nothing stands in its place",
        original="original: {marker}",
        more="… and {number} more messages",
        pin="To have it back: /pin {text}",
        states={
            "sent": "sent as it was",
            "compacted": "shortened",
            "summarized": "summarized",
            "dropped": "left out",
            "forgotten": "forgotten",
            "cleared": "cleared",
        },
        kinds={"frame": "a summary", "marker": "a marker", "shortened": "the shortened message", "word": "a word between two messages"},
    ),
    "zh": _Words(
        nowhere="会话 {session} 的 {searched} 条消息中都没有“{phrase}”。",
        found="会话 {session} 的 {searched} 条消息中，有 {number} 条包含“{phrase}”。",
        in_prompt="下一次请求会带上它，位于 {places}。",
        not_in_prompt="下一次请求不会带上它。",
        pinned="它已被固定（{pins}）。",
        place="{role}，第 {turn} 轮，{time}：{excerpt}",
        now="现状：{state}（{why}）",
        left="{time} 随第 {turn} 轮离开提示（{why}）",
        left_next="将随下一次请求离开提示（{why}）",
        stands="代替它的是第 {at} 条的{kind}，其中仍有此语：{excerpt}",
        stands_without="代替它的是第 {at} 条的{kind}，其中没有此语：{excerpt}",
        nothing="没有任何内容代替它",
        original="原文：{marker}",
        more="……另有 {number} 条消息",
        pin="要找回它：/pin {text}",
        states={
            "sent": "原样发送",
            "compacted": "已缩短",
            "summarized": "已摘要",
            "dropped": "已略去",
            "forgotten": "已遗忘",
            "cleared": "已清除",
        },
        kinds={"frame": "摘要", "marker": "标记", "shortened": "缩短后的消息", "word": "两条消息之间的过渡语"},
    ),
}


def told(why: Why, language: Language, shown: ShowTime) -> str:
    """The answer in lines."""
    return "\n".join(_lines(why, WORDS[language], shown))


def _lines(why: Why, words: _Words, shown: ShowTime) -> Iterator[str]:
    number = len(why.held) + why.left_off
    yield (words.found if number else words.nowhere).format(phrase=why.phrase, searched=why.searched, session=why.session, number=number)
    if why.prompt:
        yield words.in_prompt.format(places=", ".join(map(str, why.prompt)))
    elif number:
        yield words.not_in_prompt
    if why.pins:
        yield words.pinned.format(pins=", ".join(map(str, why.pins)))
    for at, held in enumerate(why.held[:MOST_TOLD], 1):
        first, *others = _held(held, words, shown)
        yield f"{at}. {first}"
        yield from (f"   {line}" for line in others)
    if number > MOST_TOLD:
        yield words.more.format(number=number - MOST_TOLD)
    if why.pin:
        yield words.pin.format(text=why.pin)


def _held(held: Held, words: _Words, shown: ShowTime) -> Iterator[str]:
    yield words.place.format(role=held.role, turn=held.turn, time=shown(held.time), excerpt=held.found.excerpt)
    yield words.now.format(state=words.states[held.state], why=held.why)
    if held.left:
        yield _left(held.left, words, shown)
    if held.stands_in:
        yield _stands(held.stands_in, words)
    elif held.state != "sent":
        yield words.nothing
    yield words.original.format(marker=held.marker)


def _left(left: Step, words: _Words, shown: ShowTime) -> str:
    if left.time is None:
        return words.left_next.format(why=left.why)
    return words.left.format(time=shown(left.time), turn=left.turn, why=left.why)


def _stands(stand_in: StandIn, words: _Words) -> str:
    wording = words.stands if stand_in.holds else words.stands_without
    return wording.format(kind=words.kinds[stand_in.kind], at=stand_in.at, excerpt=stand_in.excerpt)
