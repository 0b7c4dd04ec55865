"""Trimming as LangChain's example has it (004-10 to 004-14): the first message and the newest few are sent, the log keeps all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from ctxproxy.core.policy import Count, Tokens
from ctxproxy.core.recency import newest_tokens
from ctxproxy.core.seams import counted, group_end, group_start, silent_folds
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Fold, Span, Transcript

ODD_LAST, EVEN_LAST = 4, 3
"""So many of the newest stay of an odd or an even number of messages: with the first they are odd or even again (004-13)."""
REASON = "neither among the first messages nor the newest"


@register("keep_first_last", loss="lossy")
class KeepFirstLast(Stage, frozen=True, forbid_unknown_fields=True):
    """Keeps the `first` messages and the `last`, or as many of the newest as fit into `max_tokens` with the first; without either,
    4 of an odd number of messages, 3 of an even one. Whole groups, roles in turn, the last user message always.
    """

    first: Annotated[int, msgspec.Meta(ge=0)] = 1
    last: Count | None = None
    max_tokens: Tokens | None = None

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        yield from self._folds(transcript, context)

    def due(self, transcript: Transcript, context: Context) -> bool:
        return bool(self._folds(transcript, context))

    def _folds(self, transcript: Transcript, context: Context) -> list[Fold]:
        places = counted(transcript)
        if self.max_tokens is not None:
            return self._beyond_tokens(transcript, places, self.max_tokens, context)
        if self.last is not None:
            return self._beyond(transcript, places, self.last, context)
        if len(places) <= self.first + EVEN_LAST - 1:
            return []
        if len(places) % 2 == 0:
            return self._beyond(transcript, places, EVEN_LAST, context)
        folds = self._beyond(transcript, places, ODD_LAST, context)
        gone = sum(at in range(*fold.span) for fold in folds for at in places)
        return folds if (len(places) - gone) % 2 else self._beyond(transcript, places, EVEN_LAST, context)  # as the rule would go on with these

    def _beyond(self, transcript: Transcript, places: list[int], last: int, context: Context) -> list[Fold]:
        if len(places) <= self.first + last:
            return []
        window = group_start(transcript, places[-last])
        return silent_folds(transcript, Span(self._head_end(transcript, places), window), context.language, REASON)

    def _beyond_tokens(self, transcript: Transcript, places: list[int], most: int, context: Context) -> list[Fold]:
        if transcript.tokens <= most:
            return []
        head = self._head_end(transcript, places)
        left = most - sum(entry.tokens for entry in transcript.entries[:head])
        return silent_folds(transcript, Span(head, newest_tokens(transcript, left)), context.language, REASON)

    def _head_end(self, transcript: Transcript, places: list[int]) -> int:
        """Behind the first messages, and behind words of ours that stand before them."""
        return group_end(transcript, places[min(self.first, len(places)) - 1]) if self.first else places[0]
