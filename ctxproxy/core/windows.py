"""What is believed of a model's context window, from where, how surely and since when; pure functions over `WindowBelief`.

Precedence: configured, learned (from an error, or from a success larger than believed), told by the upstream, built-in table, default.
A configured window always wins, since who writes it means it; an error that contradicts it still steers the recovery of its own request.
What is learned or told grows old: a model behind a name can be exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Protocol

from ctxproxy.core.jsontext import decode
from ctxproxy.core.overflow import Verdict
from ctxproxy.core.overflow_numbers import is_window
from ctxproxy.core.records import WindowBelief, WindowSource
from ctxproxy.core.window_table import DEFAULT_WINDOW_TOKENS, builtin_window

LEARNED_FOR_S = 7 * 86_400.0
TOLD_FOR_S = 86_400.0
"""How long a listing is believed: it can be asked again at any time."""
CONFIDENCE: dict[WindowSource, float] = {"config": 1.0, "learned": 0.95, "upstream": 0.9, "builtin": 0.7, "default": 0.3}
CONFIDENCE_OF_SUCCESS = 0.6
"""A success only shows that the window is at least so large."""
MAX_ENTRIES = 5_000
"""Models read from one listing."""

LISTED_KEYS = (
    ("loaded_context_length",),
    ("meta", "n_ctx"),
    ("max_model_len",),
    ("context_length",),
    ("context_window",),
    ("max_context_length",),
    ("max_context_window",),
    ("context_size",),
    ("max_seq_len",),
    ("n_ctx",),
    ("num_ctx",),
    ("inputTokenLimit",),
    ("max_input_tokens",),
    ("capabilities", "limits", "max_context_window_tokens"),
    ("limits", "max_context_window"),
    ("token_limits", "context_window"),
    ("top_provider", "context_length"),
    ("model_info", "max_input_tokens"),
    ("meta", "n_ctx_train"),
)
"""Where listings state a window, what is really loaded first: LM Studio, llama.cpp, vLLM and SGLang, OpenRouter and Together, Groq, Mistral,
Gemini, GitHub Copilot, Volcengine, LiteLLM."""


class ModelRule(Protocol):
    """An entry of the configured `models`."""

    @property
    def match(self) -> str: ...
    @property
    def window(self) -> int | None: ...
    @property
    def encoding(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Truncation:
    """How often in a row an upstream reported one prompt size that is far below our count."""

    value_tokens: int = 0
    times: int = 0


def rule_for(rules: Sequence[ModelRule], model: str) -> ModelRule | None:
    """The first configured rule that matches a model name; names have no case."""
    name = model.lower()
    return next((rule for rule in rules if fnmatchcase(name, rule.match.lower())), None)


def believe(upstream: str, model: str, rules: Sequence[ModelRule], known: WindowBelief | None, now: float) -> WindowBelief:
    """The window to plan with; `known` is what was learned or told of this model, if anything."""
    configured = next((rule.window for rule in rules if rule.window is not None and fnmatchcase(model.lower(), rule.match.lower())), None)
    if configured is not None:
        return _belief(upstream, model, configured, "config", now)
    if known is not None and not is_expired(known, now):
        return known
    listed = builtin_window(model)
    if listed is not None:
        return _belief(upstream, model, listed, "builtin", now)
    return _belief(upstream, model, DEFAULT_WINDOW_TOKENS, "default", now)


def is_expired(belief: WindowBelief, now: float) -> bool:
    """Whether what was learned or told is too old to be believed; other sources do not age."""
    lasts_s = {"learned": LEARNED_FOR_S, "upstream": TOLD_FOR_S}.get(belief.source)
    return lasts_s is not None and age_s(belief, now) > lasts_s


def age_s(belief: WindowBelief, now: float) -> float:
    """Seconds since a belief was formed; 0 if clocks disagree."""
    return max(0.0, now - belief.updated)


def learn_from_error(upstream: str, model: str, verdict: Verdict, now: float) -> WindowBelief | None:
    """The window that an error states; None if it states none that may be believed."""
    if verdict.kind not in ("overflow", "output_cap") or verdict.limit_tokens is None or not is_window(verdict.limit_tokens):
        return None
    return _belief(upstream, model, verdict.limit_tokens, "learned", now)


def learn_from_success(belief: WindowBelief, tokens: int, now: float) -> WindowBelief | None:
    """The belief after an answer that used so many tokens, if that is more than was believed; None if there is nothing to learn.

    What is configured stays; what the upstream told of itself does too.
    """
    if belief.source in ("config", "upstream") or tokens <= belief.window or not is_window(tokens):
        return None
    return replace(belief, window=tokens, source="learned", confidence=CONFIDENCE_OF_SUCCESS, updated=now)


def learn_from_listing(upstream: str, body: bytes, now: float) -> list[WindowBelief]:
    """The windows that a `/v1/models` answer states, one a model; [] for anything else. Never raises."""
    try:
        listing = decode(body)
    except ValueError:
        return []
    told: dict[str, WindowBelief] = {}
    for entry in _entries(listing):
        window = _stated_window(entry)
        if window is not None:
            for name in _names(entry):
                told.setdefault(name, _belief(upstream, name, window, "upstream", now))
    return list(told.values())


def supersedes(new: WindowBelief, old: WindowBelief | None, now: float) -> bool:
    """Whether a new belief takes an old one's place: a listing does not override what an error taught while that is fresh."""
    if old is None or is_expired(old, now) or new.source == "learned":
        return True
    return old.source != "learned" or old.confidence <= CONFIDENCE_OF_SUCCESS


