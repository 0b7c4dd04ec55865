"""What the tables of the stage tests share: run one stage on messages and look at what came of them."""

from __future__ import annotations

from collections.abc import Sequence

from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.pipeline import run
from ctxproxy.core.stages.base import Context, Stage
from ctxproxy.core.transcript import Entry
from tests.core.histories import context, transcript


def rewrite(stage: Stage, messages: Sequence[Message], told: Context | None = None, pinned: Sequence[int] = ()) -> tuple[Entry, ...]:
    """The entries after the stage, with a target of 0 and nothing recent unless told."""
    outcome = run(transcript(messages, pinned), [stage], told or context())
    assert outcome.failed == ()
    return outcome.transcript.entries


def changed(entries: Sequence[Entry]) -> list[int]:
    """The indexes of entries that are no originals any more."""
    return [at for at, entry in enumerate(entries) if entry.origin != "original"]


def texts(entries: Sequence[Entry], chars: int = 12) -> list[str]:
    """The beginnings of the entries' texts."""
    return [text_of(entry.message)[:chars] for entry in entries]
