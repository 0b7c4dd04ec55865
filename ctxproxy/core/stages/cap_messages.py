"""Deletion as LangChain's example has it (004-20 to 004-24): of more than a few messages the oldest go for good; the log keeps them."""

from __future__ import annotations

from collections.abc import Iterator

from ctxproxy.core.policy import Count
from ctxproxy.core.seams import counted, group_end, silent_folds
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Fold, Span, Transcript

REASON = "the oldest of too many messages"


@register("cap_messages", loss="lossy")
class CapMessages(Stage, frozen=True, forbid_unknown_fields=True):
    """Counts up to the assistant's newest message, as a rule that runs after each call does. The cut is rounded up to a whole turn, and
    the newest turn stays whole (D14); `strict` rounds to groups only, so that an assistant message may come first.
    """

    max_messages: Count = 5
    strict: bool = False

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        yield from self._folds(transcript, context)

    def due(self, transcript: Transcript, context: Context) -> bool:
        return bool(self._folds(transcript, context))

    def _folds(self, transcript: Transcript, context: Context) -> list[Fold]:
        entries = transcript.entries
        answered = max((at for at, entry in enumerate(entries) if entry.message.role == "assistant"), default=-1)
        places = [at for at in counted(transcript) if at <= answered]
        excess = len(places) - self.max_messages
        if excess <= 0:
            return []
        cut = group_end(transcript, places[excess - 1])
        if not self.strict:
            cut = next((turn.start for turn in transcript.turns if turn.start >= cut), transcript.turns[-1].start)
        return silent_folds(transcript, Span(0, cut), context.language, REASON, any_opening=self.strict)
