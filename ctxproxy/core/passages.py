"""What messages say as pieces of a summary: lines, sentences and fields, the words in each, what each costs and whose it is.

What is read out of one message is remembered as columns, so that a long conversation is gone through message by message, not piece by piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from sys import intern
from typing import NamedTuple, TypeAlias

from ctxproxy.core.flatten import flattened
from ctxproxy.core.language import Language
from ctxproxy.core.memo import Memo, Reading, no_memo, text_key
from ctxproxy.core.messages import Message, text_of, tool_calls
from ctxproxy.core.sentences import units

WORD = re.compile(r"[^\W\u3400-\u9fff]+(?:[-./:@][^\W\u3400-\u9fff]+)*")
HAN = re.compile("[\u3400-\u9fff]")
BLANKS = str.maketrans(dict.fromkeys("\"'`(){}[]<>,;|=!?*", " "))
ENCODED_CHARS = 200
ENCODED = re.compile(rf"[A-Za-z0-9+/=_-]{{{ENCODED_CHARS},}}")
SMALL_TALK_WORDS = """
ok okay yes no sure thanks great hello hi hey bye cool nice good done yep nope alright awesome perfect wow please continue
好 好的 嗯 嗯嗯 谢谢 谢谢你 你好 您好 是 是的 对 对的 不客气 再见 可以 行 哈哈 没问题 明白 明白了 知道了 继续
"""
SMALL_TALK = frozenset(SMALL_TALK_WORDS.split()) | {"thank you", "thank you very much", "go on", "no problem", "you're welcome", "got it"}
COMMON_WORDS = """
a an the and or but if then so of to in on at by for with from as is are was were be been being it its this that these those i you he she we they
me him her us them my your his our their do does did have has had will would can could should may might not no yes there here what which who when
where how why all any some just very also about into over than more most up out too really like get got one im ive dont s t re ve ll m d
的 了 是 我 你 他 她 它 们 这 那 有 在 不 也 就 都 和 吗 呢 吧 啊 么 还 很 会 要 说 个 上 到 去 来 得 着 过 可 以 没
"""
STOPWORDS = frozenset(COMMON_WORDS.split())
WORD_EDGES = ".:-_/@#$%^&+~\\"
"""What may be inside a word, not at its edge."""
PLAIN = re.compile(r"[A-Z]?[a-z]+")
LONGEST_WORD_CHARS = 80
"""Longer ones are encoded data: they say nothing."""
CUE_WORDS = """
never must only always prefer decided decision chose chosen agreed because instead rejected cause fixed failed error failure warning todo next
remaining conclusion result budget deadline limit goal important remember
"""
CUES = frozenset(CUE_WORDS.split())
CODE_FACTOR, NUMBER_FACTOR, NAME_FACTOR, HAN_FACTOR, CUE_FACTOR, STOP_FACTOR = 4.0, 2.0, 1.5, 0.15, 2.0, 0.1
"""What a word counts beside a plain one: ids, paths and names of code; numbers; names; two neighbouring Chinese characters (most are no word)."""
KNOWN_WORDS = 32_768
"""How many words' classes are remembered, about 4 MB."""
ROLE_FACTORS = {"user": 1.1, "assistant": 1.0, "tool": 0.5, "function": 0.5}
GOAL_FACTOR = 1.5
"""For the first user message: it states what all of this is for."""
ASKING_FACTOR = 0.6
ASKING = ("?", "？", "吗", "呢", "吗。", "呢。")
COST_EXPONENT = 0.9
"""How much length is held against a piece; at 1 only fragments win, at 0 only long ones."""
COST_FLOOR_TOKENS = 2.0
CALL_CHARS = 240
LABELS: dict[Language, dict[str, str]] = {
    "en": {"user": "User: ", "assistant": "Assistant: ", "tool": "Tool {}: ", "call": "Called "},
    "zh": {"user": "用户：", "assistant": "助手：", "tool": "工具 {}：", "call": "调用 "},
}
UNITS_FACTOR = 5.0
Bag: TypeAlias = tuple[str, ...]


