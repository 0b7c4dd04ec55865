"""Several statements, codes and a status: which of them decides."""

from __future__ import annotations

import json

import pytest

from ctxproxy.core.overflow_envelope import statements
from ctxproxy.core.overflow_judgement import OTHER, Verdict, folded, judged


def verdict_on(status: int, value: object) -> Verdict:
    return judged(status, statements(value))


def test_the_surest_overflow_of_several_statements_counts() -> None:
    value = {
        "error": {"message": "prompt is too long", "metadata": {"raw": json.dumps({"message": "prompt is too long: 5000 tokens > 4096 maximum"})}}
    }
    assert verdict_on(400, value).limit_tokens == 4096


def test_an_overflow_of_the_fallback_counts_beside_another_error_of_the_first() -> None:
    value = {
        "error": {"message": 'limits: {"message": "rate limit reached"} fallback: {"message": "prompt is too long: 5000 tokens > 4096 maximum"}'}
    }
    assert verdict_on(400, value).kind == "overflow"


def test_without_an_overflow_the_first_veto_counts() -> None:
    value = {"errors": [{"message": "Rate limit reached"}, {"message": "Invalid API key"}]}
    assert verdict_on(400, value).kind == "rate_limit"


@pytest.mark.parametrize(
    ("prompt", "completion", "kind"),
    [(6000, 64_000, "output_cap"), (32_000, 4_000, "overflow"), (1, 32_768, "output_cap"), (1, 32_767, "overflow")],
)
def test_an_output_that_fills_the_window_by_itself_is_a_complaint_of_the_output(prompt: int, completion: int, kind: str) -> None:
    parts = f"{prompt} tokens from the input messages and {completion} tokens for the completion"
    message = f"exceeds the model's maximum context length of 32768 tokens: {parts}"
    verdict = verdict_on(400, {"error": {"message": message}})
    assert (verdict.kind, verdict.limit_tokens, verdict.shrink_helps) == (kind, 32_768, kind == "overflow")
    assert verdict.clamp_helps


def test_a_limit_outside_the_bounds_of_a_window_is_not_taken() -> None:
    verdict = verdict_on(400, {"error": {"message": "prompt is too long: 120 tokens > 100 maximum"}})
    assert (verdict.kind, verdict.limit_tokens, verdict.prompt_tokens) == ("overflow", None, 120)


def test_the_status_of_the_answer_is_no_window() -> None:
    assert verdict_on(413, "prompt too long, limit 413").limit_tokens is None
    assert verdict_on(400, "prompt too long, limit 413").limit_tokens == 413


def test_a_code_decides_where_the_wording_does_not_name_the_window() -> None:
    assert verdict_on(429, {"error": {"message": "Please shorten the conversation", "code": "context_length_exceeded"}}).sign == "code-window"
    assert verdict_on(429, {"error": {"message": "Please shorten the conversation"}}).sign == "status-429"


def test_a_code_that_speaks_of_tokens_is_surer_than_a_complaint_of_the_body_s_size() -> None:
    said = {"message": "Request body too large for this model.", "code": "tokens_limit_reached"}
    assert verdict_on(413, {"error": said}).kind == "overflow"
    assert verdict_on(413, {"error": {**said, "code": "request_too_large"}}).kind == "field_too_long"
    assert verdict_on(429, {"error": {**said, "message": "Rate limit reached"}}).kind == "rate_limit"


def test_figures_of_an_object_that_says_nothing_belong_to_the_message_beside_it() -> None:
    figures = {"max_context_length": 32_768, "requested_tokens": 40_100}
    verdict = verdict_on(400, {"error": {"message": "context_length_exceeded", "details": figures}})
    assert (verdict.kind, verdict.limit_tokens, verdict.requested_tokens) == ("overflow", 32_768, 40_100)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "prompt has 34000 tokens while the model has a context of 32768 tokens", "overflow"),
        (400, "prompt has 30000 tokens while the model has a context of 32768 tokens", "other"),
        (400, "thinking of 34000 tokens, the maximum is 32768", "other"),
        (403, "This key may use at most 100000 tokens, the request has 140000 tokens", "other"),
    ],
)
def test_a_request_over_a_limit_is_an_overflow_however_it_is_put(status: int, message: str, kind: str) -> None:
    assert verdict_on(status, {"error": {"message": message}}).kind == kind


def test_nothing_said_is_other() -> None:
    assert judged(400, ()) == OTHER


def test_codes_are_read_without_marks() -> None:
    assert folded("context_length-exceeded 1") == "contextlengthexceeded1"
