"""Over the limit, the groups that matter most stay, wherever they stand: filled by score until the window is full (001-13, 001-49)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import msgspec

from ctxproxy.core.filling import Window
from ctxproxy.core.policy import Fraction
from ctxproxy.core.priorities import KEYWORDS, Bonus, Kind, priorities
from ctxproxy.core.stages.base import Context, Stage, register
from ctxproxy.core.transcript import Edit, Transcript


@register("priority_window", loss="lossy")
class PriorityWindow(Stage, frozen=True, forbid_unknown_fields=True):
    """Fills `fill` of the limit: the newest `min_recent` groups as far as they fit, then those that score highest; one that does not fit is
    passed over for a smaller one (D8). `scores` are laid over the classes of `priorities`, `bonuses` over what a keyword, newness, a
    preference and a rule add. A first user message over `goal_share` of the limit is no goal.
    """

    fill: Fraction = 0.9
    min_recent: Annotated[int, msgspec.Meta(ge=0)] = 5
    goal_share: Fraction = 0.25
    keywords: tuple[str, ...] = KEYWORDS
    scores: dict[Kind, float] = {}
    bonuses: dict[Bonus, float] = {}

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        if transcript.tokens <= context.limit:
            return
        scored = priorities(transcript, int(self.goal_share * context.limit), self.keywords, self.scores, self.bonuses)
        window = Window(transcript, context.language, context.count)
        recent = len(scored) - self.min_recent
        order = sorted(window.free, key=lambda n: (0, 0, 0, -n) if n >= recent else (1, *scored[n].key, -n))
        for run, fold in window.filled(order, int(self.fill * context.limit)):
            low, high = (int(pick(scored[n].score for n in run)) for pick in (min, max))
            yield replace(fold, reason=f"priority {low} to {high}, outside the window")
