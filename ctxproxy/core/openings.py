"""What stands at the start of the first kept user message in place of the turns before it: no message is added, roles stay in turn (000-15)."""

from __future__ import annotations

import re

from ctxproxy.core.frames import WORDINGS, Background, frame_text, said
from ctxproxy.core.language import Language
from ctxproxy.core.markers import end_of_background, turns_compacted
from ctxproxy.core.messages import Message, text_of, with_fields

HEADS = re.compile("|".join(re.escape(turns_compacted(0, language)).replace("0", r"\d+") for language in WORDINGS))


def opened(message: Message, background: Background, turns: int, language: Language) -> Message:
    """A user message that begins with a background of `turns` turns; its own text or parts follow as they were."""
    title, body = WORDINGS[language].title, frame_text(background, language)
    opening = "\n".join((turns_compacted(turns, language) + body.removeprefix(title), end_of_background(language), "", ""))
    content = message.content
    if isinstance(content, list):
        return with_fields(message, content=[{"type": "text", "text": opening}, *content])
    return with_fields(message, content=opening + (content if isinstance(content, str) else ""))


def parted(message: Message) -> list[Message]:
    """Such a message as a frame and the message without it, so that nobody takes the one for the user's words; any other as it is."""
    text = text_of(message)
    ends = [(language, text.find(end)) for language in WORDINGS if (end := "\n" + end_of_background(language)) in text]
    head = HEADS.match(text) if ends and message.role == "user" else None
    if head is None:
        return [message]
    language, at = ends[0]
    frame = said("user", WORDINGS[language].title + text[head.end() : at])
    content = message.content
    if isinstance(content, list):
        return [frame, with_fields(message, content=content[1:])]
    return [frame, with_fields(message, content=text[at + len("\n" + end_of_background(language)) :].removeprefix("\n\n"))]
