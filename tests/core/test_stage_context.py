"""What a stage knows where nobody says otherwise."""

from __future__ import annotations

from ctxproxy.core.policy import Policy, SummarizerPolicy
from ctxproxy.core.stage_context import Context
from tests.core.histories import count, count_text


def test_what_is_not_told_is_as_an_empty_configuration_has_it() -> None:
    told, policy, summarizer = Context(count, count_text, 100, 55), Policy(), SummarizerPolicy()
    assert (told.keep_recent_turns, told.max_turns) == (policy.keep_recent_turns, policy.max_turns)
    assert (told.summarizer, told.summary_max_tokens) == (summarizer.kind, summarizer.max_tokens)
    assert not (told.originals or told.summaries or told.pins or told.rules)
