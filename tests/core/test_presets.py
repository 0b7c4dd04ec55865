"""Which stages a policy runs."""

from __future__ import annotations

import pytest

import ctxproxy.core.stages  # noqa: F401  it fills the registry
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS, REVERSIBLE, stages_of
from ctxproxy.core.stages.base import REGISTRY
from ctxproxy.core.stages.drop_oldest import DropOldest


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_runs_its_stages_in_order(name: str) -> None:
    stages = stages_of(Policy(preset=name))  # type: ignore[arg-type]
    assert [stage.name for stage in stages] == [spec["stage"] for spec in PRESETS[name].stages]


def test_what_can_be_undone_comes_before_what_cannot() -> None:
    losses = [stage.loss for stage in stages_of(Policy())]
    assert losses[: len(REVERSIBLE)] == ["reversible"] * len(REVERSIBLE)
    assert all(REGISTRY[spec["stage"]].loss == "reversible" for spec in PRESETS["lossless"].stages)
    assert stages_of(Policy(preset="off")) == ()


def test_a_pipeline_of_ones_own_takes_the_place_of_the_presets() -> None:
    policy = Policy(preset="lossless", pipeline=({"stage": "drop_oldest", "goal_share": 0.1},))
    assert stages_of(policy) == (DropOldest(goal_share=0.1),)
    assert stages_of(Policy(pipeline=())) == ()


@pytest.mark.parametrize("spec", [{"stage": "no such"}, {"stage": "drop_oldest", "goal_share": 2}, {}])
def test_an_unknown_stage_or_a_wrong_option_is_refused(spec: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="stage"):
        stages_of(Policy(pipeline=(spec,)))
