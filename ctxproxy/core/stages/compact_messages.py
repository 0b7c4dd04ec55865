"""Old long texts of user and assistant, oldest first: cut to head and tail; the assistant's then become markers, the user's never.

Thinking blocks of finished turns go whole with the text beside them; signed calls and all other fields stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxproxy.core.exchanges import may_edit, recent_start
from ctxproxy.core.markers import is_marker, topic_of_text
from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.policy import Count, Fraction
from ctxproxy.core.rewrites import marked, shortened, without_thinking
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Entry, Replace, Transcript


@register("compact_messages", loss="reversible")
class CompactMessages(Stage, frozen=True, forbid_unknown_fields=True):
    """Texts over twice `keep_tokens` keep that much of head and tail: the assistant's first, then the user's, the first user
    message last. What counts as old is as in `compact_tool_results`.
    """

    keep_tokens: Count = 200
    min_tokens: Count = 80
    recent_share: Fraction = 0.5
    recent_messages: Count | None = None

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        start = recent_start(transcript, context.keep_recent_turns, int(self.recent_share * context.target), self.recent_messages)
        fixed = transcript.untouchable
        old = [at for at, entry in enumerate(transcript.entries[:start]) if at not in fixed and self._mine(entry)]
        answers = [at for at in old if transcript.entries[at].message.role == "assistant"]
        asked = [at for at in old if transcript.entries[at].message.role == "user"]
        finished = [at for at in answers if at < transcript.last_user]
        yield from self._without_thinking(transcript, finished)
        yield from self._cuts(transcript, (*answers, *asked[1:], *asked[:1]), context)
        for at in [at for at in answers if transcript.entries[at].tokens >= self.min_tokens]:
            entry = _thoughtless(transcript, at, context)
            if entry.tokens >= self.min_tokens and not is_marker(text_of(entry.message)):
                yield Replace(at, self.compact(entry, context, whole=True), "old answer")

    def compact(self, entry: Entry, context: Context, *, whole: bool) -> Message:
        """What stands in for one old message: its head and tail, or a marker for the whole of it. A stage of one's own that extends this
        one may say otherwise (002-19); role and call ids stay.
        """
        language, chars = context.language, self.keep_tokens * len(text_of(entry.message)) // entry.tokens
        if whole:
            return context.rewritten("answer", entry, lambda: marked(entry, topic_of_text(entry.message, language), language))
        return context.rewritten(f"text {chars}", entry, lambda: shortened(entry, topic_of_text(entry.message, language), chars, language))

    def _mine(self, entry: Entry) -> bool:
        return entry.origin != "inserted" and may_edit(entry)

    def _without_thinking(self, transcript: Transcript, places: Iterable[int]) -> Iterator[Edit]:
        for at in [at for at in places if isinstance(transcript.entries[at].message.fields.get("content"), list)]:
            rest = without_thinking(transcript.entries[at].message)
            if rest is not transcript.entries[at].message:
                yield Replace(at, rest, "thinking of a finished turn")

    def _cuts(self, transcript: Transcript, places: Iterable[int], context: Context) -> Iterator[Edit]:
        for at in [at for at in places if transcript.entries[at].tokens > 2 * self.keep_tokens]:
            entry = _thoughtless(transcript, at, context)
            if entry.tokens > 2 * self.keep_tokens and entry.stage != self.name:
                yield Replace(at, self.compact(entry, context, whole=False), "old long text")


def _thoughtless(transcript: Transcript, at: int, context: Context) -> Entry:
    """The entry without the thinking of a finished turn."""
    entry = transcript.entries[at]
    if isinstance(entry.message.fields.get("content"), str):
        return entry
    rest = without_thinking(entry.message) if at < transcript.last_user else entry.message
    return entry if rest is entry.message else entry._replace(message=rest, tokens=context.count(rest))
