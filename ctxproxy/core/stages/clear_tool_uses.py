"""Context editing as Anthropic's API and LangChain have it (004-S10): old tool results are cleared, oldest first, a few newest stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Any

import msgspec

from ctxproxy.core import jsontext, markers
from ctxproxy.core.exchanges import may_edit
from ctxproxy.core.messages import Message, text_of, with_fields
from ctxproxy.core.rewrites import with_arguments
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Entry, Exchange, Replace, Transcript

NonNegative = Annotated[int, msgspec.Meta(ge=0)]


@register("clear_tool_uses", loss="reversible")
class ClearToolUses(Stage, frozen=True, forbid_unknown_fields=True):
    """From `trigger_tokens` on, clears results but the `keep` newest and those of `exclude_tools`; all, or with `clear_at_least` only until
    that many tokens are saved. `clear_inputs`: their arguments too. `placeholder` and the marker of the original stand in their place.
    """

    trigger_tokens: NonNegative = 100_000
    keep: NonNegative = 3
    clear_at_least: NonNegative = 0
    exclude_tools: tuple[str, ...] = ()
    clear_inputs: bool = False
    placeholder: str = "[cleared]"

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        if transcript.tokens < self.trigger_tokens:
            return
        left = self.clear_at_least or transcript.tokens
        starts = {at: group.start for group in transcript.groups for at in range(*group)}
        for start, uses in groupby(self._old(transcript), key=lambda use: starts[use.at]):
            for edit in self._cleared(transcript, start, list(uses), context):
                left -= transcript.entries[edit.at].tokens - context.count(edit.message)
                yield edit
                if left <= 0:
                    return

    def _old(self, transcript: Transcript) -> list[Exchange]:
        """The results to clear, oldest first: those with a call, not cleared yet, not of what is asked right now."""
        matched = [use for use in transcript.exchanges if use.call]
        old = matched[: len(matched) - self.keep] if self.keep < len(matched) else []
        return [use for use in old if use.at < transcript.newest.start and self._may_clear(transcript.entries[use.at], use)]

    def _may_clear(self, entry: Entry, use: Exchange) -> bool:
        named = use.call is not None and use.call.name in self.exclude_tools
        return may_edit(entry) and not named and not text_of(entry.message).startswith(self.placeholder)

    def _cleared(self, transcript: Transcript, start: int, uses: Sequence[Exchange], context: Context) -> Iterator[Replace]:
        for use in uses:
            yield Replace(use.at, self._result(transcript.entries[use.at], use, context), "result of an old call")
        head = transcript.entries[start]
        if self.clear_inputs and may_edit(head):
            note = jsontext.encode({"cleared": markers.marker_of(head.tip)}).decode()
            ids = {use.call.id for use in uses if use.call}
            yield Replace(start, with_arguments(head.message, lambda call_id, text: note if call_id in ids else text), "arguments of an old call")

    def _result(self, entry: Entry, use: Exchange, context: Context) -> Message:
        """The result as placeholder and marker, in the shape that it had: a string, or one part that keeps its cache mark."""
        topic = markers.topic_of_result(use.call, context.language)
        text = f"{self.placeholder} {markers.marker(topic, entry.tokens, entry.tip, context.language)}"
        content = entry.message.content
        if not isinstance(content, list):
            return with_fields(entry.message, content=text)
        marks: dict[str, Any] = {k: v for part in content if isinstance(part, dict) for k, v in part.items() if k == "cache_control"}
        return with_fields(entry.message, content=[{"type": "text", "text": text, **marks}])
