"""How prompts for a model are measured: what the settings say of a model is looked up once for as long as they are in force."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from ctxproxy.config.schema import Settings
from ctxproxy.core.policy import Policy
from ctxproxy.core.records import WindowBelief
from ctxproxy.core.windows import rule_for
from ctxproxy.ports import Tokenizer
from ctxproxy.proxy.window_book import WindowBook

MOST_MODELS = 1000
"""That are remembered; clients name them."""


class Gauge(msgspec.Struct, frozen=True):
    """How prompts for a model are measured."""

    tokenizer: Tokenizer
    belief: WindowBelief
    factor: float
    """What our own counts are multiplied by."""


@dataclass(frozen=True, slots=True)
class _Model:
    """What the settings say of a model."""

    tokenizer: Tokenizer
    is_exact: bool
    """Its encoding is known for sure."""


class Gauges:
    """The gauge of a model, under the settings of a request."""

    def __init__(
        self,
        tokenizer: Callable[[str, Settings], Tokenizer],
        loaded: Callable[[str, Settings], bool],
        exact: Callable[[str], bool],
        windows: WindowBook,
    ) -> None:
        """`tokenizer` may take a second for a model that is not `loaded`; `exact`: whether a model's encoding is known by its name."""
        self._tokenizer = tokenizer
        self._loaded = loaded
        self._exact = exact
        self._windows = windows
        self._settings: Settings | None = None
        self._models: dict[str, _Model] = {}

    async def of(self, settings: Settings, policy: Policy, origin: str, model: str) -> Gauge:
        """What is known of a model; counts may shrink only where the budget follows the window and the encoding is not known for sure."""
        known = self._models.get(model) if settings is self._settings else None
        about = known or await self._looked_up(settings, model)
        factor = self._windows.factor(origin, model, only_up=about.is_exact or policy.max_tokens != "auto")
        return Gauge(about.tokenizer, self._windows.belief(origin, model, settings.models), factor)

    async def tokenizer(self, settings: Settings, model: str) -> Tokenizer:
        """The model's tokenizer; loading its table takes most of a second the first time, so that happens in a thread."""
        if self._loaded(model, settings):
            return self._tokenizer(model, settings)
        return await asyncio.to_thread(self._tokenizer, model, settings)

    async def _looked_up(self, settings: Settings, model: str) -> _Model:
        rule = rule_for(settings.models, model)
        about = _Model(await self.tokenizer(settings, model), (rule is not None and rule.encoding is not None) or self._exact(model))
        if settings is not self._settings or len(self._models) >= MOST_MODELS:
            self._settings, self._models = settings, {}
        self._models[model] = about
        return about
