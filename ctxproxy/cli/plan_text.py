"""A plan or a view as text for people: the figures, what is sent and why, what is not and what stands in for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ctxproxy.cli import output

SHOWN_CHARS = 44
"""Of a message's text."""


def plan_text(report: Mapping[str, Any]) -> str:
    """The report of `POST plan` or `GET sessions/{id}/view`."""
    return "\n".join(
        [
            *_figures(report),
            "",
            "What is sent:",
            output.table(_sent(report["messages"]), whole=("why",)),
            "",
            *(["What is left out:", output.table(gone, whole=("why",))] if (gone := list(_gone(report["history"]))) else ["Nothing is left out."]),
        ]
    )


def _figures(report: Mapping[str, Any]) -> Iterator[str]:
    budget = report["budget"]
    yield f"{report['tokens_sent']:,} of {report['tokens_in']:,} prompt tokens are sent"
    yield f"budget {budget['prompt']:,}, {budget['history']:,} of it for the history"
    for action in report["actions"]:
        yield f"{action['stage']}: {action['edits']} edits, {action['saved_tokens']:,} tokens saved"
    if not report["actions"]:
        yield "an earlier decision is sent again" if report["changed"] else "nothing is changed"
    for name in report["failed"]:
        yield f"{name}: failed and was left out"
    if not report["fits"]:
        yield "it does not fit the budget"


def _sent(messages: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, object]]:
    for at, entry in enumerate(messages):
        message = entry["message"]
        yield {"#": at, "role": message.get("role"), "tokens": entry["tokens"], "text": _beginning(message), "why": entry["why"]}


def _gone(history: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, object]]:
    for row in history:
        if row["state"] in ("summarized", "dropped"):
            yield {
                "tip": row["tip"][:16],
                "role": row["role"],
                "state": row["state"],
                "tokens": row["tokens_before"],
                "in #": row["stands_in"],
                "why": row["why"],
            }


def _beginning(message: Mapping[str, Any]) -> str:
    """The first words of a message, or the names of what it calls."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    text = " ".join(str(part.get("text") or part.get("type") or "") for part in parts if isinstance(part, dict))
    calls = [str((call.get("function") or {}).get("name", "")) for call in message.get("tool_calls") or [] if isinstance(call, dict)]
    words = " ".join((text + "".join(f" → {name}()" for name in calls)).split())
    return words if len(words) <= SHOWN_CHARS else words[: SHOWN_CHARS - 1] + "…"