def _belief(upstream: str, model: str, window: int, source: WindowSource, now: float) -> WindowBelief:
    return WindowBelief(upstream, model, window, source, CONFIDENCE[source], now)


def _entries(listing: object) -> Iterable[dict[str, object]]:
    """The entries of OpenAI's `data`, of Ollama's and Gemini's `models`, or of a bare list."""
    found = listing
    if isinstance(listing, dict):
        found = [one for key in ("data", "models") if isinstance(listing.get(key), list) for one in listing[key]]
    return [one for one in found[:MAX_ENTRIES] if isinstance(one, dict)] if isinstance(found, list) else []


def _names(entry: dict[str, object]) -> list[str]:
    names = [entry.get(key) for key in ("id", "model", "name")]
    first = next((name for name in names if isinstance(name, str) and name), None)
    aliases = entry.get("aliases")
    others = [one for one in aliases[:20] if isinstance(one, str)] if isinstance(aliases, list) else []
    return [name.removeprefix("models/") for name in ([first] if first else []) + others]


def _stated_window(entry: dict[str, object]) -> int | None:
    for path in LISTED_KEYS:
        value: object = entry
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and is_window(value):
            return value
    return None


TRUNCATED_BELOW = 0.7
"""A reported prompt below this share of our count is far below: counts of ours are never that far off after calibration."""
SAME_VALUE = 0.02
TIMES_TO_SUSPECT = 3


def watch_truncation(state: Truncation, counted_tokens: int, reported_tokens: int) -> Truncation:
    """The state after an answer: `counted_tokens` is our count of the prompt, `reported_tokens` the upstream's `usage.prompt_tokens`."""
    if reported_tokens <= 0:
        return state
    if reported_tokens >= counted_tokens * TRUNCATED_BELOW:
        return Truncation() if state.times and reported_tokens > state.value_tokens * (1 + SAME_VALUE) else state
    if state.times and abs(reported_tokens - state.value_tokens) <= state.value_tokens * SAME_VALUE:
        return Truncation(max(reported_tokens, state.value_tokens), state.times + 1)
    return Truncation(reported_tokens, 1)


def truncates_at(state: Truncation) -> int | None:
    """The prompt size at which the upstream silently cuts, once it has been seen often enough; None before."""
    return state.value_tokens if state.times >= TIMES_TO_SUSPECT else None
