"""The last resort before the upstream's own error: only pinned messages and what is asked right now stay (000-25)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxproxy.core.folding import Folder
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Span, Transcript


@register("clear", loss="lossy")
class Clear(Stage, frozen=True, forbid_unknown_fields=True):
    """Leaves out all but pinned messages, the last user message, and the newest group with a prefill of the client's."""

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        return Folder(transcript, context.language, "only what must stay fits").runs(Span(0, len(transcript.entries)))
