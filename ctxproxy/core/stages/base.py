"""What a stage is: one rewrite of the transcript, as a pure function that yields edits; the driver in `pipeline` applies them.

A stage is a frozen msgspec Struct whose fields are its options, registered under its name:

    @register("duplicate_results", loss="reversible")
    class DuplicateResults(Stage, frozen=True, forbid_unknown_fields=True):
        min_chars: int = 200
        def propose(self, transcript, context): yield Replace(...)

It yields edits in the order in which they should be tried; the driver takes them one by one, drops those that gain nothing,
and stops when the target is met. A stage with a rule that is not about tokens says when that is `due`: then all its edits are
taken. A stage never looks at a clock, a store or a tokenizer but through its context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import msgspec

from ctxproxy.core.language import Language
from ctxproxy.core.markers import MARKER_DIGITS, marker_of
from ctxproxy.core.messages import Tip
from ctxproxy.core.stage_context import Context
from ctxproxy.core.transcript import Edit, Transcript

__all__ = ["MARKER_DIGITS", "REGISTRY", "Context", "Language", "Loss", "Stage", "make_stage", "marker_of", "register"]

Loss: TypeAlias = Literal["reversible", "lossy"]


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rewrite; options are fields, with the best known defaults. `summarizes`: a text that it puts in tells of all that it folds."""

    name: ClassVar[str]
    loss: ClassVar[Loss]
    summarizes: ClassVar[bool] = False
    thorough: ClassVar[bool] = False
    """All its edits are taken once it acts, not only as many as meet the target: so a source has it that acts rarely and at once."""
    limits_turns: ClassVar[bool] = False
    """It keeps `context.max_turns` by its own rule; else the plan does."""

    def propose(self, transcript: Transcript, context: Context) -> Iterator[Edit]:
        raise NotImplementedError

    def due(self, transcript: Transcript, context: Context) -> bool:
        """Whether it has to act though the prompt is short enough: a rule of turns or messages, not of tokens."""
        return False

    def cut_tip(self, transcript: Transcript, context: Context) -> Tip:
        """The tip up to which a summary should be made in advance, for when it has to act; "" if none, or if a ready one would do."""
        return ""


S = TypeVar("S", bound=type[Stage])

REGISTRY: dict[str, type[Stage]] = {}
"""Filled once, at import, by `register`; read-only afterwards."""


def register(name: str, *, loss: Loss) -> Callable[[S], S]:
    """Make a stage known under its name in `pipeline`."""

    def note(stage: S) -> S:
        stage.name = name
        stage.loss = loss
        REGISTRY[name] = stage
        return stage

    return note


def make_stage(spec: Mapping[str, Any]) -> Stage:
    """The stage of a `pipeline` entry `{stage: name, option: value, …}`; raises ValueError naming what is wrong."""
    name = spec.get("stage")
    if name not in REGISTRY:
        raise ValueError(f"unknown stage {name!r}; known are {', '.join(sorted(REGISTRY))}")
    options = {key: value for key, value in spec.items() if key != "stage"}
    try:
        return msgspec.convert(options, REGISTRY[name])
    except msgspec.ValidationError as error:
        raise ValueError(f"stage {name}: {error}") from None
