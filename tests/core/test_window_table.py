"""The built-in windows: by name, with and without a vendor's prefix."""

from __future__ import annotations

import pytest

from ctxproxy.core.overflow_numbers import is_window
from ctxproxy.core.window_table import BUILTIN_WINDOWS, builtin_window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o-mini", 128_000),
        ("openai/gpt-4.1", 1_047_576),
        ("GPT-4-0613", 8_192),
        ("gpt-4-32k", 32_768),
        ("gpt-4-1106-preview", 128_000),
        ("gpt-5-mini", 400_000),
        ("gpt-5-chat-latest", 128_000),
        ("o1-mini", 128_000),
        ("o3", 200_000),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", 200_000),
        ("anthropic/claude-sonnet-4.5", 200_000),
        ("gemini-2.5-pro", 1_048_576),
        ("models/gemini-1.5-pro", 2_097_152),
        ("meta-llama/Llama-3.3-70B-Instruct", 131_072),
        ("meta-llama/Meta-Llama-3-8B-Instruct", 8_192),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", 131_072),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", 262_144),
        ("qwen-max", 32_768),
        ("deepseek-chat", 131_072),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", 131_072),
        ("glm-4.6", 202_752),
        ("kimi-k2-0905-preview", 262_144),
        ("moonshot-v1-8k", 8_192),
        ("MiniMax-M2", 204_800),
        ("doubao-1-5-pro-32k-250115", 32_768),
        ("ernie-4.0-8k", 8_192),
        ("hunyuan-lite", 256_000),
        ("grok-4-fast-reasoning", 2_000_000),
        ("mistral-small-latest", 131_072),
        ("open-mixtral-8x7b", 32_768),
        ("codestral-latest", 262_144),
        ("command-r-plus", 128_000),
        ("amazon.nova-pro-v1:0", 300_000),
        ("phi-4", 16_384),
        ("something-nobody-knows", None),
        ("", None),
    ],
)
def test_a_known_model_has_the_window_that_its_vendor_states(model: str, window: int | None) -> None:
    assert builtin_window(model) == window


def test_every_row_is_a_window_and_in_lower_case() -> None:
    assert all(is_window(window) and pattern == pattern.lower() for pattern, window in BUILTIN_WINDOWS)


def test_no_row_stands_twice() -> None:
    patterns = [pattern for pattern, _ in BUILTIN_WINDOWS]
    assert len(set(patterns)) == len(patterns)
