"""How far an upstream's own token count is from ours, learned from `usage.prompt_tokens`, per (upstream, model).

A report is evidence, not truth: mocks answer with constants, servers truncate in silence and report what was left, some report only what
was not cached, and a report may belong to another prompt. So no single report matters, counts that would shrink need more
evidence than counts that grow, and what cannot be a ratio of two tokenizers is not looked at. Measured ratios of real/o200k run
from 0.98 to 1.41, SmolLM2 in Chinese 2.13.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

MIN_COUNTED_TOKENS = 200
"""Below, a chat template's own words weigh more than the tokenizer."""
LOWEST, HIGHEST = 0.3, 4.0
"""Ratios outside cannot come from two tokenizers: a truncated prompt, a constant, another request's report."""
KEPT_REPORTS = 9
PRIOR_REPORTS = 3
"""How many reports of "our count is right" are always in the median: two wild reports change nothing."""
CAREFUL_FLOOR = 0.85
"""Counts are not shrunk by more than 15 % …"""
LOW_REPORTS = 5
LOW_SPREAD = 1.25
"""… until so many reports in a row say so and agree with each other within this ratio."""
SAME_REPORT = 0.01
OTHER_PROMPT = 0.05
"""Two reports within 1 % for prompts more than 5 % apart: a constant or a truncating server, no measurement."""


@dataclass(frozen=True, slots=True)
class Report:
    """One request's prompt: our count (not calibrated) and the upstream's."""

    counted: int
    reported: int

    @property
    def ratio(self) -> float:
        return self.reported / self.counted


@dataclass(frozen=True)
class Calibration:
    """What the last believable reports of one (upstream, model) say; oldest first."""

    reports: tuple[Report, ...] = ()

    @cached_property
    def factor(self) -> float:
        """Multiply our counts by this: 1.0 until reports agree on something else; two decimals, so that plans do not flutter."""
        ratios = sorted((*(1.0,) * PRIOR_REPORTS, *(report.ratio for report in self.reports)))
        median = ratios[len(ratios) // 2]  # of two middle ones the larger: counting too much is the cheaper mistake
        return round(median if median >= CAREFUL_FLOOR or _surely_low(self.reports) else CAREFUL_FLOOR, 2)


def observe(state: Calibration, counted: int, reported: int) -> Calibration:
    """The calibration after one more `usage.prompt_tokens` (or the prompt size that an overflow error states).

    `counted` is our own count of exactly the prompt that was sent, not calibrated; prompts with media are better left out, their share is an
    estimate and no matter of the tokenizer. A report that can tell nothing leaves the state as it is.
    """
    if counted < MIN_COUNTED_TOKENS or not LOWEST <= reported / counted <= HIGHEST:
        return state
    report = Report(counted, reported)
    if report in state.reports or any(_stuck(report, old) for old in state.reports):
        return state
    return Calibration((*state.reports, report)[-KEPT_REPORTS:])


def _stuck(new: Report, old: Report) -> bool:
    same_report = abs(new.reported - old.reported) <= SAME_REPORT * old.reported
    other_prompt = abs(new.counted - old.counted) > OTHER_PROMPT * old.counted
    return same_report and other_prompt


def _surely_low(reports: tuple[Report, ...]) -> bool:
    last = [report.ratio for report in reports[-LOW_REPORTS:]]
    return len(last) == LOW_REPORTS and max(last) < CAREFUL_FLOOR and max(last) <= LOW_SPREAD * min(last)
