"""Does an answer say that the conversation does not fit the model's window, and what figures does it give? A pure reading of bytes.

The order of judgement: error positions only (`overflow_envelope`), vetoes (`overflow_vetoes`), wordings and codes of an overflow (`overflow_signs`),
figures by role (`overflow_numbers`). The HTTP status is a prior: under 429, 401, 402 or a gateway's 5xx more is asked of the wording. The content
type is never asked: gateways label JSON as text, and text as JSON. Nothing here raises, whatever the bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ctxproxy.core.overflow_envelope import document, statements
from ctxproxy.core.overflow_judgement import OTHER, SURE, Verdict, judged

__all__ = ["OTHER", "Verdict", "classify", "classify_event", "classify_finish"]

WINDOW_FULL_REASONS: Final = frozenset(
    {
        "model_context_window_exceeded",
        "model_length",
        "context_length",
        "context_length_exceeded",
        "context_window_exceeded",
        "max_context_length",
    }
)
"""finish_reason or stop_reason values that say so: Anthropic and Z.ai, Mistral, and the codes some gateways put there."""
MAX_ERROR_TEXT_CHARS: Final = 1_000
"""A longer text is an answer, not an error in its place."""
NO_ANSWER: Final = frozenset({"choices", "content", "candidates", "output", "data"})
"""Keys of answers and listings: such an object is no error for having a code."""


def classify(status: int, body: bytes, content_type: str = "") -> Verdict:
    """What the whole body of an answer means: an error with its status, or one with status 200 that holds an error or a full window."""
    del content_type  # never a sign: see the module's first lines
    value = document(body)
    if status >= 400:
        return judged(status, statements(value), is_empty=not body.strip())
    if isinstance(value, str):
        said = judged(status, statements(value))
        return said if said.strength >= SURE else OTHER
    verdicts = [verdict for one in (value if isinstance(value, list) else [value]) if (verdict := _of_object(one)) is not None]
    return next((verdict for verdict in verdicts if verdict.kind == "overflow"), verdicts[0] if verdicts else OTHER)


def classify_event(data: bytes, name: str = "") -> Verdict | None:
    """What the data of one stream event means if it is an error or says that the window is full; None for any other event.

    `name` is the event's own field: under "error" data that is no JSON is an error's text.
    """
    value = document(data)
    if name == "error" and not (isinstance(value, dict) and _error_in(value) is not None):
        return judged(200, statements(value))
    return _of_object(value)


def classify_finish(finish_reason: str | None, *, completion_tokens: int | None, has_output: bool, text: str = "") -> Verdict | None:
    """The overflow that a finish reason tells of; None if it tells of none.

    `text` is the answer's own text: it is read only where the server itself says that no model wrote it, by a count of 0 or the reason "error", and
    only as long as an error is.
    """
    reason = (finish_reason or "").lower()
    if reason in WINDOW_FULL_REASONS:
        return Verdict("overflow", "finish-window-full", shrink_helps=True, strength=2)
    if reason == "length" and completion_tokens == 0 and not has_output:
        return Verdict("overflow", "finish-length-empty", shrink_helps=True, strength=1)
    if 0 < len(text) <= MAX_ERROR_TEXT_CHARS and (completion_tokens == 0 or reason == "error"):
        verdict = judged(200, statements(text))
        return replace(verdict, sign=f"text:{verdict.sign}") if verdict.kind == "overflow" and verdict.strength >= SURE else None
    return None


def _of_object(value: object) -> Verdict | None:
    """An error object or a (piece of an) answer; None where it says nothing."""
    if not isinstance(value, dict):
        return None
    error = _error_in(value)
    return _finished(value) if error is None else judged(200, statements(error))


def _error_in(value: dict[str, object]) -> object | None:
    """The part of a JSON object that is an error; None for answers and for pieces of one."""
    if value.get("error") or value.get("errors") or _names_an_error(value):
        return value
    response = value.get("response") or value.get("Response")
    if isinstance(response, dict) and (response.get("error") or response.get("Error")):
        return response
    choice = _first_choice(value)
    return choice if choice.get("error") else None


def _names_an_error(value: dict[str, object]) -> bool:
    """Flat error objects: `{object: error}`, AWS's `__type`, MiniMax's `base_resp`, FastAPI's `detail`, `{code, message}`."""
    resp = value.get("base_resp")
    if value.get("object") == "error" or value.get("type") == "error" or "__type" in value or (isinstance(resp, dict) and resp.get("status_code")):
        return True
    if any(value.get(key) for key in NO_ANSWER):
        return False
    if value.keys() & {"detail", "error_msg", "error_message", "errorMessage", "errmsg"}:
        return True
    return bool(value.keys() & {"code", "error_code", "status", "status_code", "errorCode"} and value.keys() & {"message", "msg"})


def _finished(value: dict[str, object]) -> Verdict | None:
    """What the finish reason of an answer, or of a piece of one, tells."""
    choice = _first_choice(value)
    delta, incomplete, usage = (_object(value.get(key)) for key in ("delta", "incomplete_details", "usage"))
    reason = choice.get("finish_reason") or value.get("stop_reason") or delta.get("stop_reason") or incomplete.get("reason")
    made = usage.get("completion_tokens")
    message = _object(choice.get("message") or choice.get("delta"))
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    others = not text and any(message.get(key) for key in ("content", "tool_calls", "reasoning_content", "reasoning", "function_call"))
    return classify_finish(
        reason if isinstance(reason, str) else None,
        completion_tokens=made if isinstance(made, int) else None,
        has_output=bool(text.strip() or others),
        text=text,
    )


def _first_choice(value: dict[str, object]) -> dict[str, object]:
    choices = value.get("choices")
    return _object(choices[0]) if isinstance(choices, list) and choices else {}


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