class Said(NamedTuple):
    """The units of one message, each once."""

    texts: tuple[str, ...]
    keys: tuple[int, ...]
    """Equal for texts that differ in case only: hashes, which take less than a second copy of each text."""
    bags: tuple[Bag, ...]
    """The words in each."""
    prices: tuple[float, ...]
    """What each costs beside how much it counts."""
    factors: tuple[float, ...]
    """What its words count by what they are, by its price: what it is worth at most is this times what the rarest word counts."""


class Speaker(NamedTuple):
    """What stands before the units of a message, and whether its lines are sentences."""

    label: str
    prose: bool = False


@dataclass(frozen=True, slots=True)
class Pieces:
    """Units in their places, column by column."""

    speaker: Callable[[int], Speaker]
    """Of an owner."""
    texts: Sequence[str]
    bags: Sequence[Bag]
    prices: Sequence[float]
    factors: Sequence[float]
    owners: Sequence[int]
    """Which message each belongs to."""

    def picked(self, places: Sequence[int]) -> Pieces:
        """Those in these places."""
        return Pieces(
            self.speaker,
            list(map(self.texts.__getitem__, places)),
            list(map(self.bags.__getitem__, places)),
            list(map(self.prices.__getitem__, places)),
            list(map(self.factors.__getitem__, places)),
            list(map(self.owners.__getitem__, places)),
        )


def pieces_of(messages: Sequence[Message], language: Language, unit_chars: int, known: Collection[str] = frozenset(), memo: Memo = no_memo) -> Pieces:
    """The units of all messages, calls in short form among them; small talk, repetitions and what is `known` left out."""
    read = _read(messages, language, unit_chars, memo)
    keys = list(chain.from_iterable([said.keys for said in read]))
    left = sorted(dict(zip(reversed(keys), reversed(range(len(keys))), strict=True)).values())  # where each stands first
    pieces = _joined(read, _Speakers(messages, LABELS[language]))
    if not frozenset(known).isdisjoint(pieces.texts):
        left = [at for at in left if pieces.texts[at] not in known]
    return pieces if len(left) == len(keys) else pieces.picked(left)


def _joined(read: Sequence[Said], speaker: Callable[[int], Speaker]) -> Pieces:
    """All units, one owner's after the other's."""
    return Pieces(
        speaker,
        list(chain.from_iterable([said.texts for said in read])),
        list(chain.from_iterable([said.bags for said in read])),
        list(chain.from_iterable([said.prices for said in read])),
        list(chain.from_iterable([said.factors for said in read])),
        list(chain.from_iterable([[owner] * len(said.texts) for owner, said in enumerate(read)])),
    )


def _read(messages: Sequence[Message], language: Language, unit_chars: int, memo: Memo) -> Sequence[Said]:
    """The units of each message; the first user message is the goal, which counts more."""
    name = f"units {language} {unit_chars}"
    read = list(memo(Reading(name, UNITS_FACTOR), messages, lambda message: _said(message, LABELS[language], unit_chars, 1.0)))
    goal = next((at for at, message in enumerate(messages) if message.role == "user"), None)
    if goal is not None:
        reading = Reading(f"goal {name}", UNITS_FACTOR)
        read[goal : goal + 1] = memo(reading, [messages[goal]], lambda message: _said(message, LABELS[language], unit_chars, GOAL_FACTOR))
    return read


def lines_of(texts: Sequence[str], owners: Sequence[int], *, prose: bool) -> Pieces:
    """Pieces that are no message's, as they are."""
    bags, prices = list(map(_words, texts)), list(map(_cost, texts))
    return Pieces(lambda _: Speaker("", prose), texts, bags, prices, list(map(_factor, bags, prices)), owners)


