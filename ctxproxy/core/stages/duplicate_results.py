"""Results whose exact text is seen again in a later result: the later one stays, the earlier becomes a marker."""

from __future__ import annotations

from collections.abc import Iterator

from ctxproxy.core.exchanges import may_edit
from ctxproxy.core.markers import duplicate_topic
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.policy import Count
from ctxproxy.core.rewrites import has_media, marked
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Entry, Exchange, Replace, Transcript


@register("duplicate_results", loss="reversible")
class DuplicateResults(Stage, frozen=True, forbid_unknown_fields=True):
    """Markers for results of at least `min_chars` characters that stand in full further on."""

    min_chars: Count = 200

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        seen: set[str] = set()
        repeated: list[Exchange] = []
        for exchange in reversed(transcript.exchanges):
            message = transcript.entries[exchange.at].message
            text = text_of(message)
            if len(text) < self.min_chars or has_media(message):
                continue
            if text not in seen:
                seen.add(text)
            elif exchange.at < transcript.newest.start and may_edit(transcript.entries[exchange.at]):
                repeated.append(exchange)
        for exchange in reversed(repeated):
            yield Replace(exchange.at, self._marked(transcript.entries[exchange.at], exchange, context), "same text in a later result")

    def _marked(self, entry: Entry, exchange: Exchange, context: Context) -> Message:
        return context.rewritten("duplicate", entry, lambda: marked(entry, duplicate_topic(exchange.call, context.language), context.language))
