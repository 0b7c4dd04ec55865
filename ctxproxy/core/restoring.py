"""What a client that sends only what is new finds after a restart: all, or of the newest turns the user's words and the answers to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from ctxproxy.core.carryover import Restore
from ctxproxy.core.messages import Message, Tip, tool_calls

Depth: TypeAlias = int | Literal["all", "auto"]
"""How many turns are restored; `auto` goes by the most turns of the policy."""
LEAST_TURNS, PART = 3, 6
"""000-28: 20 turns at most make 3, 30 make 5."""


def turns_of(depth: Depth, max_turns: int | None) -> int | None:
    """How many turns are restored; None for all."""
    if depth == "all":
        return None
    return max(LEAST_TURNS, (max_turns or 0) // PART) if depth == "auto" else depth


def left_behind(history: Sequence[Message], tips: Sequence[Tip], restore: Restore | None) -> frozenset[Tip]:
    """The messages that are not restored; none on a branch on which nothing was."""
    if restore is None or restore.tip not in tips:
        return frozenset()
    end = tips.index(restore.tip) + 1
    starts = [at for at in range(end) if history[at].role == "user"]
    if not starts:
        return frozenset()
    kept = set(_restored(history, starts[-restore.turns :], end))
    return frozenset(tips[at] for at in range(end) if at not in kept and not history[at].directives.pin)


def _restored(history: Sequence[Message], starts: Sequence[int], end: int) -> Iterator[int]:
    """The indexes of what is restored: of each turn its user message and its final answer; the last one whole while it is not answered."""
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        answer = _answer(history, start + 1, stop)
        if answer is None and stop == end:
            yield from range(start, stop)
        else:
            yield start
            if answer is not None:
                yield answer


def _answer(history: Sequence[Message], start: int, stop: int) -> int | None:
    """The index of the answer that ends a turn: nothing but words, and nothing after it."""
    last = stop - 1
    return last if last >= start and history[last].role == "assistant" and not tool_calls(history[last]) else None
