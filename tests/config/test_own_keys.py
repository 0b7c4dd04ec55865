"""Context settings of one session's own: which keys there are, what a text means, what counts and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxproxy.config.load import load
from ctxproxy.config.own_keys import DEFAULT, KEYS, NAMES, in_force, key_named, nearest_key, with_key
from ctxproxy.config.policies import Choice, choose
from ctxproxy.config.schema import Settings
from ctxproxy.core.records import SessionKey

KEY = SessionKey("0" * 32, "s")
FILE = """
context: {max_turns: 40, target: 0.5}
profiles: {small: {preset: trim, max_tokens: 9000}, piped: {pipeline: [{stage: drop_oldest}]}}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "config.yaml"
    file.write_text(FILE, encoding="utf-8")
    return load(file, {}, {})


def chosen(settings: Settings, own: dict[str, Any], named: str | None = None) -> Choice:
    return choose(settings, named, "m", KEY, own)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("max_tokens", "max_tokens"),
        ("context.max_tokens", "max_tokens"),
        ("agent_max_context_tokens", "max_tokens"),
        ("agent_max_context_turns", "max_turns"),
        ("agent_max_steps", "max_steps"),
        ("context.agent_max_steps", "max_steps"),
        ("report_usage", "report_usage"),
        ("max_tokns", None),
        ("pipeline", None),
        ("recall_tool", None),
        ("admin.token", None),
        ("upstream.api_key", None),
        ("", None),
    ],
)
def test_a_key_goes_by_its_name_its_path_or_an_alias(given: str, key: str | None) -> None:
    assert key_named(given) == key


@pytest.mark.parametrize(("given", "near"), [("max_tokns", "max_tokens"), ("agent_max_context_token", "agent_max_context_tokens"), ("zzz", "")])
def test_the_nearest_name_is_told(given: str, near: str) -> None:
    assert nearest_key(given) == near


def test_every_name_that_is_told_is_taken() -> None:
    assert {key_named(name) for name in NAMES} == set(KEYS)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("max_tokens", "80000", 80_000),
        ("max_tokens", "auto", "auto"),
        ("max_turns", "30", 30),
        ("max_turns", "null", None),
        ("preset", "cowagent", "cowagent"),
        ("observe", "true", True),
        ("compact_at", "0.9", 0.9),
        ("compact_at", "1", 1.0),
        ("cache_ttl_s", "0", 0.0),
    ],
)
def test_a_text_is_read_as_the_key_wants_it(settings: Settings, key: str, text: str, value: object) -> None:
    own = with_key(settings, chosen(settings, {}), {"max_steps": 3}, key, text)
    assert own == {"max_steps": 3, key: value}
    assert getattr(chosen(settings, own).policy, key) == value


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("max_tokens", "80,000", "expected whole number from 1 | auto, not '80,000'"),
        ("max_tokens", "0", "expected whole number from 1 | auto, not 0"),
        ("preset", "trimm", "not 'trimm'; did you mean trim?"),
        ("observe", "{a: 1}", "expected true | false, not keys and values"),
        ("target", "0.95", "0.95 must not be above context.compact_at, which is 0.8"),
        ("compact_at", "0.4", "0.5 must not be above context.compact_at, which is 0.4"),
    ],
)
def test_a_bad_value_is_refused_with_the_reason(settings: Settings, key: str, text: str, reason: str) -> None:
    refused = with_key(settings, chosen(settings, {}), {}, key, text)
    assert isinstance(refused, str)
    assert reason in refused


def test_default_takes_a_key_back(settings: Settings) -> None:
    assert with_key(settings, chosen(settings, {}), {"max_turns": 3, "max_steps": 5}, "max_turns", DEFAULT) == {"max_steps": 5}
    assert with_key(settings, chosen(settings, {}), {}, "max_turns", DEFAULT) == {}


def test_each_value_is_told_with_where_it_comes_from(settings: Settings) -> None:
    own = {"max_turns": 7}
    rows = {row.key: (row.value, row.source) for row in in_force(settings, chosen(settings, own, "small"), own)}
    assert tuple(rows) == KEYS
    assert rows["max_turns"] == ("7", "session")
    assert rows["max_tokens"] == ("9000", "profile small")
    assert rows["target"] == ("0.5", "settings")
    assert rows["max_steps"] == ("null", "default")
    by_preset = {row.key: row.source for row in in_force(settings, chosen(settings, {}, "cowagent"), {})}
    assert (by_preset["preset"], by_preset["max_tokens"], by_preset["max_turns"]) == ("preset cowagent", "preset cowagent", "settings")


def test_a_sessions_keys_lie_above_the_profile_that_above_the_file_that_above_the_preset(settings: Settings) -> None:
    def values(own: dict[str, Any], named: str | None = None) -> tuple[object, ...]:
        policy = chosen(settings, own, named).policy
        return policy.preset, policy.max_tokens, policy.max_turns, policy.max_steps

    assert values({}) == ("adaptive", "auto", 40, None)
    assert values({"preset": "cowagent"}) == ("cowagent", 50_000, 40, 15)
    assert values({"max_tokens": 1000}, "small") == ("trim", 1000, 40, None)
    assert values({"preset": "cowagent"}, "small") == ("cowagent", 9000, 40, 15)
    assert values({"max_turns": None}, "agkit") == ("agkit", "auto", None, None)


def test_a_preset_of_its_own_makes_a_pipeline_void(settings: Settings) -> None:
    assert chosen(settings, {"max_tokens": 9}, "piped").policy.pipeline is not None
    assert chosen(settings, {"preset": "trim"}, "piped").policy.pipeline is None


@pytest.mark.parametrize(
    ("own", "max_tokens", "target"),
    [
        ({"max_tokens": "many", "target": 0.6}, "auto", 0.6),
        ({"no_such_key": 1, "max_tokens": 900}, 900, 0.5),
        ({"max_tokens": 900, "target": 0.9}, "auto", 0.5),
    ],
)
def test_what_does_not_go_with_the_settings_any_more_counts_for_nothing(
    settings: Settings, own: dict[str, Any], max_tokens: object, target: float
) -> None:
    policy = chosen(settings, own).policy
    assert (policy.max_tokens, policy.target) == (max_tokens, target)