def readable(text: str) -> str:
    """JSON as plain lines, and without encoded data: it says nothing, and in slices it would look like words."""
    text = flattened(text)
    return ENCODED.sub(" ", text) if any(len(word) > ENCODED_CHARS for word in text.split()) else text


def is_small_talk(text: str) -> bool:
    """Whether a text is a word of politeness and nothing else."""
    return text.lower().strip(" .!?,~。！，？～") in SMALL_TALK


def estimate(text: str) -> float:
    """Tokens of a sentence with its join, by a rule of thumb on the low side: 4.5 characters, or 1.5 Chinese ones, a token."""
    return 1 + (len(text) / 4.5 if text.isascii() else len(text) / 1.5)


def _cost(text: str) -> float:
    cost: float = (estimate(text) + COST_FLOOR_TOKENS) ** COST_EXPONENT
    return cost


NOTHING = Said((), (), (), (), ())


def _said(message: Message, labels: dict[str, str], unit_chars: int, weight: float) -> Said:
    """What a message says, small talk and its own repetitions left out."""
    found: dict[str, str] = {}
    for text in (*units(readable(text_of(message)), unit_chars), *_calls(message, labels, unit_chars)):
        if not is_small_talk(text):
            found.setdefault(text.lower(), text)
    if not found:
        return NOTHING
    texts, factor = tuple(found.values()), ROLE_FACTORS.get(message.role, 1.0) * weight
    prices = tuple([_cost(text) / (factor * (ASKING_FACTOR if low.endswith(ASKING) else 1.0)) for low, text in found.items()])
    bags = tuple(map(_words, texts))
    return Said(texts, tuple(map(text_key, found)), bags, prices, tuple(map(_factor, bags, prices)))


def _calls(message: Message, labels: dict[str, str], unit_chars: int) -> Iterator[str]:
    for call in tool_calls(message):
        yield from units(f"{labels['call']}{call.name} {readable(call.arguments)}", min(unit_chars, CALL_CHARS))


def _words(text: str) -> Bag:
    """The words of a text but the commonest, each once, with what sticks to them, paths and ids whole; of Chinese the single characters.

    Interned: a word of a thousand messages is held once, and is looked up by what it is, not by how it reads.
    """
    plain = text.translate(BLANKS).replace(". ", " ").replace(": ", " ").rstrip(".:").split() if text.isascii() else ()
    found = plain or (*WORD.findall(text), *HAN.findall(text))
    return tuple([intern(word) for word in dict.fromkeys(found) if word.lower() not in STOPWORDS])


@lru_cache(KNOWN_WORDS)
def factor_of(word: str) -> float:
    """What a word counts by what it is."""
    word = word.strip(WORD_EDGES)
    low = word.lower()
    if not word or len(word) > LONGEST_WORD_CHARS:
        return 0.0
    if low in CUES or low in STOPWORDS:
        return CUE_FACTOR if low in CUES else STOP_FACTOR
    if not word.isascii():
        return HAN_FACTOR if HAN.match(word) else 1.0
    if word.isalpha() and PLAIN.fullmatch(word):
        return NAME_FACTOR if word[0].isupper() else 1.0
    return NUMBER_FACTOR if word.isdigit() else CODE_FACTOR


def _factor(words: Bag, price: float) -> float:
    return sum(map(factor_of, words)) / price


class _Speakers:
    """Who said a message."""

    def __init__(self, messages: Sequence[Message], labels: dict[str, str]) -> None:
        self._messages = messages
        self._labels = labels

    def __call__(self, at: int) -> Speaker:
        message, labels = self._messages[at], self._labels
        if message.role not in ("tool", "function"):
            return Speaker(labels.get(message.role, ""), prose=True)
        name = self._names.get(str(message.fields.get("tool_call_id")), "") or str(message.fields.get("name") or "")
        return Speaker(labels["tool"].format(name).replace(" :", ":").replace(" ：", "："))

    @cached_property
    def _names(self) -> dict[str, str]:
        return {call.id: call.name for message in self._messages for call in tool_calls(message)}
