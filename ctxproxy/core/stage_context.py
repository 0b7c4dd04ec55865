"""What a stage may know beside the transcript that it rewrites: sizes, limits, the originals, ready summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from ctxproxy.core.language import Language
from ctxproxy.core.memo import Memo, Reading, no_memo
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.records import Summary
from ctxproxy.core.transcript import CountMessage, Entry

T = TypeVar("T")
REWRITTEN_FACTOR = 2.0
"""A message as it is sent and decoded, in times of the longer one that it was made of."""


@dataclass(frozen=True, slots=True)
class Context:
    """All sizes in tokens of the history part."""

    count: CountMessage
    count_text: Callable[[str], int]
    limit: int
    """What fits: the effective budget."""
    target: int
    """Where to stop."""
    keep_recent_turns: int = 4
    max_turns: int | None = None
    """`context.max_turns`: more turns than that are too many, however short; None: no limit."""
    language: Language = "en"
    originals: Mapping[Tip, Message] = field(default_factory=dict, repr=False)
    """The history's messages as they came, for a stage that reads again what others have shortened."""
    summaries: Sequence[Summary] = ()
    """Ready summaries whose tips are on this chain."""
    pins: Sequence[str] = ()
    """Texts to keep verbatim."""
    rules: Sequence[str] = ()
    """Rules in force that were said before the newest turns: what a summary holds word for word; limit and target leave room for them."""
    summarizer: Literal["llm", "extractive", "off"] = "llm"
    summary_max_tokens: int = 1024
    memo: Memo = no_memo
    """Remembers what is read out of originals from one request to the next."""

    def remembered(self, what: str, entry: Entry, make: Callable[[], T]) -> T:
        """What `make` gives, remembered as `what` of an entry in its place: its tip stands for all that was said before it."""
        if not entry.tip:
            return make()
        reading = Reading(f"{what} {self.language} {entry.tokens} {entry.tip}", REWRITTEN_FACTOR)
        return self.memo(reading, [entry.message], lambda _: make())[0]

    def rewritten(self, how: str, entry: Entry, make: Callable[[], Message]) -> Message:
        """The message that `make` makes of an entry, remembered too; the entry's own where that is what comes out."""
        made = self.remembered(how, entry, lambda: None if (other := make()) is entry.message else other)
        return made or entry.message
