"""The presets: which stages run, in which order, and which keys of `context` have another default with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from ctxproxy.core.policy import Policy
from ctxproxy.core.restoring import Depth
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
    restore: Depth = "all"
    """What `sessions.restore_turns` is under this preset, unless it is set."""
    patient: bool = False
    """Below `summarize_at` only the reversible stages act."""
    retrieves: bool = False
    """What the newest request needs of what was taken out is put in again; the systems of the others forget for good, or ask for it."""


REVERSIBLE: Specs = (
    {"stage": "superseded_results"},
    {"stage": "duplicate_results"},
    {"stage": "compact_tool_results", "gist_share": 0.5},
    {"stage": "media_to_notes"},
    {"stage": "compact_messages"},
)
"""Cheap, and the original can always be had again: they come first (002-29)."""

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "adaptive": Preset(
            (
                {"stage": "superseded_results"},
                {"stage": "duplicate_results"},
                {"stage": "compact_tool_results", "gist_share": 0.5, "keep_tokens": 0, "markers": False, "last_turn": True},
                {"stage": "media_to_notes"},
                {"stage": "summarize"},
                {"stage": "drop_oldest"},
                {"stage": "shrink_newest"},
            ),
            patient=True,
            retrieves=True,
        ),
        "cowagent": Preset(
            (
                {"stage": "truncate_tool_results", "with_turns": True},
                {"stage": "trim_turns"},
                {"stage": "turns_to_text"},
                {"stage": "drop_oldest"},
                {"stage": "shrink_newest"},
            ),
            {"max_tokens": 50_000, "max_turns": 20, "max_steps": 15, "compact_at": 1.0, "summarize_at": 1.0, "target": 1.0},
            in_order=True,
            restore="auto",
        ),
        "hybrid": Preset(
            ({"stage": "summarize_middle", "max_summary_tokens": 500}, {"stage": "priority_window"}, {"stage": "shrink_newest"}),
            {"max_tokens": 4000, "compact_at": 0.75, "summarize_at": 0.75},
            in_order=True,
            retrieves=True,
        ),
        "agkit": Preset(
            (
                {"stage": "compact_tool_results", "keep_tokens": 0, "recent_messages": 5},
                {"stage": "compact_messages", "recent_messages": 5},
                {"stage": "summarize_middle", "keep_first": 0, "keep_last": 5},
                {"stage": "drop_oldest"},
                {"stage": "shrink_newest"},
            ),
            {"pre_rot_tokens": 150_000, "compact_at": 0.80, "summarize_at": 0.95, "min_gain": 0.05},
        ),
        "layered": Preset(
            (
                {"stage": "rolling_summary", "keep_turns": 5, "every_turns": 5, "min_tokens": 1000, "max_summary_tokens": 1024},
                {"stage": "drop_oldest"},
                {"stage": "shrink_newest"},
            ),
            retrieves=True,
        ),
        "trim": Preset(({"stage": "keep_first_last"}, {"stage": "drop_oldest"}, {"stage": "shrink_newest"})),
        "delete": Preset(({"stage": "cap_messages"}, {"stage": "drop_oldest"}, {"stage": "shrink_newest"})),
        "lossless": Preset(REVERSIBLE, retrieves=True),
        "off": Preset(()),
    }
)


def stages_of(policy: Policy) -> tuple[base.Stage, ...]:
    """The stages of a policy, in order: its own pipeline, else its preset's; raises ValueError for an unknown stage or option."""
    if policy.pipeline is None:
        return _stages_of_preset(policy.preset)
    return tuple(base.make_stage(spec) for spec in policy.pipeline)


@cache
def _stages_of_preset(name: str) -> tuple[base.Stage, ...]:
    return tuple(base.make_stage(spec) for spec in PRESETS[name].stages)


def in_order(policy: Policy) -> bool:
    """Whether the stages run strictly one after another: a pipeline of the user's own does."""
    return policy.pipeline is not None or PRESETS[policy.preset].in_order


def is_patient(policy: Policy) -> bool:
    """Whether lossy stages wait for `summarize_at`."""
    return policy.pipeline is None and PRESETS[policy.preset].patient


def retrieves(policy: Policy) -> bool:
    """Whether what was taken out of a prompt is looked up again for the newest request."""
    return PRESETS[policy.preset].retrieves


def acts_when_short(policy: Policy) -> bool:
    """Whether something may be done however short the prompt is: a limit of turns, or a stage with a rule that is not about tokens."""
    return policy.max_turns is not None or any(type(stage).due is not base.Stage.due for stage in stages_of(policy))
