"""The contract of a stage, and its registration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ctxproxy.core.stages  # noqa: F401  it fills the registry
from ctxproxy.core.stages.base import REGISTRY, Context, Stage, make_stage, register
from ctxproxy.core.stages.duplicate_results import DuplicateResults
from ctxproxy.core.transcript import Edit, Transcript
from tests.core.histories import context, transcript


def test_a_stage_is_made_of_its_name_and_options() -> None:
    assert make_stage({"stage": "duplicate_results", "min_chars": 50}) == DuplicateResults(min_chars=50)
    assert make_stage({"stage": "duplicate_results"}) == DuplicateResults()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"stage": "dedupe"}, "unknown stage 'dedupe'; known are aggressive_trim, cap_messages"),
        ({}, "unknown stage None"),
        ({"stage": "duplicate_results", "min_chars": 0}, r"stage duplicate_results: .*min_chars"),
        ({"stage": "duplicate_results", "min": 1}, r"stage duplicate_results: .*`min`"),
    ],
)
def test_a_wrong_stage_is_refused_in_words_that_tell_what_is_wrong(spec: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_stage(spec)


def test_a_registered_stage_has_its_name_and_loss_and_is_found_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing(Stage, frozen=True, forbid_unknown_fields=True):
        def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
            return iter(())

    monkeypatch.setitem(REGISTRY, "nothing", Stage)  # so that the registry is as before afterwards
    assert register("nothing", loss="lossy")(Nothing) is Nothing
    assert (Nothing.name, Nothing.loss) == ("nothing", "lossy")
    assert make_stage({"stage": "nothing"}) == Nothing()


def test_a_stage_that_proposes_nothing_of_its_own_is_no_stage() -> None:
    with pytest.raises(NotImplementedError):
        Stage().propose(transcript([]), context())


def test_a_context_without_originals_has_none() -> None:
    assert context().originals == {}


def test_a_stage_without_rules_of_its_own_is_never_due_and_wants_no_summary_in_advance() -> None:
    assert not DuplicateResults().due(transcript([]), context(100))
    assert DuplicateResults().cut_tip(transcript([]), context(100)) == ""
