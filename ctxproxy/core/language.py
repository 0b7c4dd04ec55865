"""Which of the two languages that our own texts exist in a conversation is held in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from ctxproxy.core.messages import Message, text_of

Language: TypeAlias = Literal["en", "zh"]

SAMPLE_CHARS = 4_000
"""Of each message; a pasted book says no more of the language than its first page."""
HAN = re.compile("[\u3400-\u9fff]")
KANA = re.compile("[\u3040-\u30ff]")
WORD_CHARS = 6
"""Characters of an English word with its blank: what one Chinese character is weighed against."""


def language_of(messages: Iterable[Message]) -> Language:
    """`zh` if more than half of what user and assistant wrote, code blocks aside, is Chinese; else `en`, Japanese included.

    Tool results do not count: their language is their program's (anomalyco/opencode#20156 is a Chinese chat summed up in English).
    """
    han = kana = words = 0.0
    for message in messages:
        if message.role in ("user", "assistant"):
            text = _prose(text_of(message))
            own = len(HAN.findall(text))
            han += own
            kana += len(KANA.findall(text))
            words += (len(text) - own) / WORD_CHARS
    return "zh" if han > words and kana < han / 5 else "en"


def han_share(text: str) -> float:
    """The share of Chinese among the words of a text, 0 to 1; 0 for an empty one."""
    han = len(HAN.findall(text))
    return han / (han + (len(text) - han) / WORD_CHARS) if han else 0.0


def _prose(text: str) -> str:
    return "".join(text[:SAMPLE_CHARS].split("```")[::2])
