"""Old images, audio and files, oldest first: each part becomes a text part that tells what it was. Parts go whole or stay whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from ctxproxy.core.exchanges import may_edit
from ctxproxy.core.rewrites import has_media, without_media
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Replace, Transcript


@register("media_to_notes", loss="reversible")
class MediaToNotes(Stage, frozen=True, forbid_unknown_fields=True):
    """Leaves the newest `keep` messages with media alone, and always the last user message."""

    keep: Annotated[int, msgspec.Meta(ge=0)] = 1

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        fixed = transcript.untouchable
        parted = [at for at, entry in enumerate(transcript.entries) if not isinstance(entry.message.fields.get("content"), str)]
        holders = [at for at in parted if has_media(transcript.entries[at].message)]
        for at in holders[: max(len(holders) - self.keep, 0)]:
            entry = transcript.entries[at]
            if at not in fixed and at < transcript.newest.start and may_edit(entry):
                yield Replace(at, without_media(entry, context.language), "old media")
