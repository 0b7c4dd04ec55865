"""What only sounds like an overflow: its kind, and whether a smaller request would help."""

from __future__ import annotations

import json

import pytest

from ctxproxy.core.overflow import classify


@pytest.mark.parametrize(
    ("status", "message", "kind", "shrink_helps"),
    [
        (429, "on tokens per min (TPM): Limit 30000, Requested 342389", "request_larger_than_tpm", True),
        (429, "on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000", "rate_limit", False),
        (429, "on tokens per min (TPM): Limit 30000, Requested 20000", "rate_limit", False),
        (402, "Prompt tokens limit exceeded: 82634 > 38936", "other", True),
        (400, "Invalid 'input[2].output': string too long. Expected a string with maximum length 10485760", "field_too_long", True),
        (400, "Invalid 'messages': array too long. Expected an array with maximum length 2048", "field_too_long", True),
        (400, "Invalid 'user': string too long. Expected a string with maximum length 64", "field_too_long", False),
        (413, "Request body too large: 12582912 bytes (max 10485760)", "field_too_long", True),
        (400, "image exceeds 5 MB maximum: 5862892 bytes", "field_too_long", False),
        (400, "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens", "output_cap", False),
    ],
)
def test_its_kind_and_whether_shrinking_helps(status: int, message: str, kind: str, shrink_helps: bool) -> None:
    verdict = classify(status, json.dumps({"error": {"message": message}}).encode())
    assert (verdict.kind, verdict.shrink_helps, verdict.limit_tokens) == (kind, shrink_helps, None)


def test_a_cap_that_asks_for_more_is_not_helped_by_less() -> None:
    message = "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens."
    assert classify(400, json.dumps({"error": {"message": message}}).encode()).clamp_helps is False


@pytest.mark.parametrize("veto", ["Forbidden", "Invalid model name", "Unknown parameter x", "The request timed out"])
def test_a_weak_veto_gives_way_to_an_overflow_stated_with_figures(veto: str) -> None:
    stated = f"{veto}: context window exceeded: 120002 tokens exceeds the limit of 120000 tokens"
    assert classify(400, json.dumps({"error": {"message": stated}}).encode()).limit_tokens == 120_000
    bare = f"{veto}: context window exceeded"
    assert classify(400, json.dumps({"error": {"message": bare}}).encode()).kind == "other"
