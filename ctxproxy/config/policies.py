"""Which policy a request gets, and how the keys that somebody set lie over the defaults of the preset in force.

A session's own keys go before those of the profile or preset that is named, those before `context`, those before the preset's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

import msgspec

from ctxproxy.config import describe
from ctxproxy.config.build import Faults, read_keys
from ctxproxy.config.checks import check_context
from ctxproxy.config.schema import Context, SessionProfile, Settings
from ctxproxy.core.arms import arm_of
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS
from ctxproxy.core.records import SessionKey
from ctxproxy.core.restoring import turns_of
from ctxproxy.errors import BadRequest

NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Choice:
    """A request's policy, and the arm of the experiment that chose it; "" where no arm did."""

    policy: Policy
    arm: str = ""

    name: str = ""
    """The profile or preset that was chosen; "" for `context` itself."""


def policy_for(settings: Settings, named: str | None, model: str, key: SessionKey | None = None, own: Mapping[str, object] = NOTHING) -> Policy:
    """The policy of a request, as `choose` has it."""
    return choose(settings, named, model, key, own).policy


def choose(settings: Settings, named: str | None, model: str, key: SessionKey | None, own: Mapping[str, object] = NOTHING) -> Choice:
    """The profile or preset that a request names, else that of its session's name, of its model's route, of its arm; else `context`.

    A session's `own` keys lie above it; those that do not go with the settings any more, which may have changed since, count for nothing.
    Raises BadRequest for an unknown name.
    """
    name = next((name for name in (named, _session_profile(settings, key), _route_profile(settings, model)) if name is not None), None)
    arm = ""
    if name is None and key and settings.experiment.arms:
        arm = arm_of(settings.experiment.name, key, [(arm.profile, arm.share) for arm in settings.experiment.arms])
    chosen = Choice(settings.context if name is None and not arm else _named(settings, name or arm), arm, name or arm)
    return replace(chosen, policy=_with_own(settings, chosen, own)) if own else chosen


def _with_own(settings: Settings, chosen: Choice, own: Mapping[str, object]) -> Policy:
    unread, clashes = Faults(), Faults()
    read = read_keys(Context, own, "context", unread)
    laid = laid_over(settings, chosen.name, {key: value for key, value in read.items() if f"context.{key}" not in unread.found})
    check_context(laid, "context", clashes)
    return chosen.policy if clashes.found else laid


def laid_over(settings: Settings, name: str, own: Mapping[str, object]) -> Context:
    """Some keys above those of a profile or preset; a preset of their own makes any pipeline void."""
    below = keys_of(settings, name)
    kept = {key: value for key, value in below.items() if key != "pipeline" or "preset" not in own}
    return resolved(settings.explicit, {**kept, **own})


def keys_of(settings: Settings, name: str) -> Mapping[str, object]:
    """The keys that a profile sets; those of a preset's name are that preset, those of "" none."""
    return settings.profile_keys.get(name, {"preset": name} if name in PRESETS else NOTHING)


def _named(settings: Settings, name: str) -> Policy:
    if name in settings.profiles:
        return settings.profiles[name]
    if name in PRESETS:
        return resolved(settings.explicit, {"preset": name})
    known = ", ".join((*settings.profiles, *PRESETS))
    raise BadRequest(f"X-Context-Preset: there is no profile or preset {describe.named(name)}; known are {known}", param="X-Context-Preset")


def _session_profile(settings: Settings, key: SessionKey | None) -> str | None:
    entry = session_entry(settings, key) if key else None
    return entry.profile if entry else None


def session_entry(settings: Settings, key: SessionKey) -> SessionProfile | None:
    """The entry of `sessions.profiles` that is for a session; None if none is."""
    return next((entry for entry in settings.sessions.profiles if fnmatchcase(key.name, entry.match)), None)


def restored_turns(settings: Settings, policy: Policy, key: SessionKey) -> int | None:
    """How many turns of a session are restored: as its entry says, else `sessions.restore_turns` if that is set, else the preset; None for all."""
    entry = session_entry(settings, key)
    if entry and entry.restore_turns is not None:
        return turns_of(entry.restore_turns, policy.max_turns)
    return turns_of(settings.sessions.restore_turns if settings.restores_as_set else PRESETS[policy.preset].restore, policy.max_turns)


def _route_profile(settings: Settings, model: str) -> str | None:
    return next((route.profile for route in settings.upstream.routes if fnmatchcase(model, route.match)), None)


def resolved(explicit: Mapping[str, object], changes: Mapping[str, object]) -> Context:
    """The keys of a profile over those set in `context`, over the defaults of the preset in force.

    A profile that names a preset does not inherit the pipeline.
    """
    inherited = {key: value for key, value in explicit.items() if key != "pipeline" or "preset" not in changes}
    keys = {**inherited, **changes}
    return msgspec.structs.replace(Context(), **{**PRESETS[preset_of(keys)].defaults, **keys})


def from_preset(explicit: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, str]:
    """The keys whose value is a default of the preset in force, with its name."""
    keys = {**explicit, **changes}
    preset = preset_of(keys)
    return {key: preset for key in PRESETS[preset].defaults if key not in keys}


def preset_of(keys: Mapping[str, object]) -> str:
    """The preset that some keys of `context` put in force."""
    return str(keys.get("preset", Context().preset))
