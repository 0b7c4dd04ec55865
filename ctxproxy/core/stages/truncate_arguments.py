"""Long arguments of old tool calls are cut before anything is summarized, as deepagents does (004-S16); they stay valid JSON (D3)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated

import msgspec

from ctxproxy.core.exchanges import may_edit, recent_start
from ctxproxy.core.markers import marker, topic_of_argument
from ctxproxy.core.policy import Count, Fraction
from ctxproxy.core.rewrites import short_arguments, with_arguments
from ctxproxy.core.shorten_strings import with_short_strings
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Entry, Replace, Transcript


@register("truncate_arguments", loss="reversible")
class TruncateArguments(Stage, frozen=True, forbid_unknown_fields=True):
    """Of arguments over `max_chars` the longest strings keep `keep_chars` characters and a marker, as many as need be. What counts as old
    is as in `compact_tool_results`; arguments that are no JSON object, or are long without long strings, become an object with a note.
    """

    max_chars: Count = 2000
    keep_chars: Annotated[int, msgspec.Meta(ge=0)] = 20
    recent_share: Fraction = 0.5

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        start = recent_start(transcript, context.keep_recent_turns, int(self.recent_share * context.target))
        for at, entry in enumerate(transcript.entries[:start]):
            if may_edit(entry) and "tool_calls" in entry.message.fields:
                short = with_arguments(entry.message, partial(self._cut, entry, context))
                if short is not entry.message:
                    yield Replace(at, short, "long arguments of an old call")

    def _cut(self, entry: Entry, context: Context, _: str, arguments: str) -> str:
        if len(arguments) <= self.max_chars:
            return arguments

        def note(chars: int) -> str:
            return marker(topic_of_argument(chars, context.language), entry.tokens, entry.tip, context.language)

        short = with_short_strings(arguments, self.max_chars, self.keep_chars, note)
        return short_arguments(arguments, self.max_chars, context.language) if short is None else short
