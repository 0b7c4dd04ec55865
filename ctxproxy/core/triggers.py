"""When a summary is due, in LangChain's language (004-S3): a list of clauses, one of which has to hold, all thresholds of it together."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ctxproxy.core.policy import Count, Fraction, Tokens


class Clause(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Thresholds that a prompt has to reach, all of them; raises ValueError where there is none."""

    tokens: Tokens | None = None
    messages: Count | None = None
    fraction: Fraction | None = None
    """Of the effective budget; that is always known."""

    def __post_init__(self) -> None:
        if self.tokens is None and self.messages is None and self.fraction is None:
            raise ValueError("a clause needs one of tokens, messages, fraction")


def met(clauses: Sequence[Clause], tokens: int, messages: int, limit_tokens: int) -> bool:
    """Whether one of the clauses holds; none does where there are none."""
    return any(_holds(clause, tokens, messages, limit_tokens) for clause in clauses)


def _holds(clause: Clause, tokens: int, messages: int, limit_tokens: int) -> bool:
    return (
        (clause.tokens is None or tokens >= clause.tokens)
        and (clause.messages is None or messages >= clause.messages)
        and (clause.fraction is None or tokens >= max(int(limit_tokens * clause.fraction), 1))
    )
