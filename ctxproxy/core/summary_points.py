"""Memory points that a summarizer gives beside its summary (001-22, 001-81): asked for in the same call, parted off, checked by schema.

What is not valid is refused as a whole, and never harms the summary that it came with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

from ctxproxy.core.decisions import triples
from ctxproxy.core.language import Language
from ctxproxy.core.messages import Message, Tip, text_of, tool_calls
from ctxproxy.core.points import MAX_KEY_CHARS, MAX_VALUE_CHARS, Point
from ctxproxy.core.prompts import Prompt

MOST_POINTS = 20
POINTS_TOKENS, POINTS_ROOM_TOKENS = 500, 700
"""What the block may add to an answer; that, and what asking for it adds to a call."""
LEAST_WINDOW_TOKENS = 8000
"""In a smaller window the room is the summary's."""
WEIGHT = 2.0
TAIL_CHARS = 20_000
"""The block stands at the end; in a longer tail nothing is looked for."""
NAME = '"memory_points"'
BLOCK = re.compile(r"(?:\n|^)```[a-z]{0,8}[ \t]*\n?(\{(?:(?!```)[\s\S])*\})\s*```\s*$")
TOKEN = re.compile(r"\d[\d,.]*")
ToldKind: TypeAlias = Literal["entity", "place", "number", "date", "decision", "preference", "feedback"]

ASKING: dict[Language, str] = {
    "en": """After the summary, on lines of its own, add one block of this form with the points most worth knowing later, at most {most}:
```json
{{"memory_points": [{{"kind": "number", "key": "budget", "value": "4,500 EUR"}}]}}
```
"kind" is one of entity, place, number, date, decision, preference, feedback. Values copied exactly. The block is no part of the summary.""",
    "zh": """摘要之后另起一行，附上如下形式的一个代码块，列出今后最值得知道的要点，最多 {most} 条：
```json
{{"memory_points": [{{"kind": "number", "key": "预算", "value": "4500元"}}]}}
```
"kind" 只能是 entity、place、number、date、decision、preference、feedback 之一。值须原样照抄。此代码块不计入摘要字数。""",
}


class ToldPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the block."""

    kind: ToldKind
    key: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_KEY_CHARS)]
    value: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_VALUE_CHARS)]


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The block at a summary's end."""

    memory_points: Annotated[tuple[ToldPoint, ...], msgspec.Meta(max_length=MOST_POINTS)]


class Parted(NamedTuple):
    """A summary without its block, what the block holds, and whether there was one that is not valid."""

    text: str
    told: tuple[ToldPoint, ...] = ()
    refused: bool = False


def asking(prompt: Prompt, language: Language) -> Prompt:
    """The call for a summary, asking for the block as well."""
    return Prompt(f"{prompt.system}\n\n{ASKING[language].format(most=MOST_POINTS)}", prompt.user, prompt.max_tokens + POINTS_TOKENS)


def parted(text: str) -> Parted:
    """A summarizer's answer taken apart; one without a block is all summary."""
    tail = text[-TAIL_CHARS:]
    match = BLOCK.search(tail) if NAME in tail else None
    if not match:
        return Parted(text)
    rest = text[: len(text) - len(tail) + match.start()].rstrip()
    try:
        return Parted(rest, msgspec.json.decode(match[1], type=Block).memory_points)
    except (msgspec.MsgspecError, UnicodeError):
        return Parted(rest, refused=True)


def points_of(told: Sequence[ToldPoint], text: str, covered: Sequence[Message], tip: Tip, time: float) -> list[Point]:
    """The points of a summary: what the block tells and the originals bear out, and the summary's lines `[entity|entity][action][goal]`."""
    said = "\n".join(one for m in covered for one in (text_of(m), *(call.arguments for call in tool_calls(m)))).lower() if told else ""
    found = [Point(one.kind, one.key.strip().lower(), one.value.strip(), tip, time, WEIGHT, "summary") for one in told if _is_said(one, said)]
    found += [Point("action", f"{' | '.join(t.entities)}: {t.action}"[:MAX_KEY_CHARS], t.goal, tip, time, WEIGHT, "summary") for t in triples(text)]
    return found


def _is_said(one: ToldPoint, said: str) -> bool:
    """Whether every number of a value stands in the originals: a model makes up numbers more easily than anything else."""
    return bool(one.key.strip() and one.value.strip()) and all(number.rstrip(".,") in said for number in TOKEN.findall(one.value))
