"""Which of the two languages that our own texts exist in a conversation is held in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from ctxproxy.core.memo import Memo, Reading, no_memo
from ctxproxy.core.messages import Message, text_of

Language: TypeAlias = Literal["en", "zh"]

SCRIPT = Reading("script", 0.5)
SAMPLE_CHARS = 300
"""Of the first and of the last line of a message: there people say what they want; what they paste stands between."""
HAN = re.compile("[\u3400-\u9fff]")
KANA = re.compile("[\u3040-\u30ff]")
WORD_CHARS = 6
"""Characters of an English word with its blank: what one Chinese character is weighed against."""


class Script(NamedTuple):
    """How much of a text is Chinese and how much Japanese, in characters, and how much is neither, in words."""

    han: int
    kana: int
    words: float


def language_of(messages: Iterable[Message], memo: Memo = no_memo) -> Language:
    """`zh` if more than half of what user and assistant wrote, code and pasted texts aside, is Chinese; else `en`, Japanese included.

    Tool results do not count: their language is their program's (anomalyco/opencode#20156 is a Chinese chat summed up in English).
    """
    by_people = [message for message in messages if message.role in ("user", "assistant")]
    scripts = memo(SCRIPT, by_people, lambda message: _script(_sample(text_of(message))))
    han, kana, words = map(sum, zip(*scripts, strict=True)) if scripts else (0, 0, 0.0)
    return "zh" if han > words and kana < han / 5 else "en"


def _script(text: str) -> Script:
    han, kana = (0, 0) if text.isascii() else (len(HAN.findall(text)), len(KANA.findall(text)))
    return Script(han, kana, (len(text) - han) / WORD_CHARS)


def han_share(text: str) -> float:
    """The share of Chinese among the words of a text, 0 to 1; 0 for an empty one."""
    han = len(HAN.findall(text))
    return han / (han + (len(text) - han) / WORD_CHARS) if han else 0.0


def _sample(text: str) -> str:
    lines = "".join(text.split("```")[::2]).strip().split("\n")
    return lines[0][:SAMPLE_CHARS] + (lines[-1][-SAMPLE_CHARS:] if len(lines) > 1 else "")
