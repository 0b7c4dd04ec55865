"""What has to be summarized for a request: what came after an earlier summary, or all of it again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ctxproxy.core.policy import Policy, SummarizerPolicy
from ctxproxy.core.records import Summary
from ctxproxy.core.summaries import Need
from ctxproxy.proxy.summary_desk import need_of
from tests.core.chains import Chain
from tests.core.histories import count, talk

HISTORY = talk(10)
WIDE = 128_000


def needed(told: int, *, window: int = WIDE, policy: Policy = Policy(), kind: Any = "llm") -> Need:  # noqa: B008  a frozen value
    """What is needed up to the 20th message where a summary tells the first `told`."""
    situation = Chain(policy).situation(HISTORY, 10_000)
    tips = situation.reconciled.tips
    ready = Summary(tips[told - 1], "told", kind, "m", told, 1, 0, 0, 0)
    return need_of(replace(situation, summaries=[ready]), tips[19], SummarizerPolicy(), window)


@pytest.mark.parametrize("told", [4, 12, 19])
def test_an_earlier_summary_is_carried_on_by_what_came_after_it(told: int) -> None:
    again = told < 16  # 16 to 63 messages are one step of growth
    need = needed(told)
    assert (need.previous is None) is again
    assert need.messages == tuple(HISTORY[0 if again else told : 20])


def test_of_a_history_too_long_to_read_again_an_earlier_summary_stands_for_the_beginning() -> None:
    fits = -(-sum(map(count, HISTORY[:20])) // 3)
    assert needed(4, window=fits).previous is None
    need = needed(4, window=fits - 1)
    assert need.previous is not None
    assert need.messages == tuple(HISTORY[4:20])


def test_a_running_summary_is_only_ever_carried_on() -> None:
    need = needed(4, policy=Policy(preset="layered"))
    assert need.previous is not None
    assert need.messages == tuple(HISTORY[4:20])


def test_what_no_model_wrote_is_not_carried_on() -> None:
    need = needed(19, kind="extractive")
    assert need.previous is None
    assert need.messages == tuple(HISTORY[:20])
