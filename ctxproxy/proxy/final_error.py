"""What the client gets when no smaller request helped: the upstream's own error, or one in OpenAI's words that names the parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Literal

from ctxproxy.core import jsontext
from ctxproxy.ports import Headers, Response
from ctxproxy.proxy.attempt import Refused, Whole
from ctxproxy.proxy.rescue import Got
from ctxproxy.proxy.streams import Stream


def final_answer(got: Got, final_error: Literal["upstream", "openai"]) -> Stream | Whole | Refused:
    """The result to relay."""
    if not isinstance(got.result, Refused) or final_error == "upstream" or got.result.verdict.kind != "overflow":
        return got.result
    return replace(got.result, body=jsontext.encode({"error": _error(got, got.result)}), response=_Reworded(got.result.response))


def _error(got: Got, refused: Refused) -> dict[str, object]:
    plan, budget = got.plan, got.plan.budget
    newest = sum(entry.tokens for entry in plan.transcript.entries[slice(*plan.transcript.newest)])
    window = refused.verdict.limit_tokens or budget.window
    tried = ", ".join(name for name, _ in plan.actions) or "nothing smaller was legal"
    over = max(plan.tokens_sent + budget.reserve - window, 1)
    message = (
        f"This model's maximum context length is {window} tokens. However, the smallest legal form of this request has about "
        f"{plan.tokens_sent} tokens: {budget.fixed} in system messages, tools and response format, {newest} in the newest messages, "
        f"{plan.transcript.tokens - newest} in the rest; {budget.reserve} are kept for the reply. ctxproxy tried: {tried} "
        f"({got.attempts} calls). It would fit with about {over} tokens less in the newest message, the system message or the tools, "
        f"or with a smaller max_tokens."
    )
    return {"message": message, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}


class _Reworded:
    """The upstream's response with a body of ours: status 400, its headers but for those that tell of its body."""

    def __init__(self, original: Response) -> None:
        self._original = original
        self.status = 400
        self.reason = "Bad Request"
        about_body = ("content-type", "content-encoding", "content-length")
        self.headers: Headers = [*((k, v) for k, v in original.headers if k.lower() not in about_body), ("Content-Type", "application/json")]

    def chunks(self) -> AsyncIterator[bytes]:
        return self._original.chunks()

    async def close(self) -> None:
        await self._original.close()
