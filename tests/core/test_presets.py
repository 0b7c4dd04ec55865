"""Which stages a policy runs."""

from __future__ import annotations

import pytest

import ctxproxy.core.stages  # noqa: F401  it fills the registry
from ctxproxy.core.plan import LAST_RESORTS
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS, REVERSIBLE, acts_when_short, in_order, is_patient, retrieves, stages_of
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.stages.compact_tool_results import CompactToolResults
from ctxproxy.core.stages.drop_oldest import DropOldest


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_runs_its_stages_in_order(name: str) -> None:
    stages = stages_of(Policy(preset=name))  # type: ignore[arg-type]
    assert [stage.name for stage in stages] == [spec["stage"] for spec in PRESETS[name].stages]


def test_what_can_be_undone_comes_before_what_cannot() -> None:
    losses = {stage.name: stage.loss for stage in stages_of(Policy())}
    order = [name for name in losses if name not in LAST_RESORTS]
    assert [losses[name] for name in order] == ["reversible"] * (len(order) - 1) + ["lossy"]
    assert PRESETS["lossless"].stages == REVERSIBLE
    assert all(REGISTRY[spec["stage"]].loss == "reversible" for spec in PRESETS["lossless"].stages)
    assert stages_of(Policy(preset="off")) == ()


def test_a_pipeline_of_ones_own_takes_the_place_of_the_presets() -> None:
    policy = Policy(preset="lossless", pipeline=({"stage": "drop_oldest", "goal_share": 0.1},))
    assert stages_of(policy) == (DropOldest(goal_share=0.1),)
    assert stages_of(Policy(pipeline=())) == ()


def test_lossy_stages_wait_under_the_default_preset_alone_and_a_pipeline_runs_in_its_order() -> None:
    assert [name for name in PRESETS if is_patient(Policy(preset=name))] == ["adaptive"]  # type: ignore[arg-type]
    assert [name for name in PRESETS if in_order(Policy(preset=name))] == ["cowagent", "hybrid"]  # type: ignore[arg-type]
    own = Policy(pipeline=({"stage": "drop_oldest"},))
    assert (is_patient(own), in_order(own)) == (False, True)


def test_the_default_presets_results_keep_what_says_most_and_never_become_mere_markers() -> None:
    kept = {name: next(s for s in stages_of(Policy(preset=name)) if isinstance(s, CompactToolResults)) for name in ("adaptive", "lossless")}
    assert {name: (stage.gist_share, stage.markers) for name, stage in kept.items()} == {"adaptive": (0.5, False), "lossless": (0.5, True)}


def test_what_was_taken_out_is_looked_up_again_where_nothing_says_otherwise() -> None:
    assert [name for name in PRESETS if retrieves(Policy(preset=name))] == ["adaptive", "hybrid", "layered", "lossless"]  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", [{"stage": "no such"}, {"stage": "drop_oldest", "goal_share": 2}, {}])
def test_an_unknown_stage_or_a_wrong_option_is_refused(spec: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="stage"):
        stages_of(Policy(pipeline=(spec,)))


def test_only_a_limit_of_turns_or_a_stage_with_a_rule_of_its_own_may_act_on_a_short_prompt() -> None:
    assert not acts_when_short(Policy())
    assert acts_when_short(Policy(max_turns=3))
    assert acts_when_short(Policy(pipeline=({"stage": "drop_oldest"}, {"stage": "cap_messages"})))
    assert not acts_when_short(Policy(preset="off"))
