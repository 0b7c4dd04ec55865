"""What a stage may know beside the transcript that it rewrites: sizes, limits, the originals, ready summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ctxproxy.core.language import Language
from ctxproxy.core.memo import Memo, no_memo
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.records import Summary
from ctxproxy.core.transcript import CountMessage


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
