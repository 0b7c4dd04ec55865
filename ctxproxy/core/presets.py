"""The presets: which stages run, in which order, and which keys of `context` have another default with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ctxproxy.core.policy import Policy
from ctxproxy.core.stages import base

Specs = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Preset:
    """Stages as in `pipeline`; their numbers are the stages' own defaults unless a row says otherwise."""

    stages: Specs
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `context` whose default is another one under this preset; what the user sets stands."""
    in_order: bool = False
    """The stages run strictly one after another; else the reversible ones first, and those that leave no trace only where nothing
    else is enough."""


REVERSIBLE: Specs = (
    {"stage": "superseded_results"},
    {"stage": "duplicate_results"},
    {"stage": "compact_tool_results"},
    {"stage": "media_to_notes"},
    {"stage": "compact_messages"},
)
"""Cheap, and the original can always be had again: they come first (002-29)."""

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "adaptive": Preset((*REVERSIBLE, {"stage": "summarize"}, {"stage": "drop_oldest"}, {"stage": "shrink_newest"})),
        "lossless": Preset(REVERSIBLE),
        "off": Preset(()),
    }
)


def stages_of(policy: Policy) -> tuple[base.Stage, ...]:
    """The stages of a policy, in order: its own pipeline, else its preset's; raises ValueError for an unknown stage or option."""
    specs = PRESETS[policy.preset].stages if policy.pipeline is None else policy.pipeline
    return tuple(base.make_stage(spec) for spec in specs)


def in_order(policy: Policy) -> bool:
    """Whether the stages run strictly one after another: a pipeline of the user's own does."""
    return policy.pipeline is not None or PRESETS[policy.preset].in_order
