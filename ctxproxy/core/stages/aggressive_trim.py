"""After an overflow: few turns, and no long result, text or arguments in any of them, the current one included (000-23)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxproxy.core.exchanges import may_edit
from ctxproxy.core.folding import Folder
from ctxproxy.core.markers import topic_of_result, topic_of_text
from ctxproxy.core.messages import text_of
from ctxproxy.core.policy import Count
from ctxproxy.core.rewrites import shortened, with_short_arguments
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import RESULT_ROLES, Edit, Entry, Replace, Transcript


@register("aggressive_trim", loss="lossy")
class AggressiveTrim(Stage, frozen=True, forbid_unknown_fields=True):
    """At most `max_turns` turns; results and user texts of at most so many characters; the last user message stays as it is."""

    max_tool_chars: Count = 10_000
    max_user_chars: Count = 10_000
    max_turns: Count = 5
    max_argument_chars: Count = 1_000

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        folder = Folder(transcript, context.language, f"older than the newest {self.max_turns} turns")
        gone: set[int] = set()
        for turn in transcript.turns[: -self.max_turns]:
            for fold in folder.turn(turn):
                gone.update(range(*fold.span))
                yield fold
        topics = {e.at: topic_of_result(e.call, context.language) for e in transcript.exchanges}
        fixed = transcript.untouchable | gone
        for at, entry in enumerate(transcript.entries):
            limit = self._limit(entry)
            if at in fixed or not may_edit(entry):
                continue
            if limit and len(text_of(entry.message)) > limit:
                topic = topics.get(at) or topic_of_text(entry.message, context.language)
                yield Replace(at, shortened(entry, topic, limit * 9 // 10, context.language), "long text")
            short = with_short_arguments(entry.message, self.max_argument_chars, context.language)
            if short is not entry.message:
                yield Replace(at, short, "long arguments")

    def _limit(self, entry: Entry) -> int:
        if entry.message.role in RESULT_ROLES:
            return self.max_tool_chars
        return self.max_user_chars if entry.message.role == "user" and entry.origin != "inserted" else 0
