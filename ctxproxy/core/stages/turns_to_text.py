"""Few turns and still too long: each finished one keeps its user message and its last answer as text, its calls and results go (000-19)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxproxy.core.exchanges import may_edit
from ctxproxy.core.folding import Folder
from ctxproxy.core.frames import is_filler
from ctxproxy.core.messages import Message, make, text_of, tool_calls
from ctxproxy.core.oldest_turns import turns_to_trim
from ctxproxy.core.policy import Count
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Fold, Span, Transcript

REASON = "calls and results of a finished turn"


@register("turns_to_text", loss="lossy")
class TurnsToText(Stage, frozen=True, forbid_unknown_fields=True):
    """With fewer than `below_turns` turns. The current turn stays as it is: a model that does not see what it has just done does it again."""

    thorough = True
    below_turns: Count = 5

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        if len(turns_to_trim(transcript, context)) >= self.below_turns:
            return
        folder = Folder(transcript, context.language)
        folder.kept |= {at for at, entry in enumerate(transcript.entries) if not may_edit(entry)}
        for turn in transcript.turns[:-1]:
            yield from _as_text(transcript, turn, folder)


def _as_text(transcript: Transcript, turn: Span, folder: Folder) -> Iterator[Fold]:
    """Folds for all of a turn but its user message and its last answer."""
    start = turn.start + (transcript.entries[turn.start].message.role == "user")
    body = [group for group in transcript.groups if start <= group.start and group.end <= turn.end]
    last = next((group for group in reversed(body) if _says_something(transcript, group)), None)
    if last is None:
        folds = [*folder.runs(Span(start, turn.end))]
    elif not tool_calls(transcript.entries[last.start].message):
        folds = [*folder.runs(Span(start, last.start)), *folder.runs(Span(last.end, turn.end))]
    elif folder.kept.isdisjoint(range(last.start, turn.end)):
        answer = Fold(Span(last.start, turn.end), (_without_calls(transcript.entries[last.start].message),))
        folds = [*folder.runs(Span(start, last.start)), answer]
    else:
        folds = [*folder.runs(Span(start, last.start))]
    yield from (Fold(fold.span, fold.by, REASON) for fold in folds)


def _says_something(transcript: Transcript, group: Span) -> bool:
    first = transcript.entries[group.start].message
    return first.role == "assistant" and not is_filler(first) and bool(text_of(first).strip())


def _without_calls(message: Message) -> Message:
    return make({key: value for key, value in message.fields.items() if key != "tool_calls"})
