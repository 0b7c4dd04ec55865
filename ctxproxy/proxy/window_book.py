"""What is believed of each model's window and how its counts compare with ours: in memory, written through to the store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ctxproxy.core import windows
from ctxproxy.core.calibration import Calibration, observe
from ctxproxy.core.effects import PutWindow
from ctxproxy.core.overflow import Verdict
from ctxproxy.core.records import WindowBelief
from ctxproxy.core.reply import Usage
from ctxproxy.core.windows import ModelRule, Truncation
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store

log = logging.getLogger("ctxproxy")
ASK_AGAIN_S = 600.0
"""How long a listing of an upstream is not asked for again by us."""
BELIEVED_S = 1.0
"""How long the store is not asked again what other processes have learned; meanwhile a prompt may be sent that is refused, and rescued."""
MOST_MODELS = 1000
"""Of which the belief that was formed last is remembered; clients name them."""
UNCALIBRATED, UNSUSPECTED = Calibration(), Truncation()


@dataclass(frozen=True, slots=True)
class _Formed:
    """A belief, and what it was formed from."""

    rules: Sequence[ModelRule]
    told: WindowBelief | None
    belief: WindowBelief


class WindowBook:
    """Beliefs and calibrations by (upstream origin, model); `refresh` reads what an earlier run, or another process, has learned."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._beliefs: dict[tuple[str, str], WindowBelief] = {}
        self._calibrations: dict[tuple[str, str], Calibration] = {}
        self._truncations: dict[tuple[str, str], Truncation] = {}
        self._formed: dict[tuple[str, str], _Formed] = {}
        self._asked: dict[str, float] = {}
        self._read_at = float("-inf")

    def is_due(self) -> bool:
        """Whether the store was not asked just now."""
        return not 0 <= self._clock() - self._read_at < BELIEVED_S

    async def refresh(self) -> None:
        """Take over what other processes have learned, if the store was not asked just now; a store that does not answer has told nothing new."""
        if not self.is_due():
            return
        self._read_at = self._clock()
        try:
            found = await self._store.windows()
        except StoreUnavailable as error:
            log.warning("windows learned earlier could not be read: %s", error.message)
            return
        for told in found:
            own = self._beliefs.get((told.upstream, told.model))
            if own is None or told.updated >= own.updated:
                self._beliefs[told.upstream, told.model] = told

    def belief(self, origin: str, model: str, rules: Sequence[ModelRule]) -> WindowBelief:
        """The window to plan with."""
        at, now = (origin, model), self._clock()
        told, formed = self._beliefs.get(at), self._formed.get(at)
        if formed is not None and formed.rules is rules and formed.told is told and not windows.is_expired(formed.belief, now):
            return formed.belief
        if len(self._formed) >= MOST_MODELS:
            self._formed.clear()
        formed = self._formed[at] = _Formed(rules, told, windows.believe(origin, model, rules, told, now))
        return formed.belief

    def factor(self, origin: str, model: str, *, only_up: bool) -> float:
        """What our counts are multiplied by; `only_up` where a smaller count must not widen a budget that somebody set."""
        factor = self._calibrations.get((origin, model), UNCALIBRATED).factor
        return max(1.0, factor) if only_up else factor

    async def learn(self, origin: str, model: str, verdict: Verdict, *, counted: int) -> None:
        """Take in what an error states: the window, and its count of the prompt beside ours, which is not calibrated."""
        if verdict.prompt_tokens is not None and verdict.kind == "overflow":
            at = (origin, model)
            self._calibrations[at] = observe(self._calibrations.get(at, UNCALIBRATED), counted, verdict.prompt_tokens)
        belief = windows.learn_from_error(origin, model, verdict, self._clock())
        if belief is not None:
            await self._put([belief])

    async def succeeded(self, origin: str, model: str, *, counted: int, usage: Usage, rules: Sequence[ModelRule]) -> None:
        """Take in the usage of an answer; `counted` is our own count of the prompt, not calibrated."""
        at = (origin, model)
        self._calibrations[at] = observe(self._calibrations.get(at, UNCALIBRATED), counted, usage.prompt_tokens)
        before = self._truncations.get(at, UNSUSPECTED)
        after = self._truncations[at] = windows.watch_truncation(before, counted, usage.prompt_tokens)
        cut_at = windows.truncates_at(after)
        if cut_at is not None and cut_at != windows.truncates_at(before):
            log.warning("%s seems to cut prompts for %s at %d tokens without saying so; set its window under models:", origin, model, cut_at)
        grown = windows.learn_from_success(self.belief(origin, model, rules), usage.prompt_tokens + usage.completion_tokens, self._clock())
        if grown is not None and counted >= usage.prompt_tokens // 2:
            await self._put([grown])

    async def listed(self, origin: str, body: bytes) -> None:
        """Take in an upstream's list of models."""
        self._asked[origin] = self._clock()
        told = windows.learn_from_listing(origin, body, self._clock())
        await self._put([b for b in told if windows.supersedes(b, self._beliefs.get((b.upstream, b.model)), self._clock())])

    def wants_listing(self, origin: str, belief: WindowBelief) -> bool:
        """Whether the upstream should be asked for its models: nothing is known of this one, and it was not asked of late."""
        if belief.source != "default":
            return False
        now = self._clock()
        due = now - self._asked.get(origin, -ASK_AGAIN_S) >= ASK_AGAIN_S
        if due:
            self._asked[origin] = now
        return due

    def table(self, rules: Sequence[ModelRule]) -> list[dict[str, object]]:
        """All that is believed, the configured rules first, for the admin API."""
        now = self._clock()
        configured = [_row("*", rule.match, rule.window, "config", 1.0, None) for rule in rules if rule.window is not None]
        known = [
            {**_row(b.upstream, b.model, b.window, b.source, b.confidence, b.updated), "expired": windows.is_expired(b, now)}
            for b in self._beliefs.values()
        ]
        return [*configured, *known]

    async def _put(self, beliefs: Sequence[WindowBelief]) -> None:
        changed = [b for b in beliefs if not _same(self._beliefs.get((b.upstream, b.model)), b)]
        self._beliefs.update({(b.upstream, b.model): b for b in beliefs})
        if not changed:
            return
        try:
            await self._store.apply([PutWindow(b) for b in changed])
        except StoreUnavailable as error:
            log.warning("could not write learned windows to the store: %s", error.message)


def _same(old: WindowBelief | None, new: WindowBelief) -> bool:
    """Whether only the time differs, and by less than a day: not worth a write."""
    if old is None or (old.window, old.source) != (new.window, new.source):
        return False
    return abs(new.updated - old.updated) < windows.TOLD_FOR_S


def _row(upstream: str, model: str, window: int | None, source: str, confidence: float, when: float | None) -> dict[str, object]:
    return {"upstream": upstream, "model": model, "window": window, "source": source, "confidence": confidence, "time": when}
