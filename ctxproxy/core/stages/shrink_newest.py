"""When what is asked right now does not fit: the newest group's results, then its calls, are cut in place, only as far as needed."""

from __future__ import annotations

from collections.abc import Iterator

from ctxproxy.core.exchanges import may_edit
from ctxproxy.core.markers import topic_of_result, topic_of_text
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.policy import Count, Fraction
from ctxproxy.core.rewrites import fitted, with_short_arguments
from ctxproxy.core.selection import level
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Entry, Replace, Transcript


@register("shrink_newest", loss="reversible")
class ShrinkNewest(Stage, frozen=True, forbid_unknown_fields=True):
    """Aims at `fill` of the limit, not at the target: nothing is worth more than the newest result, but counts of dense data are off by
    some percent from one tokenizer to the next. Large results share the cut alike; none goes under `min_tokens` tokens. Arguments are cut
    to `arguments_chars` characters, then what the assistant said beside them.
    """

    fill: Fraction = 0.9
    min_tokens: Count = 100
    arguments_chars: Count = 1000

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        if transcript.tokens <= context.limit:
            return
        excess = transcript.tokens - int(context.limit * self.fill)
        newest = [e for e in transcript.exchanges if e.at >= transcript.newest.start and may_edit(transcript.entries[e.at])]
        sizes = [transcript.entries[exchange.at].tokens for exchange in newest]
        cap = max(level(sizes, sum(sizes) - excess), self.min_tokens)
        for exchange, tokens in zip(newest, sizes, strict=True):
            entry = transcript.entries[exchange.at]
            if tokens > cap and not (entry.stage == self.name and cap == self.min_tokens):
                message = fitted(entry, topic_of_result(exchange.call, context.language), cap, context.count, context.language)
                excess -= tokens - context.count(message)
                yield Replace(exchange.at, message, "newest results over the limit")
        for at in range(transcript.newest.start, len(transcript.entries) - 1):
            entry = transcript.entries[at]
            if excess > 0 and may_edit(entry) and entry.message.role == "assistant":
                short = self._shorter(entry, entry.tokens - excess, context)
                excess -= entry.tokens - context.count(short)
                yield Replace(at, short, "newest call over the limit")

    def _shorter(self, entry: Entry, most_tokens: int, context: Context) -> Message:
        """A call with its arguments cut, and then what is said beside it."""
        message = with_short_arguments(entry.message, self.arguments_chars, context.language)
        left = entry._replace(message=message, tokens=context.count(message))
        if left.tokens <= most_tokens or context.count_text(text_of(message)) <= self.min_tokens:
            return message
        cap = max(most_tokens, left.tokens - context.count_text(text_of(message)) + self.min_tokens)
        return fitted(left, topic_of_text(message, context.language), cap, context.count, context.language)
