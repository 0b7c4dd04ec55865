"""The stages; importing this package fills `base.REGISTRY`."""

from __future__ import annotations

from ctxproxy.core.stages import (
    aggressive_trim,
    clear,
    compact_messages,
    compact_tool_results,
    drop_oldest,
    duplicate_results,
    media_to_notes,
    shrink_newest,
    summarize,
    superseded_results,
)

__all__ = [
    "aggressive_trim",
    "clear",
    "compact_messages",
    "compact_tool_results",
    "drop_oldest",
    "duplicate_results",
    "media_to_notes",
    "shrink_newest",
    "summarize",
    "superseded_results",
]
