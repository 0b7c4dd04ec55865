"""Context settings of one session's own (`/config`): which keys there are, what a text means as a value, what is in force and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ctxproxy.config import describe
from ctxproxy.config.build import Faults, read_keys
from ctxproxy.config.checks import check_context
from ctxproxy.config.environment import Text
from ctxproxy.config.load import ALIASES
from ctxproxy.config.policies import Choice, keys_of, laid_over
from ctxproxy.config.schema import Context, Settings
from ctxproxy.core.presets import PRESETS

FIXED = frozenset({"pipeline", "recall_tool"})
"""A pipeline may name code to be imported, which is not a client's to choose; the recall tool is offered from a session's first request on."""
KEYS: tuple[str, ...] = tuple(key for key in Context.__struct_fields__ if key not in FIXED)
"""The keys that a session may have of its own."""
NAMES: tuple[str, ...] = (*KEYS, *ALIASES)
"""All names that they go by."""
DEFAULT = "default"
"""The value that takes a key of a session's own back."""


@dataclass(frozen=True, slots=True)
class InForce:
    """A key, its value as YAML writes it, and where it comes from: `session`, `profile x`, `preset x`, `settings`, `default`."""

    key: str
    value: str
    source: str


def key_named(given: str) -> str | None:
    """The key of its own name, of its path or of an alias; None if there is no such key."""
    name = given.removeprefix("context.")
    name = ALIASES.get(name, name)
    return name if name in KEYS else None


def nearest_key(given: str) -> str:
    """The key, or alias, that looks most like what was given; "" if none does."""
    return describe.nearest(given.removeprefix("context."), NAMES) or ""


def with_key(settings: Settings, chosen: Choice, own: Mapping[str, object], key: str, value: str) -> dict[str, object] | str:
    """A session's own keys with one more, or one less for `default`; the reason where it cannot be."""
    rest = {name: had for name, had in own.items() if name != key}
    faults = Faults()
    keys = rest if value == DEFAULT else {**rest, **read_keys(Context, {key: Text(value)}, "context", faults)}
    if not faults.found:
        check_context(laid_over(settings, chosen.name, keys), "context", faults)
    return "; ".join(faults.found.values()) if faults.found else keys


def in_force(settings: Settings, chosen: Choice, own: Mapping[str, object]) -> list[InForce]:
    """Every key that a session may have of its own, with the value that counts under this choice."""
    return [InForce(key, describe.written(value := getattr(chosen.policy, key)), _source(settings, chosen, own, key, value)) for key in KEYS]


def _source(settings: Settings, chosen: Choice, own: Mapping[str, object], key: str, value: object) -> str:
    sources = (
        (key in own and own[key] == value, "session"),
        (key in keys_of(settings, chosen.name), f"{'profile' if chosen.name in settings.profiles else 'preset'} {chosen.name}"),
        (key in settings.explicit, "settings"),
        (key in PRESETS[chosen.policy.preset].defaults, f"preset {chosen.policy.preset}"),
    )
    return next((source for holds, source in sources if holds), DEFAULT)
