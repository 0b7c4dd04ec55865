"""A summary without a model: the sentences that say most with least, in their own words and order.

Sentences are chosen greedily by what they add: rare words, names, numbers, paths and words of decision count, words that are already
there count little (budgeted maximum coverage, lazily evaluated). Deterministic, and about as fast as one pass over the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from math import log
from typing import NamedTuple

from ctxproxy.core.coverage import best_first
from ctxproxy.core.flatten import flattened
from ctxproxy.core.language import Language
from ctxproxy.core.memo import Memo, no_memo
from ctxproxy.core.messages import Message, text_of, tool_calls
from ctxproxy.core.sentences import UNIT_CHARS, units

CountText = Callable[[str], int]

WORD = re.compile(r"[^\W\u3400-\u9fff]+(?:[-./:@][^\W\u3400-\u9fff]+)*")
HAN = re.compile("[\u3400-\u9fff]")
BLANKS = str.maketrans(dict.fromkeys("\"'`(){}[]<>,;|=!?*", " "))
EDGES = ".:-_/@#$%^&+~\\"
"""What may be inside a word, not at its edge."""
PLAIN = re.compile(r"[A-Z]?[a-z]+")
LONGEST_WORD_CHARS = 80
"""Longer ones are encoded data: they say nothing."""
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
CUE_WORDS = """
never must only always prefer decided decision chose chosen agreed because instead rejected cause fixed failed error failure warning todo next
remaining conclusion result budget deadline limit goal important remember
"""
CUES = frozenset(CUE_WORDS.split())
ROLE_FACTORS = {"user": 1.1, "assistant": 1.0, "tool": 0.5, "function": 0.5}
GOAL_FACTOR = 1.5
"""For the first user message: it states what all of this is for."""
ASKING_FACTOR = 0.6
ASKING = ("?", "？", "吗", "呢", "吗。", "呢。")
CODE_FACTOR, NUMBER_FACTOR, NAME_FACTOR, HAN_FACTOR, CUE_FACTOR, STOP_FACTOR = 4.0, 2.0, 1.5, 0.15, 2.0, 0.1
"""What a word counts beside a plain one: ids, paths and names of code; numbers; names; two neighbouring Chinese characters (most are no word)."""
COST_EXPONENT = 0.9
"""How much length is held against a piece; at 1 only fragments win, at 0 only long ones."""
COST_FLOOR_TOKENS = 2.0
ENOUGH = 0.02
"""Of the room: what may be left unused; to count a long text takes as long as to choose it."""
MIN_UNIT_CHARS = 60
KNOWN_WORDS = 32_768
"""How many words' classes are remembered, about 4 MB."""
CALL_CHARS = 240
LABELS: dict[Language, dict[str, str]] = {
    "en": {"user": "User: ", "assistant": "Assistant: ", "tool": "Tool {}: ", "call": "Called "},
    "zh": {"user": "用户：", "assistant": "助手：", "tool": "工具 {}：", "call": "调用 "},
}


class Unit(NamedTuple):
    """A sentence, line or field and the words in it."""

    text: str
    words: tuple[str, ...]
    factor: float = 1.0
    """Less for a question."""


class Speaker(NamedTuple):
    """Whose the units of a message are: the message's place, what stands before them, how much they count, whether lines are sentences."""

    message: int
    label: str
    factor: float = 1.0
    prose: bool = False


class Piece(NamedTuple):
    """A unit in its place."""

    unit: Unit
    speaker: Speaker


def extract(
    messages: Sequence[Message],
    max_tokens: int,
    count_text: CountText,
    language: Language,
    known: Collection[str] = frozenset(),
    memo: Memo = no_memo,
) -> str:
    """The best sentences of the messages, but those that are `known`, in at most `max_tokens`, one line a speaker; "" if none has weight."""
    pieces = [piece for piece in pieces_of(messages, language, _unit_chars(max_tokens), memo) if piece.unit.text not in known]
    return _fitted(pieces, max_tokens, count_text)


def best_of(text: str, max_tokens: int, count_text: CountText) -> str:
    """The best lines of a text that is no prose, JSON as plain lines, in at most `max_tokens`, in order."""
    lines = dict.fromkeys(units(_readable(text), _unit_chars(max_tokens)))
    pieces = [Piece(Unit(line, _words(line)), Speaker(0, "")) for line in lines]
    return _fitted(pieces, max_tokens, count_text)


def squeeze(text: str, max_tokens: int, count_text: CountText) -> str:
    """A text in at most `max_tokens`: whole if it fits, else its best lines and sentences in order."""
    if count_text(text) <= max_tokens:
        return text
    lines = [(number, sentence) for number, line in enumerate(text.splitlines()) for sentence in units(line, _unit_chars(max_tokens))]
    pieces = [Piece(Unit(sentence, _words(sentence)), Speaker(number, "", prose=True)) for number, sentence in lines]
    return _fitted(pieces, max_tokens, count_text)


def _unit_chars(max_tokens: int) -> int:
    """Pieces no longer than about a quarter of a small summary."""
    return min(UNIT_CHARS, max(MIN_UNIT_CHARS, max_tokens))


def pieces_of(messages: Sequence[Message], language: Language, unit_chars: int, memo: Memo = no_memo) -> list[Piece]:
    """The sentences of all messages, calls in short form among them; small talk and repetitions left out."""
    labels = LABELS[language]
    names = {call.id: call.name for message in messages for call in tool_calls(message)}
    goal = next((n for n, message in enumerate(messages) if message.role == "user"), -1)
    kind = f"units {language} {unit_chars}"
    seen: set[str] = set()
    out: list[Piece] = []
    for number, message in enumerate(messages):
        found: tuple[Unit, ...] = memo(kind, message, lambda m=message: _units_of(m, labels, unit_chars))  # type: ignore[misc]
        if not found:
            continue
        factor = ROLE_FACTORS.get(message.role, 1.0) * (GOAL_FACTOR if number == goal else 1.0)
        speaker = Speaker(number, *_label(message, names, labels, factor))
        for unit in found:
            key = unit.text.lower()
            if key not in seen:
                seen.add(key)
                out.append(Piece(unit, speaker))
    return out


