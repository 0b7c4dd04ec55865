"""Does an answer say that the conversation does not fit the model's window, and what figures does it give? A pure reading of bytes.

The order of judgement: error positions only (`overflow_envelope`), vetoes, complaints of the output alone, wordings and codes of an overflow
(`overflow_signs`), figures by role (`overflow_numbers`). The HTTP status is a prior: under 429, 401, 402 or a gateway's 5xx more is asked of the
wording. The content type is never asked: gateways label JSON as text, and text as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ctxproxy.core.overflow_envelope import Statement, document, statements, statuses_in
from ctxproxy.core.overflow_numbers import Figures, clamp_helps, figures_of, is_window
from ctxproxy.core.overflow_signs import CAPS, CODES, FIELD_CODES, OVERFLOWS, SHRINKABLE_FIELD, STATUS_CODES, TPM, VETOES, Kind, Sign, first


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an error means. Figures are in tokens, None where nothing trustworthy is said."""

    kind: Kind
    sign: str = ""
    """The row of the table that decided; "" if only the status did."""
    shrink_helps: bool = False
    """The same request with a smaller prompt could succeed."""
    clamp_helps: bool | None = None
    """Lowering max_tokens alone could do; None if it cannot be told."""
    limit_tokens: int | None = None
    """The context window; only ever one that may be learned."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    requested_tokens: int | None = None
    over_by_tokens: int | None = None
    strength: int = 0
    """How sure the wording is: 1 usual, 2 names the window, 3 states figures."""


OTHER: Final = Verdict("other")
WINDOW_FULL_REASONS: Final = frozenset(
    "model_context_window_exceeded model_length context_length context_length_exceeded context_window_exceeded max_context_length".split()
)
"""finish_reason or stop_reason values that say so: Anthropic and Z.ai, Mistral, and the codes some gateways put there."""

STRENGTH_NEEDED: Final = {401: 2, 403: 2, 407: 2, 402: 9, 408: 3, 429: 2, 502: 3, 503: 3, 504: 3, 524: 3, 529: 3}
"""What a wording must have under a status that speaks against an overflow; elsewhere 1."""


def classify(status: int, body: bytes, content_type: str = "") -> Verdict:
    """What the body of an error, or of an answer with status 200 that may hold one, means; never raises."""
    del content_type  # never a sign: see the module's first lines
    value = document(body)
    if status < 400:
        return _answered(value)
    found = statements(value)
    return _judged(status, found, is_empty=not body.strip())


def classify_event(data: bytes) -> Verdict | None:
    """What the data of one stream event means if it is an error or says that the window is full; None for any other event."""
    value = document(data)
    if _is_error(value):
        return _judged(200, statements(_error_of(value)), is_empty=False)
    return _finished(value)


def classify_finish(finish_reason: str | None, *, completion_tokens: int | None, has_output: bool, text: str = "") -> Verdict | None:
    """The overflow that a finished answer tells of without an error; None if it tells of none.

    `text` is the answer's own text: it is read only where the server itself says that no model wrote it, by a count of 0 or the reason "error".
    """
    reason = (finish_reason or "").lower()
    if reason in WINDOW_FULL_REASONS:
        return Verdict("overflow", "finish-window-full", shrink_helps=True, strength=2)
    if reason == "length" and completion_tokens == 0 and not has_output:
        return Verdict("overflow", "finish-length-empty", shrink_helps=True, strength=1)
    if text and (completion_tokens == 0 or reason == "error"):
        verdict = _judged(200, statements(text), is_empty=False)
        return replace(verdict, sign=f"text:{verdict.sign}") if verdict.kind == "overflow" and verdict.strength >= 2 else None
    return None


def _answered(value: object) -> Verdict:
    """A body with a status below 400: an error in it, a finish reason, or an answer."""
    if isinstance(value, list):
        verdicts = [verdict for item in value if (verdict := _of_event(item)) is not None]
        return next((verdict for verdict in verdicts if verdict.kind == "overflow"), verdicts[0] if verdicts else OTHER)
    if isinstance(value, str):
        verdict = _judged(200, statements(value), is_empty=False)
        return verdict if verdict.strength >= 3 else OTHER
    return _of_event(value) or OTHER


def _of_event(value: object) -> Verdict | None:
    return _judged(200, statements(_error_of(value)), is_empty=False) if _is_error(value) else _finished(value)


def _is_error(value: object) -> bool:
    return _error_of(value) is not None


def _error_of(value: object) -> object | None:
    """The part of a JSON value that is an error; None for answers and for pieces of one."""
    if not isinstance(value, dict):
        return None
    if value.get("error") or value.get("errors"):
        return value
    if _names_an_error(value):
        return value
    response = value.get("response")
    if isinstance(response, dict) and response.get("error"):
        return response
    choice = _first_choice(value)
    return choice if choice.get("error") else None


def _names_an_error(value: dict[str, object]) -> bool:
    """Flat error objects: `{object: error}`, `{detail}`, `{code, message}`, MiniMax's `base_resp`, AWS's `__type`."""
    if value.get("object") == "error" or value.get("type") == "error" or "__type" in value:
        return True
    if value.keys() & {"choices", "content", "candidates", "output", "data"} and not value.get("message"):
        return _resp_failed(value)
    if value.keys() & {"detail", "error_msg", "error_message", "errorMessage"}:
        return True
    has_code = bool(value.keys() & {"code", "error_code", "status", "status_code", "errorCode"})
    return (has_code and bool(value.keys() & {"message", "msg"}) and not value.get("choices")) or _resp_failed(value)


def _resp_failed(value: dict[str, object]) -> bool:
    resp = value.get("base_resp")
    return isinstance(resp, dict) and bool(resp.get("status_code"))


def _first_choice(value: dict[str, object]) -> dict[str, object]:
    choices = value.get("choices")
    first_one = choices[0] if isinstance(choices, list) and choices else None
    return first_one if isinstance(first_one, dict) else {}


def _finished(value: object) -> Verdict | None:
    """What the finish reason of an answer, or of a piece of one, tells."""
    if not isinstance(value, dict):
        return None
    choice = _first_choice(value)
    incomplete = value.get("incomplete_details")
    reason = choice.get("finish_reason") or value.get("stop_reason") or (incomplete.get("reason") if isinstance(incomplete, dict) else None)
    delta = value.get("delta")
    if reason is None and isinstance(delta, dict):
        reason = delta.get("stop_reason")
    usage = value.get("usage")
    made = usage.get("completion_tokens") if isinstance(usage, dict) else None
    text, has_calls = _output(choice)
    return classify_finish(
        reason if isinstance(reason, str) else None,
        completion_tokens=made if isinstance(made, int) else None,
        has_output=bool(text.strip()) or has_calls,
        text=text,
    )


def _output(choice: dict[str, object]) -> tuple[str, bool]:
    """The text of a choice, and whether it calls tools or reasons."""
    message = choice.get("message") or choice.get("delta")
    if not isinstance(message, dict):
        return "", False
    content = message.get("content")
    others = bool(message.get("tool_calls") or message.get("reasoning_content") or message.get("reasoning") or (content and not isinstance(content, str)))
    return content if isinstance(content, str) else "", others


def _judged(status: int, found: tuple[Statement, ...], *, is_empty: bool) -> Verdict:
    """The verdict over all statements of an error: the surest overflow, else the first veto, else what the status says."""
    statuses = frozenset({status}) | statuses_in(found) | _statuses_in_words(found)
    verdicts = [verdict for statement in found if (verdict := _read(statement)) is not None]
    needed = max(STRENGTH_NEEDED.get(one, 1) for one in statuses)
    overflows = [verdict for verdict in verdicts if verdict.kind == "overflow"]
    sure = [verdict for verdict in overflows if verdict.strength >= needed]
    if sure:
        return max(sure, key=lambda verdict: verdict.strength)
    vetoed = [verdict for verdict in verdicts if verdict.kind != "overflow"]
    if vetoed:
        return vetoed[0]
    return _by_status(statuses, is_empty=is_empty or _says_no_body(found))


def _by_status(statuses: frozenset[int], *, is_empty: bool) -> Verdict:
    """What a status alone tells. A bare 413 may mean tokens or bytes: a smaller request helps in both readings."""
    if 429 in statuses:
        return Verdict("rate_limit", "status-429")
    if 413 in statuses:
        return Verdict("overflow", "status-413-empty", shrink_helps=True) if is_empty else Verdict("field_too_long", "status-413", shrink_helps=True)
    return OTHER


def _says_no_body(found: tuple[Statement, ...]) -> bool:
    """SDKs write an answer without a body as `413 status code (no body)`."""
    return any("(no body)" in statement.said.text for statement in found)


def _statuses_in_words(found: tuple[Statement, ...]) -> frozenset[int]:
    codes = [_folded(code) for statement in found for code in statement.codes]
    words = {status for pattern, status in STATUS_CODES for code in codes if pattern.search(code)}
    leading = {said.figures[0] for said in (statement.said for statement in found) if said.marks and said.marks[0] <= 12 and 400 <= said.figures[0] <= 599}
    return frozenset(words | {figure for figure in leading if figure in STRENGTH_NEEDED or figure == 413})


def _read(statement: Statement) -> Verdict | None:
    """What one statement means by itself; None if it says nothing of the kind."""
    text = statement.said.text
    veto = first(VETOES, text)
    if veto is not None and veto.strength >= 2:
        return _vetoed(veto, statement)
    figures = figures_of(statement.said, statement.named, statement.codes)
    cap = first(CAPS, text)
    if cap is not None and not _states_window(figures):
        return Verdict("output_cap", cap.name, clamp_helps=cap.name != "cap-higher-needed", completion_tokens=figures.completion)
    sign = _overflow_sign(statement)
    if sign is not None:
        verdict = _overflow(sign, figures)
        if veto is None or verdict.strength >= 3:
            return verdict
    if veto is not None:
        return _vetoed(veto, statement)
    field = next((sign for sign in FIELD_CODES for code in statement.codes if sign.holds_in(_folded(code))), None)
    return None if field is None else _vetoed(field, statement)


def _overflow_sign(statement: Statement) -> Sign | None:
    """The row that makes a statement an overflow: the wording's, or a code's if that is surer."""
    worded = first(OVERFLOWS, statement.said.text)
    if worded is not None and worded.strength >= 2:
        return worded
    coded = next((sign for sign in CODES for code in statement.codes if sign.holds_in(_folded(code))), None)
    return coded or worded


def _states_window(figures: Figures) -> bool:
    return figures.limit is not None and figures.prompt is not None


def _overflow(sign: Sign, figures: Figures) -> Verdict:
    """An overflow with its figures; an output that fills the window by itself is a complaint of the output."""
    limit = figures.limit if is_window(figures.limit) else None
    strength = sign.strength + (limit is not None and (figures.requested is not None or sign.strength >= 2))
    verdict = Verdict(
        "overflow",
        sign.name,
        shrink_helps=True,
        clamp_helps=clamp_helps(replace(figures, limit=limit)),
        limit_tokens=limit,
        prompt_tokens=figures.prompt,
        completion_tokens=figures.completion,
        requested_tokens=figures.requested,
        over_by_tokens=figures.over,
        strength=strength + (sign.strength == 1 and limit is not None and figures.prompt is not None),
    )
    if limit is not None and figures.completion is not None and figures.completion >= limit:
        return replace(verdict, kind="output_cap", shrink_helps=False, clamp_helps=True)
    return verdict


def _vetoed(veto: Sign, statement: Statement) -> Verdict:
    text = statement.said.text
    if veto.kind == "rate_limit" and (found := TPM.search(text)) is not None:
        limit, requested = statement.said.figure_at(found.start() + found.group().index("#")), statement.said.figure_at(found.start("requested"))
        if found.group("used") is None and requested > limit:
            return Verdict("request_larger_than_tpm", veto.name, shrink_helps=True, clamp_helps=False, requested_tokens=requested)
        return Verdict("rate_limit", veto.name, clamp_helps=False)
    if veto.name == "billing-afford":
        prompt = figures_of(statement.said).prompt
        return Verdict(veto.kind, veto.name, shrink_helps=True, clamp_helps=False, prompt_tokens=prompt, requested_tokens=prompt)
    helps = veto.shrink_helps or (veto.name in ("field-text", "code-field") and SHRINKABLE_FIELD.search(text) is not None)
    return Verdict(veto.kind, veto.name, shrink_helps=helps, clamp_helps=False)


def _folded(code: str) -> str:
    return "".join(character for character in code if character.isalnum())
