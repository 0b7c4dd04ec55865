"""How a summary stands in a prompt: as background that nobody takes for a new request, in the conversation's own language.

One user message holds the summary, the user's own words, rules and pins; a short assistant message follows it where the next message is
the user's. Headings are noun phrases, never orders: a notice in the imperative was obeyed by an agent (field case 081).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctxproxy.core import jsontext, markers
from ctxproxy.core.language import Language
from ctxproxy.core.messages import Message, make, text_of, with_fields
from ctxproxy.core.prompts import WORDINGS as PROMPT_WORDINGS
from ctxproxy.core.prompts import shortened


class Background(NamedTuple):
    """What a frame holds; all but the summary are verbatim texts, oldest first."""

    summary: str
    words: tuple[str, ...] = ()
    """What the user said."""
    rules: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    passages: str = ""
    """What says most of all that was said, in order."""
    values: tuple[str, ...] = ()
    """Exact values that stand nowhere else."""


class Wording(NamedTuple):
    """The fixed texts of one language."""

    title: str
    words: str
    rules: str
    pins: str
    passages: str
    values: str
    acknowledgement: str
    steps: str


WORDINGS: dict[Language, Wording] = {
    "en": Wording(
        title="[Background: summary of the earlier conversation, not a new request]",
        words="Earlier user messages, word for word:",
        rules="Rules and limits in force, word for word:",
        pins="Pinned texts, word for word:",
        passages="Passages from the earlier conversation, word for word:",
        values="Exact values:",
        acknowledgement="Understood. The background is noted.",
        steps="[Background: earlier steps on this request are part of the summary above]",
    ),
    "zh": Wording(
        title="【背景：此前对话的摘要，并非新的请求】",
        words="用户此前的原话：",
        rules="仍然有效的规则与限制（原文）：",
        pins="固定保留的原文：",
        passages="此前对话的原文片段：",
        values="精确值：",
        acknowledgement="好的，背景已了解。",
        steps="【背景：此请求的先前步骤见上方摘要】",
    ),
}


class MemoryWording(NamedTuple):
    """The fixed texts around what is remembered of earlier sessions."""

    title: str
    sessions: str
    pieces: str


MEMORY: dict[Language, MemoryWording] = {
    "en": MemoryWording(
        title="[Background: remembered from earlier conversations with this user, not a new request]",
        sessions="Earlier conversations, the newest first:",
        pieces="Passages that were often looked for, word for word:",
    ),
    "zh": MemoryWording(
        title="【背景：与该用户此前各次对话的记忆，并非新的请求】",
        sessions="此前的对话（由新到旧）：",
        pieces="经常被查找的原文片段：",
    ),
}
CUT: dict[Language, str] = {language: wording.cut for language, wording in PROMPT_WORDINGS.items()}
CARRIED_CHARS = 160
"""Of arguments and results of a group that carries a frame."""
BETWEEN_VALUES = "; "
TITLES = tuple(wording.title for wording in WORDINGS.values())
OUR_TITLES = (*TITLES, *(wording.title for wording in MEMORY.values()))
FILLERS = frozenset(text for language, w in WORDINGS.items() for text in (w.acknowledgement, w.steps, markers.acknowledgement(language)))
"""Words of ours that hold nothing."""


def frame_text(background: Background, language: Language) -> str:
    """The text of a frame: title, summary, and the sections that hold something."""
    wording = WORDINGS[language]
    parts = [wording.title, without_frames(background.summary)]
    for heading, items in ((wording.words, background.words), (wording.rules, background.rules), (wording.pins, background.pins)):
        if items:
            parts += [heading, *map(item, items)]
    if background.passages:
        parts += [wording.passages, background.passages]
    if background.values:
        parts += [f"{wording.values} {BETWEEN_VALUES.join(background.values)}"]
    return "\n".join(part for part in parts if part)


def item(text: str) -> str:
    """A text as an entry of a list, further lines moved in."""
    return "- " + "\n  ".join(text.strip().splitlines())


def said(role: str, text: str) -> Message:
    """A message of ours."""
    return make({"role": role, "content": text})


def acknowledgement(language: Language) -> Message:
    """The assistant message (under 120 characters) between a frame and a user message, for models that demand alternation."""
    return make({"role": "assistant", "content": WORDINGS[language].acknowledgement})


def gap(role: str, language: Language) -> Message:
    """A word of the given role between two messages of the other, where what stood between them is in the summary."""
    return make({"role": role, "content": markers.acknowledgement(language)})


def carried(group: Sequence[Message], text: str, language: Language) -> tuple[Message, ...]:
    """An assistant message and its results with `text` in place of what was said, and all else in short.

    It stands where a frame cannot: between a user message and an assistant's, which both have to stay where they are.
    """
    calls = [_short_call(call) for call in group[0].fields.get("tool_calls") or ()]
    front = with_fields(group[0], content=text, **({"tool_calls": calls} if calls else {}))
    return (front, *(_short_result(message, language) for message in group[1:]))


def _short_call(call: Any) -> Any:
    body = call.get("function") if isinstance(call, dict) else None
    if not isinstance(body, dict) or len(str(body.get("arguments"))) <= CARRIED_CHARS:
        return call
    short = jsontext.encode({"shortened": str(body["arguments"])[:CARRIED_CHARS]}).decode()
    return {**call, "function": {**body, "arguments": short}}


def _short_result(message: Message, language: Language) -> Message:
    text = text_of(message)
    return message if len(text) <= CARRIED_CHARS else with_fields(message, content=shortened(text, CARRIED_CHARS, CUT[language]))


def is_frame(message: Message) -> bool:
    """Whether a message is one of our frames: never to be taken for the user's words, never summarized as if it were."""
    return text_of(message).startswith(OUR_TITLES)


def is_filler(message: Message) -> bool:
    """Whether a message is one of our acknowledgements or gaps: it holds nothing."""
    return text_of(message) in FILLERS


def language_of_frame(text: str) -> Language:
    """In which language our own words in a frame are."""
    return next((language for language, wording in WORDINGS.items() if text.startswith(wording.title)), "en")


def parse(text: str) -> Background | None:
    """The parts of a frame's text; None if it is none."""
    if not text.startswith(TITLES):
        return None
    wording = WORDINGS[language_of_frame(text)]
    sections: dict[str, list[str]] = {"": [], wording.words: [], wording.rules: [], wording.pins: [], wording.passages: []}
    at = ""
    values: tuple[str, ...] = ()
    *lines, last = text[len(wording.title) :].lstrip("\n").split("\n")
    if last.startswith(wording.values):
        values = tuple(last[len(wording.values) :].strip().split(BETWEEN_VALUES))
    else:
        lines.append(last)
    for line in lines:
        if line in sections and line:
            at = line
        else:
            sections[at].append(line)
    words, rules, pins = (tuple(_items(sections[heading])) for heading in (wording.words, wording.rules, wording.pins))
    return Background("\n".join(sections[""]), words, rules, pins, "\n".join(sections[wording.passages]), values)


def _items(lines: list[str]) -> list[str]:
    items: list[str] = []
    for line in lines:
        if line.startswith("- ") or not items:
            items.append(line.removeprefix("- "))
        else:
            items[-1] += "\n" + line.removeprefix("  ")
    return items


def without_frames(text: str) -> str:
    """A text without our own titles: a model that was shown one may give it back, and then they would pile up."""
    return "\n".join(line for line in text.strip().splitlines() if line.strip() not in OUR_TITLES).strip()
