"""Old tool results and call arguments, oldest first: cut to what says most, long ones to head and tail, then all become markers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from ctxproxy.core.exchanges import may_edit, recent_start
from ctxproxy.core.last_turns import last_turn
from ctxproxy.core.markers import is_marker, topic_of_result
from ctxproxy.core.memo import Reading
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.policy import Count, Fraction
from ctxproxy.core.rewrites import gist, marked, shortened, with_short_arguments
from ctxproxy.core.stage_context import REWRITTEN_FACTOR
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Entry, Exchange, Replace, Transcript


@register("compact_tool_results", loss="reversible")
class CompactToolResults(Stage, frozen=True, forbid_unknown_fields=True):
    """Acts outside `keep_recent_turns` and outside the newest groups that hold `recent_share` of the target, so also within one
    long turn. With `gist_share`, results of twice `min_tokens` keep that much, and no more than `gist_tokens`, of what says most; those over
    twice `keep_tokens` that much of head and tail; from `min_tokens` on they become `markers` after that.
    """

    gist_share: Fraction | None = None
    gist_tokens: Count = 600
    markers: bool = True

    keep_tokens: Annotated[int, msgspec.Meta(ge=0)] = 300
    min_tokens: Count = 60
    recent_share: Fraction = 0.5
    arguments_chars: Count = 2000
    """Longer arguments of old calls are cut to this many characters and stay JSON (004-S16)."""
    recent_messages: Count | None = None
    """If set, the newest so many messages are recent and no others (002-28)."""
    last_turn: bool = False
    """A short last turn is recent too, whatever the newest groups hold."""

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        start = recent_start(transcript, context.keep_recent_turns, int(self.recent_share * context.target), self.recent_messages)
        if self.last_turn and (last := last_turn(transcript, context)):
            start = min(start, last.start)
        old = [e for e in transcript.exchanges if e.at < start and may_edit(transcript.entries[e.at])]
        for exchange in old if self.gist_share else ():
            if transcript.entries[exchange.at].origin == "original" and transcript.entries[exchange.at].tokens >= 2 * self.min_tokens:
                yield Replace(exchange.at, self._gist(transcript, exchange, context), "what says most of an old result")
        for exchange in old:
            entry = transcript.entries[exchange.at]
            if self.keep_tokens and entry.tokens > 2 * self.keep_tokens and entry.stage != self.name:
                yield Replace(exchange.at, self._cut(transcript, exchange, context), "long result of an old call")
        yield from self._arguments(transcript, start, context)
        for exchange in old if self.markers else ():
            entry = transcript.entries[exchange.at]
            if entry.tokens >= self.min_tokens and not is_marker(text_of(entry.message)):
                yield Replace(exchange.at, self._marked(entry, exchange, context), "result of an old call")

    def _gist(self, transcript: Transcript, exchange: Exchange, context: Context) -> Message:
        entry = transcript.entries[exchange.at]
        most_tokens = min(int(entry.tokens * (self.gist_share or 0)), self.gist_tokens)
        return context.rewritten(f"gist {most_tokens}", entry, lambda: gist(entry, _topic(exchange, context), most_tokens, context.language))

    def _cut(self, transcript: Transcript, exchange: Exchange, context: Context) -> Message:
        entry = transcript.entries[exchange.at]
        chars = self.keep_tokens * len(text_of(entry.message)) // entry.tokens
        return context.rewritten(f"cut {chars}", entry, lambda: shortened(entry, _topic(exchange, context), chars, context.language))

    def _marked(self, entry: Entry, exchange: Exchange, context: Context) -> Message:
        return context.rewritten("mark", entry, lambda: marked(entry, _topic(exchange, context), context.language))

    def _arguments(self, transcript: Transcript, start: int, context: Context) -> Iterator[Edit]:
        entries, chars, language = transcript.entries, self.arguments_chars, context.language
        calling = [at for at in range(start) if "tool_calls" in entries[at].message.fields and entries[at].message.role == "assistant"]

        def changed(message: Message) -> Message | None:
            short = with_short_arguments(message, chars, language)
            return None if short is message else short

        found = context.memo(Reading(f"arguments {chars} {language}", REWRITTEN_FACTOR), [entries[at].message for at in calling], changed)
        for at, short in zip(calling, found, strict=True):
            if short is not None and may_edit(entries[at]):
                yield Replace(at, short, "long arguments of an old call")


def _topic(exchange: Exchange, context: Context) -> str:
    return topic_of_result(exchange.call, context.language)
