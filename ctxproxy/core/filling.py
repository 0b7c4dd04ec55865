"""Which groups stay where there is no room for all, taken in an order of preference; neighbours that go are folded together."""

from __future__ import annotations

from collections.abc import Sequence

from ctxproxy.core.folding import Folder
from ctxproxy.core.language import Language
from ctxproxy.core.transcript import CountMessage, Fold, Span, Transcript

EXACT_TRIES = 3
"""How often the room is guessed again by exactly what is over; after that by halves."""
SLACK = 0.02
"""Of the room: near enough to full."""


class Window:
    """What of a transcript stays when so many tokens of its free groups do."""

    def __init__(self, transcript: Transcript, language: Language, count: CountMessage) -> None:
        self.transcript = transcript
        self.count = count
        self.folder = Folder(transcript, language)
        self.sizes = [sum(entry.tokens for entry in transcript.entries[group.start : group.end]) for group in transcript.groups]
        self.free = [n for n, group in enumerate(transcript.groups) if self.folder.kept.isdisjoint(range(*group))]

    def filled(self, order: Sequence[int], most: int) -> list[tuple[range, Fold]]:
        """The runs of groups that go, with their folds, so that at most `most` tokens stay, and not much fewer, if that can be.

        The words that keep roles in turn cost something too: how much is known only when it is known what goes.
        """
        room = high = most - self.transcript.tokens + sum(self.sizes[n] for n in order)
        low, tried, best = 0, 0, None
        while True:
            folds = self.folds(order, room)
            over = self.after(folds) - most
            if over <= 0:
                best, low = folds, room
            else:
                high = room
            if high - low <= max(1, most * SLACK) or -most * SLACK <= over <= 0:
                return self.folds(order, 0) if best is None else best
            tried += 1
            room = room - over if tried <= EXACT_TRIES and low < room - over < high else (low + high) // 2

    def folds(self, order: Sequence[int], room: int) -> list[tuple[range, Fold]]:
        """The folds of what has no room, in order; neighbouring groups go together."""
        self.folder.reset()
        runs: list[range] = []
        for n in self._gone(order, room):
            if runs and runs[-1].stop == n:
                runs[-1] = range(runs[-1].start, n + 1)
            else:
                runs.append(range(n, n + 1))
        groups = self.transcript.groups
        return [(run, self.folder.fold(Span(groups[run.start].start, groups[run.stop - 1].end))) for run in runs]

    def _gone(self, order: Sequence[int], room: int) -> list[int]:
        gone = []
        for n in order:
            if self.sizes[n] <= room:
                room -= self.sizes[n]
            else:
                gone.append(n)
        return sorted(gone)

    def after(self, folds: Sequence[tuple[range, Fold]]) -> int:
        """What is left, in tokens, when all folds that gain something are made."""
        costs: dict[bytes, int] = {}
        left = self.transcript.tokens
        for run, fold in folds:
            cost = 0
            for message in fold.by:
                if message.raw not in costs:
                    costs[message.raw] = self.count(message)
                cost += costs[message.raw]
            left -= max(0, sum(self.sizes[run.start : run.stop]) - cost)
        return left
