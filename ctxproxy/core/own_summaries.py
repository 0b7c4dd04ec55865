"""What a summarizer of the user's own is given and may answer (002-17); count, time range and timestamp of the summary are filled in by us."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctxproxy.core.language import Language
from ctxproxy.core.summaries import Draft, Need


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A stretch of a conversation that is to be told in short; public: fields are only ever added, with a default."""

    messages: tuple[Mapping[str, Any], ...]
    """The originals, oldest first, as the client sent them; the function may keep or change them, they are its own copies."""
    previous: str
    """The summary of what came before them; "" if they are all."""
    language: Language
    """The conversation's own: `en` or `zh`."""
    max_tokens: int
    """How long the summary may be; what is no smaller than the originals is refused."""
    pins: tuple[str, ...] = ()
    """Texts that are kept word for word beside the summary in any case."""
    start: float = 0.0
    """When the conversation began, seconds since the epoch."""
    end: float = 0.0


Summarize: TypeAlias = Callable[[SummaryRequest], object]
"""A function, `async` or not, that gives the summary as a text, or as a mapping or an object with the text as its `content`."""


def request_of(need: Need) -> SummaryRequest:
    """What the function is given; not our own frames, not what the client keeps out of summaries or had erased."""
    messages = tuple(copy.deepcopy(dict(message.fields)) for message in need.covered if message.raw)
    previous = need.previous.text if need.previous else ""
    return SummaryRequest(messages, previous, need.language, need.max_tokens, need.pins, need.start, need.end)


def draft_of(answer: object) -> Draft:
    """The function's answer, to be judged as a model's is; an answer of another kind is an empty one."""
    text = answer
    if isinstance(answer, Mapping):
        text = answer.get("content")
    elif not isinstance(answer, str):
        text = getattr(answer, "content", None)
    return Draft(text if isinstance(text, str) else "")
