"""Tool results of finished turns, longer than so many characters: head, tail and lines that tell of failures stay, with a notice (000-09)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxproxy.core.exchanges import may_edit
from ctxproxy.core.language import Language
from ctxproxy.core.markers import truncated_topic
from ctxproxy.core.messages import Message, ToolCall, text_of
from ctxproxy.core.oldest_turns import turns_to_trim
from ctxproxy.core.policy import Count
from ctxproxy.core.rewrites import shortened
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Entry, Replace, Transcript

TENTHS = (9, 7, 5)
"""Of `max_chars`, tried in turn: what is cut must be under it with its marker and notices, and JSON does not shrink to the character."""


@register("truncate_tool_results", loss="reversible")
class TruncateToolResults(Stage, frozen=True, forbid_unknown_fields=True):
    """Results over `max_chars` characters; those of the current turn never, unless `historic_only` is off: then all but the newest group's.
    `with_turns`: also when there are more turns than `context.max_turns`, just before these are trimmed.
    """

    thorough = True
    max_chars: Count = 20_000
    historic_only: bool = True
    with_turns: bool = False

    def due(self, transcript: Transcript, context: Context) -> bool:
        return self.with_turns and context.max_turns is not None and len(turns_to_trim(transcript, context)) > context.max_turns

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        current = transcript.turns[-1].start if self.historic_only and transcript.turns else transcript.newest.start
        for exchange in transcript.exchanges:
            entry = transcript.entries[exchange.at]
            if exchange.at < current and may_edit(entry) and len(text_of(entry.message)) > self.max_chars and entry.stage != self.name:
                yield Replace(exchange.at, self._cut(entry, exchange.call, context.language), "long result of a finished turn")

    def _cut(self, entry: Entry, call: ToolCall | None, language: Language) -> Message:
        topic = truncated_topic(call, len(text_of(entry.message)), language)
        cuts = (shortened(entry, topic, self.max_chars * tenths // 10, language) for tenths in TENTHS)
        return next((short for short in cuts if len(text_of(short)) <= self.max_chars), entry.message)
