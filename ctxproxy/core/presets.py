"""The presets: which stages run, in which order. Their numbers are the stages' own defaults unless a row says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ctxproxy.core.policy import Policy
from ctxproxy.core.stages import base

REVERSIBLE: Sequence[dict[str, Any]] = (
    {"stage": "superseded_results"},
    {"stage": "duplicate_results"},
    {"stage": "compact_tool_results"},
    {"stage": "media_to_notes"},
    {"stage": "compact_messages"},
)
"""Cheap, and the original can always be had again: they come first (002-29)."""

PRESETS: Mapping[str, Sequence[dict[str, Any]]] = MappingProxyType(
    {
        "adaptive": (*REVERSIBLE, {"stage": "summarize"}, {"stage": "drop_oldest"}, {"stage": "shrink_newest"}),
        "lossless": REVERSIBLE,
        "off": (),
    }
)


def stages_of(policy: Policy) -> tuple[base.Stage, ...]:
    """The stages of a policy, in order: its own pipeline, else its preset's; raises ValueError for an unknown stage or option."""
    specs = PRESETS[policy.preset] if policy.pipeline is None else policy.pipeline
    return tuple(base.make_stage(spec) for spec in specs)
