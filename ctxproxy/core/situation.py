"""All that the decisions about a request depend on, and what follows from it at once: the history as a transcript, the stages' context."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ctxproxy.core.budget import Budget, reachable
from ctxproxy.core.complexity import COMPLEX_TURNS, complexity, window_turns
from ctxproxy.core.forgetting import CLEARED, RESTORED, expired, without
from ctxproxy.core.language import language_of
from ctxproxy.core.memo import Memo, no_memo
from ctxproxy.core.messages import Message, Tip, text_of
from ctxproxy.core.pins import pins_tokens
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import Checkpoint, Foreseen, Summary
from ctxproxy.core.sessions import Reconciled
from ctxproxy.core.stages.base import Context
from ctxproxy.core.transcript import CountMessage, Transcript, Whole


@dataclass(frozen=True)
class Situation:
    """All that a plan depends on; sizes in tokens as the upstream counts them."""

    leading: tuple[Message, ...]
    reconciled: Reconciled
    counts: tuple[int, ...]
    """One per message of the history."""
    budget: Budget
    """Its fixed part holds the leading messages, the preload, tools and response format."""
    policy: Policy
    variant: str
    count: CountMessage
    count_text: Callable[[str], int]
    now: float
    since: float
    """When the conversation began, as far as is known."""
    checkpoints: Collection[Checkpoint] = ()
    summaries: Sequence[Summary] = ()
    pins: Sequence[str] = ()
    forgotten: frozenset[Tip] = frozenset()
    cleared: frozenset[Tip] = frozenset()
    """All messages that a conversation was cleared of: left out like forgotten ones, and yet not lost to a search of the past."""
    restored: frozenset[Tip] = frozenset()
    """All messages that were left behind at a restart: likewise."""
    summarizer: Literal["llm", "extractive", "off"] = "llm"
    summary_max_tokens: int = 1024
    memo: Memo = no_memo
    preload: tuple[Message, ...] = ()
    """What the session began with of its user's earlier ones: stands behind the leading messages, and no stage touches it."""
    idle_s: float = 0.0
    """Since the session's request before this one."""
    foreseen: Foreseen | None = None
    """A compaction that was worked out ahead."""

    @cached_property
    def gone(self) -> frozenset[Tip]:
        """The messages that are never sent: what somebody had forgotten or cleared, what was not restored, and what the client let expire."""
        return self.forgotten | self.cleared | self.restored | expired(self.reconciled.history, self.reconciled.tips)


def base_transcript(s: Situation) -> Transcript:
    """The history as it stands in the log, without what is to be forgotten (whole groups, so that no call loses its result)."""
    whole = Whole(s.reconciled.history, s.counts, s.reconciled.tips)
    kept = without(whole, s.cleared, s.count, CLEARED) if s.cleared else whole
    kept = without(kept, s.restored - s.cleared, s.count, RESTORED) if s.restored - s.cleared else kept
    gone = gone_tips(s) - s.cleared - s.restored
    return kept if not gone or gone.isdisjoint(s.reconciled.tips) else without(kept, gone, s.count)


def gone_tips(s: Situation) -> frozenset[Tip]:
    """The messages that are never sent."""
    return s.gone


def recent_turns(s: Situation) -> int:
    """How many of the newest turns are left alone: as the policy says, or by how complex the newest of the user's words are (003-41)."""
    if s.policy.keep_recent_turns != "auto":
        return s.policy.keep_recent_turns
    said = [text_of(message) for message in s.reconciled.history if message.role == "user"]
    return window_turns(complexity(said[-COMPLEX_TURNS:]))


def context_of(s: Situation, transcript: Transcript) -> Context:
    """What the stages get to know; room for the pinned texts is kept."""
    language = language_of([entry.message for entry in transcript.entries], s.memo)
    told = zip(s.reconciled.tips, s.reconciled.history, strict=True)
    held, gone = pins_tokens(s.pins, s.count, language), gone_tips(s)
    return Context(
        count=s.count,
        count_text=s.count_text,
        limit=max(s.budget.limit - held, 0),
        target=max(reachable(s.budget, sum(transcript.entries[at].tokens for at in transcript.protected)) - held, 0),
        keep_recent_turns=recent_turns(s),
        max_turns=s.policy.max_turns,
        language=language,
        originals={tip: message for tip, message in told if tip not in gone} if gone else dict(told),
        summaries=s.summaries,
        pins=s.pins,
        summarizer=s.summarizer,
        summary_max_tokens=min(s.summary_max_tokens, max(s.budget.limit // 4, 1)),
        memo=s.memo,
    )
