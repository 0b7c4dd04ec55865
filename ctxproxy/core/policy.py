"""How a conversation is to be kept inside its budget: the `context`, `recovery` and `summarizer` settings as values.

The names and defaults are INTERFACE.md §3's; `config` reads them, profiles override single ones.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

Auto: TypeAlias = Literal["auto"]
Fraction: TypeAlias = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
PresetName: TypeAlias = Literal["adaptive", "cowagent", "agkit", "hybrid", "layered", "trim", "delete", "lossless", "off"]


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of `context`; percentages are of the effective budget (prompt budget less system, tools and response format)."""

    preset: PresetName = "adaptive"
    observe: bool = False
    max_tokens: Tokens | Auto = "auto"
    max_turns: Count | None = None
    max_steps: Count | None = None
    stop_at_max_steps: bool = False
    pre_rot_tokens: Tokens = 150_000
    reserve_tokens: Annotated[int, msgspec.Meta(ge=0)] | Auto = "auto"
    compact_at: Fraction = 0.80
    summarize_at: Fraction = 0.95
    target: Fraction = 0.55
    min_gain: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.05
    cached_price: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.1
    cache_ttl_s: Annotated[float, msgspec.Meta(ge=0.0)] = 300.0
    keep_recent_turns: Annotated[int, msgspec.Meta(ge=0)] | Auto = 4
    pipeline: tuple[dict[str, Any], ...] | None = None


class Recovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of `recovery`: what the ladder may do after an overflow."""

    enabled: bool = True
    final_error: Literal["upstream", "openai"] = "upstream"
    tool_result_chars: Count = 10_000
    user_text_chars: Count = 10_000
    max_turns: Count = 5
    deadline_s: Annotated[float, msgspec.Meta(gt=0.0)] = 120.0
    shorten_last_user: bool = False


class SummarizerPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of `summarizer`."""

    kind: str = "llm"
    """`llm`, `extractive`, `off`, or a function of the user's own as `module:function`."""
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = None
    max_tokens: Tokens = 1024
    timeout_s: Annotated[float, msgspec.Meta(gt=0.0)] = 60.0
    language: Literal["auto", "en", "zh"] = "auto"
    """`auto`: the conversation's own."""
    background: bool = True
