"""Which policy a request gets: by header, session name, route or experiment, and what lies over what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import ctxproxy.core.stages  # noqa: F401  it fills the registry
from ctxproxy.config.explain import explain
from ctxproxy.config.load import load, read
from ctxproxy.config.policies import Choice, choose, policy_for
from ctxproxy.config.schema import Context, Settings
from ctxproxy.core.policy import Policy, PresetName
from ctxproxy.core.presets import PRESETS, stages_of
from ctxproxy.core.records import SessionKey
from ctxproxy.errors import BadRequest

Given = Callable[[str], Settings]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    def settings(text: str, environ: dict[str, str] | None = None) -> Settings:
        path = tmp_path / "config.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path, environ or {}, {})

    return settings


def values(policy: Policy, *keys: str) -> tuple[object, ...]:
    return tuple(getattr(policy, key) for key in keys)


def key(name: str) -> SessionKey:
    return SessionKey("0" * 32, name)


# --- the defaults of a preset ------------------------------------------------------------------------------------------------------


def test_every_preset_that_can_be_named_is_there() -> None:
    assert set(PRESETS) == set(get_args(PresetName))


@pytest.mark.parametrize("name", PRESETS)
def test_the_defaults_of_each_preset_are_valid_settings(given: Given, name: str) -> None:
    context = given(f"context: {{preset: {name}}}").context
    assert msgspec.convert(dict(PRESETS[name].defaults), Context) is not None
    assert values(context, *PRESETS[name].defaults) == tuple(PRESETS[name].defaults.values())
    assert stages_of(context) == stages_of(Policy(preset=name))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("context: {preset: cowagent}", ("cowagent", 50_000, 20)),
        ("context: {preset: cowagent, max_tokens: 8000}", ("cowagent", 8_000, 20)),
        ("context: {preset: cowagent, max_tokens: auto, max_turns: null}", ("cowagent", "auto", None)),
        ("agent_max_context_tokens: 64000\ncontext: {preset: cowagent}", ("cowagent", 64_000, 20)),
        ("context: {max_tokens: 8000}", ("adaptive", 8_000, None)),
    ],
)
def test_what_was_set_stands_and_the_rest_has_the_presets_default(given: Given, text: str, expected: tuple[object, ...]) -> None:
    assert values(given(text).context, "preset", "max_tokens", "max_turns") == expected


def test_the_environment_and_the_command_line_set_keys_too(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("context: {preset: cowagent}", encoding="utf-8")
    settings = load(path, {"CTXPROXY_CONTEXT__MAX_TURNS": "7"}, {"context.max_tokens": 9_000})
    assert values(settings.context, "max_tokens", "max_turns") == (9_000, 7)
    assert values(load(path, {"CTXPROXY_CONTEXT__PRESET": "lossless"}, {}).context, "preset", "max_turns") == ("lossless", None)


def test_a_preset_named_by_a_request_brings_its_defaults_under_what_was_set(given: Given) -> None:
    settings = given("context: {max_tokens: 8000}")
    assert values(policy_for(settings, "cowagent", "m"), "preset", "max_tokens", "max_turns") == ("cowagent", 8_000, 20)
    assert values(policy_for(given(""), "cowagent", "m"), "max_tokens", "max_turns") == (50_000, 20)


def test_a_preset_named_by_a_request_does_not_keep_the_defaults_of_the_one_in_force(given: Given) -> None:
    settings = given("context: {preset: cowagent, max_tokens: 8000}")
    assert values(policy_for(settings, "adaptive", "m"), "preset", "max_tokens", "max_turns") == ("adaptive", 8_000, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("profiles: {p: {preset: cowagent}}", (50_000, 20)),
        ("context: {max_turns: 7}\nprofiles: {p: {preset: cowagent}}", (50_000, 7)),
        ("context: {max_turns: 7}\nprofiles: {p: {preset: cowagent, max_turns: 9}}", (50_000, 9)),
        ("context: {preset: cowagent}\nprofiles: {p: {max_turns: 9}}", (50_000, 9)),
        ("context: {preset: cowagent}\nprofiles: {p: {preset: lossless}}", ("auto", None)),
    ],
)
def test_a_profiles_keys_lie_over_those_of_context_and_these_over_its_presets_defaults(given: Given, text: str, expected: tuple[object, ...]) -> None:
    settings = given(text)
    assert values(policy_for(settings, "p", "m"), "max_tokens", "max_turns") == expected


def test_profiles_lie_over_context(given: Given) -> None:
    settings = given("context: {max_turns: 7, target: 0.5}\nprofiles: {small: {max_tokens: 300}}")
    assert settings.profiles["small"] == policy_for(settings, "small", "m")
    assert values(settings.profiles["small"], "max_tokens", "max_turns", "target") == (300, 7, 0.5)
    assert settings.context.max_tokens == "auto"


PIPELINE = "context: {pipeline: [{stage: drop_oldest}], max_turns: 7}\n"


def test_a_preset_chosen_by_name_takes_the_place_of_the_pipeline_and_of_nothing_else(given: Given) -> None:
    assert values(policy_for(given(PIPELINE), "lossless", "m"), "preset", "pipeline", "max_turns") == ("lossless", None, 7)


def test_a_profile_with_a_preset_does_not_inherit_the_pipeline_but_others_do(given: Given) -> None:
    settings = given(PIPELINE + "profiles: {a: {preset: off}, b: {max_tokens: 5}, c: {preset: off, pipeline: [{stage: clear}]}}")
    assert [settings.profiles[name].pipeline for name in "abc"] == [None, ({"stage": "drop_oldest"},), ({"stage": "clear"},)]


def test_what_comes_from_a_preset_is_shown_with_it(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("context: {max_turns: 7}\nprofiles: {p: {preset: cowagent}, q: {observe: true}}", encoding="utf-8")
    under_a_profile = read(path, {}, {}).sources
    assert under_a_profile["profiles.p.max_tokens"] == "preset cowagent"
    assert "profiles.p.max_turns" not in under_a_profile
    assert not [key for key, source in under_a_profile.items() if key.startswith(("context.", "profiles.q.")) and source != str(path)]
    path.write_text("context: {preset: cowagent, max_turns: 7}\nprofiles: {q: {observe: true}}", encoding="utf-8")
    loaded = read(path, {}, {})
    shown = [line.strip() for line in explain(loaded).splitlines()]
    assert shown.count("max_tokens: 50000  # from preset cowagent") == 2
    assert f"max_turns: 7  # from {path}" in shown


def test_a_fault_between_a_key_and_a_presets_default_names_the_preset(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("context: {preset: cowagent, compact_at: 0.2}", encoding="utf-8")
    with pytest.raises(Exception, match=r"context.target: .* must not be above .*\(from preset cowagent\)"):
        load(path, {}, {})


# --- who chooses -------------------------------------------------------------------------------------------------------------------

CHOICES = """
profiles: {by_header: {max_tokens: 1}, by_session: {max_tokens: 2}, by_route: {max_tokens: 3}, by_arm: {max_tokens: 4}}
sessions: {profiles: [{match: "cron-*", profile: by_session}, {match: "cron-1", profile: by_header}]}
upstream: {routes: [{match: "qwen*", profile: by_route}, {match: "*"}]}
experiment: {arms: [{profile: by_arm, share: 100}]}
"""


@pytest.mark.parametrize(
    ("named", "session", "model", "chosen", "arm"),
    [
        ("by_header", "cron-1", "qwen", 1, ""),
        (None, "cron-1", "qwen", 2, ""),
        (None, "cron-1", "gpt", 2, ""),
        (None, "chat", "qwen", 3, ""),
        (None, "chat", "gpt", 4, "by_arm"),
        (None, None, "qwen", 3, ""),
        (None, None, "gpt", "auto", ""),
        ("by_arm", "chat", "gpt", 4, ""),
    ],
)
def test_the_header_goes_before_the_session_and_that_before_the_route_and_that_before_the_arm(
    given: Given, named: str | None, session: str | None, model: str, chosen: object, arm: str
) -> None:
    choice = choose(given(CHOICES), named, model, key(session) if session else None)
    assert (choice.policy.max_tokens, choice.arm) == (chosen, arm)


def test_a_session_pattern_may_name_a_preset(given: Given) -> None:
    settings = given("sessions: {profiles: [{match: 'cron-?', profile: off}]}")
    assert [policy_for(settings, None, "m", key(name)).preset for name in ("cron-1", "cron-11", "CRON-1")] == ["off", "adaptive", "adaptive"]


def test_sessions_beyond_all_shares_have_the_default_context_and_no_arm(given: Given) -> None:
    settings = given("experiment: {name: e, arms: [{profile: off, share: 20}, {profile: lossless, share: 30}]}")
    drawn = Counter(choose(settings, None, "m", key(f"s{n}")).arm for n in range(2_000))
    assert {arm: round(number / 200) for arm, number in drawn.items()} == {"off": 2, "lossless": 3, "": 5}
    assert {choose(settings, None, "m", key(f"s{n}")).policy.preset for n in range(50)} == {"off", "lossless", "adaptive"}


def test_without_an_experiment_no_request_has_an_arm(given: Given) -> None:
    settings = given("")
    assert choose(settings, None, "m", key("s")) == Choice(settings.context)


def test_a_route_chooses_the_profile_of_requests_that_name_none(given: Given) -> None:
    settings = given("upstream: {routes: [{match: 'qwen*', profile: small}, {match: '*'}]}\nprofiles: {small: {max_tokens: 300}}")
    assert policy_for(settings, None, "qwen-9").max_tokens == 300
    assert policy_for(settings, None, "gpt").max_tokens == "auto"
    assert policy_for(settings, "off", "qwen-9").preset == "off"


@pytest.mark.parametrize("name", ["smal", "no such preset", ""])
def test_an_unknown_profile_is_a_bad_request_that_names_the_known_ones(given: Given, name: str) -> None:
    with pytest.raises(BadRequest, match=r"known are small, adaptive, .*off"):
        policy_for(given("profiles: {small: {}}"), name, "m")


def test_a_preset_changes_only_keys_that_context_has() -> None:
    known: set[Any] = set(Context.__struct_fields__) - {"preset", "pipeline"}
    assert [name for name, preset in PRESETS.items() if not preset.defaults.keys() <= known] == []
