"""Leaves out the oldest: what the client marked `drop_first`, then whole turns, then groups of the newest turn.

The first user message, the goal, stays as long as it fits beside what must stay, and so do the user messages of turns in which
something is pinned; roles keep alternating if the client's did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxproxy.core.folding import Folder
from ctxproxy.core.policy import Fraction
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Fold, Span, Transcript


@register("drop_oldest", loss="lossy")
class DropOldest(Stage, frozen=True, forbid_unknown_fields=True):
    """A goal over `goal_share` of the limit is no goal but a document, and goes with its turn."""

    goal_share: Fraction = 0.25

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        folder = Folder(transcript, context.language, "the oldest go first")
        *old, last = transcript.turns or (Span(0, 0),)
        left = {at: entry.tokens for at, entry in enumerate(transcript.entries)}
        for fold in self._in_order(transcript, folder, context, old, last):
            _take(left, fold, context)
            yield fold
        if sum(left.values()) > context.limit:
            yield from folder.runs(Span(0, last.start))

    def _in_order(self, transcript: Transcript, folder: Folder, context: Context, old: Sequence[Span], last: Span) -> Iterator[Fold]:
        yield from _marked_first(transcript, folder)
        keeps_goal = self._keeps_goal(transcript, folder, context)
        for n, turn in enumerate(old):
            yield from folder.body(turn) if n == 0 and keeps_goal else folder.turn(turn)
        for group in folder.free_groups(last):
            yield folder.fold(group)

    def _keeps_goal(self, transcript: Transcript, folder: Folder, context: Context) -> bool:
        goal = next(iter(transcript.entries), None)
        if goal is None or goal.message.role != "user" or goal.message.directives.drop_first or goal.tokens > self.goal_share * context.limit:
            return False
        return goal.tokens + sum(transcript.entries[at].tokens for at in folder.kept) <= context.limit


def _take(left: dict[int, int], fold: Fold, context: Context) -> None:
    """Note what a fold leaves of the tokens at its places, if it gains any."""
    gain = sum(left[at] for at in range(*fold.span)) - sum(map(context.count, fold.by))
    if gain > 0:
        left.update(dict.fromkeys(range(*fold.span), 0))
        left[fold.span.start] = sum(map(context.count, fold.by))


def _marked_first(transcript: Transcript, folder: Folder) -> Iterator[Fold]:
    """Folds for what the client let go first: a user message with its whole turn, anything else as its group."""
    turns = {turn.start: turn for turn in transcript.turns}
    for group in folder.free_groups(Span(0, len(transcript.entries))):
        if any(entry.message.directives.drop_first for entry in transcript.entries[group.start : group.end]):
            yield from folder.turn(turns[group.start]) if group.start in turns else [folder.fold(group)]
