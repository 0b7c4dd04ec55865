"""From what an error says to what it means: vetoes, complaints of the output alone, overflows with their figures, the status as a prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ctxproxy.core.overflow_envelope import Statement, statuses_in
from ctxproxy.core.overflow_numbers import Figures, clamp_helps, figures_of, is_window
from ctxproxy.core.overflow_signs import CODES, COMPARED, OVERFLOWS
from ctxproxy.core.overflow_vetoes import CAPS, FIELD_CODES, SHRINKABLE_FIELD, STATUS_CODES, TPM, VETOES
from ctxproxy.core.overflow_wording import NAMES_WINDOW, Kind, Sign, first


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an error means. Figures are in tokens, None where nothing trustworthy is said."""

    kind: Kind
    sign: str = ""
    """The row of a table that decided; "" if none did."""
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

STRENGTH_NEEDED: Final = {401: 2, 403: 2, 407: 2, 402: 9, 408: 3, 429: 2, 503: 3, 504: 3, 524: 3, 529: 3}
"""What a wording must have under a status that speaks against an overflow; elsewhere 1."""
SURE = 3


def judged(status: int, found: Sequence[Statement], *, is_empty: bool = False) -> Verdict:
    """The verdict over all that an error says: the surest overflow, else the first veto, else what the status tells."""
    statuses = frozenset({status}) | statuses_in(found) | _statuses_in_words(found)
    beside = tuple(pair for statement in found if not statement.said.text for pair in statement.named)
    verdicts = [verdict for statement in found if (verdict := _read(statement, beside, status)) is not None]
    needed = max(STRENGTH_NEEDED.get(one, 1) for one in statuses)
    sure = [verdict for verdict in verdicts if verdict.kind == "overflow" and verdict.strength >= needed]
    if sure:
        return max(sure, key=lambda verdict: verdict.strength)
    vetoed = next((verdict for verdict in verdicts if verdict.kind != "overflow"), None)
    return vetoed or _by_status(statuses, is_empty=is_empty or _says_no_body(found))


def _by_status(statuses: frozenset[int], *, is_empty: bool) -> Verdict:
    """What a status alone tells. A bare 413 may mean tokens or bytes: a smaller request helps in both readings."""
    if 429 in statuses:
        return Verdict("rate_limit", "status-429")
    if 413 in statuses and is_empty:
        return Verdict("overflow", "status-413-empty", shrink_helps=True)
    return Verdict("field_too_long", "status-413", shrink_helps=True) if 413 in statuses else OTHER


def _says_no_body(found: Sequence[Statement]) -> bool:
    """SDKs write an answer without a body as `413 status code (no body)`."""
    return any("(no body)" in statement.said.text for statement in found)


def _statuses_in_words(found: Sequence[Statement]) -> frozenset[int]:
    """The statuses that codes in words stand for, and those that a message begins with."""
    codes = [folded(code) for statement in found for code in statement.codes]
    named = {status for pattern, status in STATUS_CODES for code in codes if pattern.search(code)}
    leading = {said.figures[0] for said in (statement.said for statement in found) if said.marks and said.marks[0] <= 12}
    return frozenset(named | (leading & (STRENGTH_NEEDED.keys() | {413})))


def _read(statement: Statement, beside: tuple[tuple[str, int], ...], status: int) -> Verdict | None:
    """What one statement means; None if it says nothing of the kind. `beside` are the named figures of objects that say nothing themselves."""
    text = statement.said.text
    code = next((sign for sign in CODES for code in statement.codes if sign.holds_in(folded(code))), None)
    veto = first(VETOES, text)
    if code is not None and veto is not None and veto.name == "bytes":
        veto = None  # "request body too large" with a code that speaks of the window is a complaint of tokens
    if veto is not None and veto.strength >= 2:
        return _vetoed(veto, statement)
    figures = figures_of(statement.said, statement.named or beside, (*statement.codes, str(status)))
    cap = first(CAPS, text)
    if cap is not None and not _is_about_the_window(figures, text):
        return Verdict("output_cap", cap.name, clamp_helps=cap.name != "cap-higher-needed", completion_tokens=figures.completion)
    sign = _overflow_sign(text, code, figures)
    verdict = None if sign is None else _overflow(sign, figures)
    if verdict is not None and (veto is None or (verdict.strength >= SURE and verdict.requested_tokens is not None)):
        return verdict
    weaker = veto or next((sign for sign in FIELD_CODES for code in statement.codes if sign.holds_in(folded(code))), None)
    return None if weaker is None else _vetoed(weaker, statement)


def _is_about_the_window(figures: Figures, text: str) -> bool:
    """`'max_tokens' is too large … context length is N … request has P input tokens` is a sum over the window, no complaint of the output."""
    return figures.limit is not None and figures.prompt is not None and NAMES_WINDOW.search(text) is not None


def _overflow_sign(text: str, code: Sign | None, figures: Figures) -> Sign | None:
    """The row that makes a statement an overflow: the wording's, or a code's if that is surer, or figures of which one is over the other."""
    worded = first(OVERFLOWS, text)
    if worded is not None and worded.strength >= 2:
        return worded
    return code or worded or (COMPARED if _is_over(figures) and COMPARED.holds_in(text) else None)


def _is_over(figures: Figures) -> bool:
    return figures.limit is not None and figures.requested is not None and figures.requested > figures.limit


def _overflow(sign: Sign, figures: Figures) -> Verdict:
    """An overflow with its figures; an output that fills the window by itself is a complaint of the output."""
    limit = figures.limit if is_window(figures.limit) else None
    states_both = limit is not None and sign is not COMPARED and (figures.requested is not None or sign.strength >= 2)
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
        strength=SURE if states_both else sign.strength,
    )
    if limit is not None and figures.completion is not None and figures.completion >= limit:
        return replace(verdict, kind="output_cap", shrink_helps=False, clamp_helps=True)
    return verdict


def _vetoed(veto: Sign, statement: Statement) -> Verdict:
    text = statement.said.text
    per_minute = TPM.search(text) if veto.kind == "rate_limit" else None
    if per_minute is not None:
        return _per_minute(
            veto, statement, per_minute.start() + per_minute.group().index("#"), per_minute.start("used"), per_minute.start("requested")
        )
    if veto.name == "billing-afford":
        prompt = figures_of(statement.said).prompt
        return Verdict(veto.kind, veto.name, shrink_helps=True, clamp_helps=False, prompt_tokens=prompt, requested_tokens=prompt)
    is_ours = veto.name in ("field-text", "code-field") and SHRINKABLE_FIELD.search(text) is not None
    return Verdict(veto.kind, veto.name, shrink_helps=veto.shrink_helps or is_ours, clamp_helps=False)


def _per_minute(veto: Sign, statement: Statement, limit_at: int, used_at: int, requested_at: int) -> Verdict:
    """A request that is larger than a whole minute's limit can only be made smaller; another can wait."""
    requested = statement.said.figure_at(requested_at)
    if used_at < 0 and requested > statement.said.figure_at(limit_at):
        return Verdict("request_larger_than_tpm", veto.name, shrink_helps=True, clamp_helps=False, requested_tokens=requested)
    return Verdict("rate_limit", veto.name, clamp_helps=False)


def folded(code: str) -> str:
    """A code without blanks and marks."""
    return "".join(character for character in code if character.isalnum())
