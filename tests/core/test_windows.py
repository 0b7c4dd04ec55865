"""Beliefs about windows: precedence, learning, listings, age, and the watch for silent truncation."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxproxy.core.overflow import OTHER, Verdict
from ctxproxy.core.records import WindowBelief, WindowSource
from ctxproxy.core.windows import (
    LEARNED_FOR_S,
    TOLD_FOR_S,
    Truncation,
    age_s,
    believe,
    is_expired,
    learn_from_error,
    learn_from_listing,
    learn_from_success,
    rule_for,
    supersedes,
    truncates_at,
    watch_truncation,
)

NOW = 1_750_000_000.0
UPSTREAM = "https://one.example"


@dataclass(frozen=True)
class Rule:
    match: str
    window: int | None = None


def belief(source: WindowSource, window: int = 5000, updated: float = NOW, confidence: float = 0.9) -> WindowBelief:
    return WindowBelief(UPSTREAM, "my-model", window, source, confidence, updated)


@pytest.mark.parametrize(
    ("model", "rules", "known", "window", "source"),
    [
        ("my-model", [Rule("MY-*", 32768)], belief("learned"), 32768, "config"),
        ("my-model", [Rule("other*", 1000), Rule("my-*"), Rule("my*", 2000)], None, 2000, "config"),
        ("my-model", [Rule("my-*")], belief("learned"), 5000, "learned"),
        ("my-model", [], belief("upstream"), 5000, "upstream"),
        ("my-model", [], belief("learned", updated=NOW - LEARNED_FOR_S - 1), 128_000, "default"),
        ("my-model", [], belief("upstream", updated=NOW - TOLD_FOR_S - 1), 128_000, "default"),
        ("gpt-4o-mini", [], None, 128_000, "builtin"),
        ("my-model", [], None, 128_000, "default"),
    ],
)
def test_the_first_source_of_the_precedence_counts(model: str, rules: list[Rule], known: WindowBelief | None, window: int, source: str) -> None:
    found = believe(UPSTREAM, model, rules, known, NOW)
    assert (found.window, found.source) == (window, source)
    assert 0 < found.confidence <= 1


def test_the_first_matching_rule_is_given_whatever_it_says() -> None:
    rules = [Rule("qwen*", 1), Rule("*")]
    assert rule_for(rules, "Qwen3-Max") == rules[0]
    assert rule_for(rules, "x") == rules[1]
    assert rule_for([], "x") is None


def test_only_what_was_learned_or_told_grows_old() -> None:
    assert not is_expired(belief("builtin", updated=0.0), NOW)
    assert not is_expired(belief("learned", updated=NOW - LEARNED_FOR_S), NOW)
    assert is_expired(belief("learned", updated=NOW - LEARNED_FOR_S - 1), NOW)
    assert age_s(belief("learned", updated=NOW - 5), NOW) == 5
    assert age_s(belief("learned", updated=NOW + 5), NOW) == 0


@pytest.mark.parametrize(
    ("verdict", "window"),
    [
        (Verdict("overflow", limit_tokens=8192), 8192),
        (Verdict("output_cap", limit_tokens=8192), 8192),
        (Verdict("overflow"), None),
        (Verdict("overflow", limit_tokens=127), None),
        (Verdict("overflow", limit_tokens=20_000_001), None),
        (Verdict("rate_limit", limit_tokens=30_000), None),
        (OTHER, None),
    ],
)
def test_an_error_teaches_only_a_stated_window_within_bounds(verdict: Verdict, window: int | None) -> None:
    learned = learn_from_error(UPSTREAM, "my-model", verdict, NOW)
    assert (learned and learned.window) == window
    assert learned is None or learned.source == "learned"


@pytest.mark.parametrize(
    ("source", "tokens", "raised"),
    [
        ("learned", 6000, True),
        ("builtin", 6000, True),
        ("default", 6000, True),
        ("config", 6000, False),
        ("upstream", 6000, False),
        ("learned", 5000, False),
        ("default", 30_000_000, False),
    ],
)
def test_a_success_larger_than_believed_raises_what_nobody_stated(source: WindowSource, tokens: int, raised: bool) -> None:
    grown = learn_from_success(belief(source), tokens, NOW + 1)
    assert (grown is not None) is raised
    if grown is not None:
        assert (grown.window, grown.source, grown.updated) == (tokens, "learned", NOW + 1)
        assert grown.confidence < 0.9


@pytest.mark.parametrize(
    ("entry", "window"),
    [
        ({"max_model_len": 32768}, 32768),
        ({"context_length": 131072, "top_provider": {"context_length": 65536}}, 131072),
        ({"context_window": 8192}, 8192),
        ({"meta": {"n_ctx_train": 131072, "n_ctx": 4096}}, 4096),
        ({"meta": {"n_ctx_train": 131072}}, 131072),
        ({"max_context_length": 131072, "loaded_context_length": 4096}, 4096),
        ({"capabilities": {"limits": {"max_context_window_tokens": 128000}}}, 128000),
        ({"token_limits": {"context_window": 32768}}, 32768),
        ({"inputTokenLimit": 1048576}, 1048576),
        ({"context_length": True}, None),
        ({"context_length": "8192"}, None),
        ({"context_length": 0}, None),
        ({"meta": None}, None),
        ({}, None),
    ],
)
def test_a_listing_tells_of_windows_in_many_keys(entry: dict[str, object], window: int | None) -> None:
    told = learn_from_listing(UPSTREAM, json.dumps({"data": [{"id": "m", **entry}]}).encode(), NOW)
    assert [(one.model, one.window, one.source) for one in told] == ([("m", window, "upstream")] if window else [])


def test_listings_come_in_several_shapes_and_the_first_entry_of_a_name_counts() -> None:
    entries = [{"id": "a", "n_ctx": 1000}, {"id": "a", "n_ctx": 2000}, {"name": "models/b", "n_ctx": 3000}, "junk", {"n_ctx": 4000}]
    for listing in ({"data": entries}, {"models": entries}, entries, {"data": entries, "models": entries}):
        told = learn_from_listing(UPSTREAM, json.dumps(listing).encode(), NOW)
        assert [(one.model, one.window) for one in told] == [("a", 1000), ("b", 3000)]


def test_aliases_of_an_entry_share_its_window() -> None:
    body = json.dumps({"data": [{"id": "a", "aliases": ["a-latest", 7], "max_context_length": 9000}]}).encode()
    assert [one.model for one in learn_from_listing(UPSTREAM, body, NOW)] == ["a", "a-latest"]


@pytest.mark.parametrize("body", [b"", b"<html>", b"7", b"{}", b'{"data":{}}', b"null"])
def test_anything_else_tells_of_nothing(body: bytes) -> None:
    assert learn_from_listing(UPSTREAM, body, NOW) == []


@given(st.binary(max_size=200))
def test_no_listing_makes_it_raise(body: bytes) -> None:
    learn_from_listing(UPSTREAM, body, NOW)


@pytest.mark.parametrize(
    ("new", "old", "wins"),
    [
        (belief("upstream"), None, True),
        (belief("learned"), belief("learned"), True),
        (belief("learned"), belief("upstream"), True),
        (belief("upstream"), belief("learned"), False),
        (belief("upstream"), belief("learned", confidence=0.6), True),
        (belief("upstream"), belief("learned", updated=NOW - LEARNED_FOR_S - 1), True),
        (belief("upstream"), belief("upstream"), True),
    ],
)
def test_a_listing_does_not_override_what_an_error_taught(new: WindowBelief, old: WindowBelief | None, wins: bool) -> None:
    assert supersedes(new, old, NOW) is wins


def watched(*pairs: tuple[int, int]) -> Truncation:
    state = Truncation()
    for counted, reported in pairs:
        state = watch_truncation(state, counted, reported)
    return state


@pytest.mark.parametrize(
    ("pairs", "cut_at"),
    [
        ([(9000, 4096), (12_000, 4096), (15_000, 4090)], 4096),
        ([(9000, 4096), (12_000, 4096)], None),
        ([(9000, 4096), (9000, 5000), (9000, 4096)], None),
        ([(9000, 4096), (12_000, 4096), (15_000, 14_000)], None),
        ([(9000, 4096), (12_000, 4096), (3000, 3000), (15_000, 4096)], 4096),
        ([(9000, 4096), (12_000, 4096), (9000, 0), (15_000, 4096)], 4096),
        ([(9000, 8900), (9100, 9000), (9200, 9100)], None),
    ],
)
def test_a_prompt_far_below_our_count_again_and_again_at_one_value_is_truncation(pairs: list[tuple[int, int]], cut_at: int | None) -> None:
    assert truncates_at(watched(*pairs)) == cut_at


def test_beliefs_are_values() -> None:
    assert replace(belief("learned"), window=1) != belief("learned")
