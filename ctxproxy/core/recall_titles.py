"""How a message of recalled passages is known: never taken for the user's words, never summarized, never found again from itself."""

from __future__ import annotations

from ctxproxy.core.language import Language
from ctxproxy.core.transcript import Entry, Transcript

STAGE = "retrieval"
"""What the entries name as their stage."""
TAKEN_OUT = "recalled_out"
"""The action that marks that recalled passages were taken out."""
BESIDE = frozenset({STAGE, TAKEN_OUT})
"""Actions that are no compaction."""
TITLES: dict[Language, str] = {
    "en": "[Background: recalled from earlier, word for word, not a new request]",
    "zh": "【背景：从此前的内容中找回的原文，并非新的请求】",
}


def is_recalled(entry: Entry) -> bool:
    """Whether an entry is a message of recalled passages, or its acknowledgement."""
    return entry.stage == STAGE and entry.origin == "inserted"


def without_recalled(transcript: Transcript) -> Transcript:
    """The transcript without them; the same one if it has none."""
    if STAGE not in [entry.stage for entry in transcript.entries]:
        return transcript
    kept = tuple(entry for entry in transcript.entries if not is_recalled(entry))
    return transcript if len(kept) == len(transcript.entries) else transcript.with_entries(kept)