def _units_of(message: Message, labels: dict[str, str], unit_chars: int) -> tuple[Unit, ...]:
    """What a message says, small talk left out."""
    texts = (*units(_readable(text_of(message)), unit_chars), *_calls(message, labels, unit_chars))
    said = (text for text in texts if not is_small_talk(text))
    return tuple(Unit(text, _words(text), ASKING_FACTOR if text.lower().endswith(ASKING) else 1.0) for text in said)


def is_small_talk(text: str) -> bool:
    """Whether a text is a word of politeness and nothing else."""
    return text.lower().strip(" .!?,~。！，？～") in SMALL_TALK


def _readable(text: str) -> str:
    """Without encoded data: it says nothing, and in slices it would look like words."""
    text = flattened(text)
    return ENCODED.sub(" ", text) if any(len(word) > ENCODED_CHARS for word in text.split()) else text


def _label(message: Message, names: dict[str, str], labels: dict[str, str], factor: float) -> tuple[str, float, bool]:
    if message.role in ("tool", "function"):
        name = names.get(str(message.fields.get("tool_call_id")), "") or str(message.fields.get("name") or "")
        return labels["tool"].format(name).replace(" :", ":").replace(" ：", "："), factor, False
    return labels.get(message.role, ""), factor, True


def _calls(message: Message, labels: dict[str, str], unit_chars: int) -> Iterator[str]:
    for call in tool_calls(message):
        yield from units(f"{labels['call']}{call.name} {_readable(call.arguments)}", min(unit_chars, CALL_CHARS))


def _words(text: str) -> tuple[str, ...]:
    """The words of a text but the commonest, each once, with what sticks to them, paths and ids whole; of Chinese the single characters."""
    plain = text.translate(BLANKS).replace(". ", " ").replace(": ", " ").rstrip(".:").split() if text.isascii() else ()
    found = plain or (*WORD.findall(text), *HAN.findall(text))
    return tuple(word for word in dict.fromkeys(found) if word.lower() not in STOPWORDS)


def _ranked(pieces: Sequence[Piece]) -> Iterator[int]:
    """The indexes of pieces in the order in which they are worth their cost."""
    bags = [piece.unit.words for piece in pieces]
    total = len(pieces) + 1
    times = Counter(chain.from_iterable(bags))
    rarity = {seen: log(total / (seen + 0.5)) for seen in set(times.values())}
    weights = {word: rarity[seen] * _class_factor(word) for word, seen in times.items()}
    prices = [(_estimate(unit.text) + COST_FLOOR_TOKENS) ** COST_EXPONENT / (speaker.factor * unit.factor) for unit, speaker in pieces]
    return best_first(bags, weights, prices)


def _estimate(text: str) -> float:
    """Tokens of a sentence with its join, by a rule of thumb on the low side: 4.5 characters, or 1.5 Chinese ones, a token."""
    return 1 + (len(text) / 4.5 if text.isascii() else len(text) / 1.5)


@lru_cache(KNOWN_WORDS)
def _class_factor(word: str) -> float:
    word = word.strip(EDGES)
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


def _fitted(pieces: Sequence[Piece], max_tokens: int, count_text: CountText) -> str:
    """The longest beginning of the ranking that fits, or one nearly as long, in the original order; each try tells how long the next is."""
    ranking = _Ranking(pieces)
    aim = max_tokens * (1 - ENOUGH / 2)
    least, over, best, room = 0, len(pieces) + 1, "", aim
    while over - least > 1:
        order = ranking.first(room, least + 1, over - 1)
        if len(order) == least:
            break
        text = _rendered(sorted((i, pieces[i]) for i in order))
        if (size := count_text(text)) <= max_tokens:
            least, best = len(order), text
        else:
            over = len(order)
        if 0 <= max_tokens - size <= ENOUGH * max_tokens:
            break
        room = ranking.sums[len(order)] * aim / max(size, 1)
    return best


class _Ranking:
    """The ranking as far as it was asked for; `sums[n]` is what the first n pieces take, estimated."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._more = _ranked(pieces)
        self._order: list[int] = []
        self.sums = [0.0]

    def first(self, room: float, least: int, most: int) -> list[int]:
        """The best pieces that take at most `room`, but at least and at most so many; fewer where no more are of weight."""
        while len(self._order) < least or (len(self._order) < most and self.sums[-1] <= room):
            best = next(self._more, None)
            if best is None:
                break
            self._order.append(best)
            self.sums.append(self.sums[-1] + _estimate(self._pieces[best].unit.text))
        return self._order[: min(max(bisect_right(self.sums, room) - 1, least), most)]


def _rendered(placed: Sequence[tuple[int, Piece]]) -> str:
    """One line for each speaker; what was left out between two sentences is shown as "…", lines of a result stay lines."""
    out: list[str] = []
    before, last = -2, Speaker(-1, "", prose=True)
    for at, (unit, speaker) in placed:
        if speaker.message != last.message and (speaker.label != last.label or not speaker.prose or not speaker.label):
            out.append(("\n" if out else "") + speaker.label)
        elif not speaker.prose:
            out.append("\n")
        else:
            out.append(" " if at == before + 1 else " … ")
        out.append(unit.text)
        before, last = at, speaker
    return "".join(out)
