"""A plan as a value: what is sent for a request, and why; the array that carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ctxproxy.core.budget import Budget
from ctxproxy.core.checkpoints import replay, resume
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.pairing import repair
from ctxproxy.core.pins import STAGE as PINS
from ctxproxy.core.recall_titles import BESIDE
from ctxproxy.core.records import Checkpoint, SessionKey
from ctxproxy.core.situation import Situation, gone_tips
from ctxproxy.core.text_index import Place
from ctxproxy.core.transcript import Transcript, opening


class Brought(NamedTuple):
    """A piece that was brought back for this very request: the session that it is of, where it is there, what it says."""

    key: SessionKey
    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent for a request, and why."""

    transcript: Transcript
    messages: tuple[Message, ...]
    """The array to send, leading system messages first."""
    changed: bool
    """False: the client's own bytes go out (for a thin client: its stored history and its messages, each unedited)."""
    tokens_in: int
    """Logical size of the prompt: fixed parts and the whole history."""
    tokens_sent: int
    budget: Budget
    actions: tuple[tuple[str, int], ...] = ()
    saved: tuple[tuple[str, int], ...] = ()
    """Tokens that each of them saved, but for marks at the front."""
    failed: tuple[str, ...] = ()
    """Stages that failed and were left out."""
    checkpoint: Checkpoint | None = None
    """A new decision to keep; None if nothing new was decided."""
    recalled: Checkpoint | None = None
    """The same with passages that were found again, to keep for this very request; None if there are none."""
    brought: tuple[Brought, ...] = ()
    """The pieces in that, but for those of memory files."""
    wants: Tip = ""
    """A summary up to this tip should stand where an extractive stand-in stands now."""

    @property
    def compacts(self) -> bool:
        """Whether a new decision shortens the prompt; putting pins at its head or taking recalled passages out does not."""
        return self.checkpoint is not None and any(name != PINS and name not in BESIDE for name, _ in self.actions)

    @property
    def replays(self) -> bool:
        """Whether an earlier decision is sent again, and nothing new was decided."""
        told = self.transcript
        return self.changed and not self.actions and (bool(told.left) or any(entry.origin != "original" for entry in told.entries))

    @property
    def fits(self) -> bool:
        return self.transcript.tokens <= self.budget.limit


def array(s: Situation, transcript: Transcript, *, changed: bool) -> tuple[Message, ...]:
    """The messages to send: the leading ones, the preload, then the transcript's, valid for the strictest upstream where they were changed."""
    preload = s.preload[:1] if opening(transcript.entries) == "assistant" else s.preload  # an answer follows it already
    messages = (*s.leading, *preload, *(entry.message for entry in transcript.entries))
    return tuple(repair(messages)) if changed else messages


def size_of(s: Situation, history_tokens: int) -> int:
    """The size of a prompt with so much history."""
    return s.budget.fixed + history_tokens


def as_decided(s: Situation, base: Transcript) -> Transcript:
    """The history as the newest decision about it has it, before anything is done about its size."""
    checkpoint = resume(s.reconciled.tips, s.checkpoints, s.variant, s.summaries, gone_tips(s))
    return replay(checkpoint, base, s.count) if checkpoint else base
