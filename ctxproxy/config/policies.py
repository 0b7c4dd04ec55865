"""Which policy a request gets, and how the keys that somebody set lie over the defaults of the preset in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from ctxproxy.config import describe
from ctxproxy.config.schema import Context, Settings
from ctxproxy.core.arms import arm_of
from ctxproxy.core.policy import Policy
from ctxproxy.core.presets import PRESETS
from ctxproxy.core.records import SessionKey
from ctxproxy.errors import BadRequest


@dataclass(frozen=True, slots=True)
class Choice:
    """A request's policy, and the arm of the experiment that chose it; "" where no arm did."""

    policy: Policy
    arm: str = ""


def policy_for(settings: Settings, named: str | None, model: str, key: SessionKey | None = None) -> Policy:
    """The policy of a request, as `choose` has it."""
    return choose(settings, named, model, key).policy


def choose(settings: Settings, named: str | None, model: str, key: SessionKey | None) -> Choice:
    """The profile or preset that a request names, else that of its session's name, of its model's route, of its arm; else `context`.

    Raises BadRequest for an unknown name.
    """
    name = next((name for name in (named, _session_profile(settings, key), _route_profile(settings, model)) if name is not None), None)
    if name is not None:
        return Choice(_named(settings, name))
    arm = arm_of(settings.experiment.name, key, [(arm.profile, arm.share) for arm in settings.experiment.arms]) if key else ""
    return Choice(_named(settings, arm), arm) if arm else Choice(settings.context)


def _named(settings: Settings, name: str) -> Policy:
    if name in settings.profiles:
        return settings.profiles[name]
    if name in PRESETS:
        return resolved(settings.explicit, {"preset": name})
    known = ", ".join((*settings.profiles, *PRESETS))
    raise BadRequest(f"X-Context-Preset: there is no profile or preset {describe.named(name)}; known are {known}", param="X-Context-Preset")


def _session_profile(settings: Settings, key: SessionKey | None) -> str | None:
    return next((entry.profile for entry in settings.sessions.profiles if key and fnmatchcase(key.name, entry.match)), None)


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
