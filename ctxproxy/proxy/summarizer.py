"""Asks a model for a summary: few calls, each sized first, each answer verified; None where that fails, and nobody has to wait for more.

Texts and credentials stay in memory: the log names numbers and reasons only.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxproxy.core import jsontext
from ctxproxy.core.codings import decode_body
from ctxproxy.core.costs import summary_cost
from ctxproxy.core.extractive import CountText
from ctxproxy.core.messages import text_of, tool_calls
from ctxproxy.core.overflow import classify
from ctxproxy.core.prompts import Prompt
from ctxproxy.core.records import Summary
from ctxproxy.core.reply import reply_from_body
from ctxproxy.core.summaries import MAX_CALLS, Draft, Need, complete, joined, merging, requests, verify
from ctxproxy.core.summary_points import LEAST_WINDOW_TOKENS, POINTS_ROOM_TOKENS, Parted, asking, parted
from ctxproxy.core.urls import join_url
from ctxproxy.errors import CtxproxyError
from ctxproxy.ports import Call, Headers, Response, Upstream

log = logging.getLogger("ctxproxy")

MOST_FAILURES = 3
"""For one summary: after these no further call is made (field cases 094, 101: a refused parameter was retried without end)."""
TRIES = 2
"""For one prompt: the call, and one more if its answer is no summary."""
AT_ONCE = 4
"""Calls for the parts of one long history that run side by side."""
ANSWER_BYTES = 4_194_304
MOST_TOLD_TOKENS = 10_000_000
"""No window is larger: a call whose `usage` tells of more has not cost so much."""
THINKING_ENDS = ("</think>", "</thinking>")
"""What stands before these is a model's reasoning, shown by servers that do not part it from the answer."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes the summary: an upstream, a model there, its window (tokens), and the credential headers of the request or the configuration."""

    upstream: Upstream
    base_url: str
    model: str
    window_tokens: int
    credentials: Headers = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the model's API takes: OpenAI renamed `max_tokens`, some refuse both, some chat templates know no system role."""

    limit_key: str | None = "max_tokens"
    system_role: bool = True


class Summarizer:
    """Writes summaries; holds nothing of a conversation between two of them."""

    def __init__(self, timeout_s: float, clock: Callable[[], float] = time.time, points: Callable[[Parted], None] | None = None) -> None:
        """`points` is told the memory points of each answer; None: they are not asked for."""
        self._timeout_s = timeout_s
        self._clock = clock
        self._points = points

    async def make(self, need: Need, writer: Writer, count_text: CountText, spend: Callable[[float], None]) -> Summary | None:
        """The summary, verified and completed; None if it could not be had within the time and the calls allowed. Never raises.

        `spend` is told what each answered call cost, in prompt tokens that are not cached.
        """
        job = _Job(need, writer, count_text, spend, self._points if writer.window_tokens >= LEAST_WINDOW_TOKENS else None)
        try:
            async with asyncio.timeout(self._timeout_s):
                text = await job.text()
        except TimeoutError:
            job.note("timed out")
            return None
        if text is None:
            return None
        whole = await asyncio.to_thread(completed, text, need, count_text)
        tokens = count_text(whole)
        return Summary(need.tip, whole, "llm", writer.model, len(need.messages), tokens, need.start, need.end, max(self._clock(), need.end))


async def one_answer(prompt: Prompt, writer: Writer, timeout_s: float, count_text: CountText, spend: Callable[[float], None]) -> Draft | None:
    """A model's answer to a prompt of another kind, not judged; None if none came within the time. Never raises."""
    job = _Job(Need("", (), "en", prompt.max_tokens), writer, count_text, spend)
    try:
        async with asyncio.timeout(timeout_s):
            return await job.draft(prompt)
    except TimeoutError:
        job.note("timed out")
    except CtxproxyError as error:
        job.note(error.code or "unreachable")
    return None


def completed(text: str, need: Need, count_text: CountText) -> str:
    """With rules and values appended, unless that makes it no smaller than the originals."""
    whole = complete(text, need, count_text)
    return whole if verify(Draft(whole), need, count_text).ok else text


@dataclass(slots=True)
class _Job:
    """One summary in the making: what it may still cost, and what has been learned of the API."""

    need: Need
    writer: Writer
    count_text: CountText
    spend: Callable[[float], None]
    points: Callable[[Parted], None] | None = None
    calls: int = 0
    failures: int = 0
    dialect: Dialect = Dialect()
    overflowed: int | None = None
    """The window, in tokens, after the API found a call too long."""

    async def text(self) -> str | None:
        done = await self._in_parts(self.writer.window_tokens)
        if done is None and self.overflowed is not None:
            window, self.overflowed = self.overflowed, None
            return await self._in_parts(window)
        return done

    async def _in_parts(self, window: int) -> str | None:
        room = window - (POINTS_ROOM_TOKENS if self.points else 0)
        prompts = await asyncio.to_thread(requests, self.need, room, self.count_text)
        if self.points:
            prompts = [asking(prompt, self.need.language) for prompt in prompts]
        if not prompts or len(prompts) > MAX_CALLS - self.calls:
            self.note("no window for it")
            return None
        first = await self._answered(prompts[0])  # alone, so that the others know the dialect
        parts = [first] if first is not None else []
        for at in range(1, len(prompts), AT_ONCE):
            if len(parts) < at:
                return None
            batch = await asyncio.gather(*(self._answered(one) for one in prompts[at : at + AT_ONCE]))
            parts += [part for part in batch if part is not None]
        if len(parts) < len(prompts):
            return None
        return parts[0] if len(parts) == 1 else await self._merged(parts, window)

    async def _merged(self, parts: Sequence[str], window: int) -> str:
        prompt = await asyncio.to_thread(merging, self.need, parts, window, self.count_text)
        merged = await self._answered(prompt) if prompt and self.calls < MAX_CALLS else None
        return await asyncio.to_thread(joined, self.need, parts, self.count_text) if merged is None else merged

    async def _answered(self, prompt: Prompt) -> str | None:
        tries = 0
        while tries < TRIES and self.failures < MOST_FAILURES and self.calls < MAX_CALLS and self.overflowed is None:
            self.calls += 1
            try:
                status, body = await self._sent(prompt)
            except CtxproxyError as error:
                self._failed(error.code or "unreachable")
                return None
            if not 200 <= status < 300:
                if not self._adapts(status, body):
                    return None
                continue
            tries += 1
            draft, block = _draft(body)
            self.spend(await asyncio.to_thread(self._cost, prompt, body, draft))
            verdict = await asyncio.to_thread(verify, draft, self.need, self.count_text)
            if verdict.ok:
                if self.points:
                    self.points(block)
                return draft.text.strip()
            self._failed(verdict.reason)
            if draft.finish_reason == "length":
                prompt = prompt._replace(max_tokens=prompt.max_tokens * 2)  # a reasoning model thought it away
        return None

    async def draft(self, prompt: Prompt) -> Draft | None:
        """The answer to one call, made again only where a refusal taught how."""
        while self.failures < MOST_FAILURES:
            self.calls += 1
            status, body = await self._sent(prompt)
            if 200 <= status < 300:
                draft, _ = _draft(body)
                self.spend(await asyncio.to_thread(self._cost, prompt, body, draft))
                return draft
            if not self._adapts(status, body):
                break
        return None

    async def _sent(self, prompt: Prompt) -> tuple[int, bytes]:
        timeouts = {"first_byte_timeout_s": 600.0, "idle_timeout_s": 600.0}  # the time that counts is the whole summary's
        url = join_url(self.writer.base_url, "/v1/chat/completions")
        response = await self.writer.upstream.send(Call("POST", url, self._headers(), self._body(prompt), **timeouts))
        try:
            return response.status, await _read(response)
        finally:
            await response.close()

    def _cost(self, prompt: Prompt, body: bytes, draft: Draft) -> float:
        """What a call cost, by the upstream's own figures where it gives them."""
        reply = reply_from_body(body)
        if reply and reply.usage:
            read, written = (max(0, min(told, MOST_TOLD_TOKENS)) for told in (reply.usage.prompt_tokens, reply.usage.completion_tokens))
            return summary_cost(read, written)
        return summary_cost(self.count_text(prompt.system) + self.count_text(prompt.user), self.count_text(draft.text))

    def _headers(self) -> Headers:
        own = (("Content-Type", "application/json"), ("Accept", "application/json"), ("Accept-Encoding", "identity"), ("X-Purpose", "summary"))
        return (*own, *self.writer.credentials)

    def _body(self, prompt: Prompt) -> bytes:
        """Model, messages and length only: nothing of the request's own settings fits a summary (field cases 086, 095)."""
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        if not self.dialect.system_role:
            messages = [{"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}]
        body: dict[str, Any] = {"model": self.writer.model, "messages": messages}
        if self.dialect.limit_key:
            body[self.dialect.limit_key] = prompt.max_tokens
        return jsontext.encode(body)

    def _adapts(self, status: int, body: bytes) -> bool:
        """Whether the call may be made again, after what a refusal taught of the API."""
        self._failed(f"status {status}")
        verdict = classify(status, body)
        if verdict.kind == "overflow":
            told, believed = verdict.limit_tokens or 0, self.writer.window_tokens
            self.overflowed = told if 0 < told < believed else believed // 2
            return False
        dialect = _taught(self.dialect, body.decode("utf-8", "replace").lower()) if status in (400, 422) else self.dialect
        changed, self.dialect = dialect != self.dialect, dialect
        return changed

    def _failed(self, reason: str) -> None:
        self.failures += 1
        self.note(reason)

    def note(self, reason: str) -> None:
        log.info("no summary of %d messages with call %d: %s", len(self.need.messages), self.calls, reason)


def _taught(dialect: Dialect, said: str) -> Dialect:
    """The dialect that the words of a refusal ask for."""
    if "system" in said and "role" in said:
        return replace(dialect, system_role=False)
    if dialect.limit_key == "max_tokens" and "max_completion_tokens" in said:
        return replace(dialect, limit_key="max_completion_tokens")
    return replace(dialect, limit_key=None)


async def _read(response: Response) -> bytes:
    """The decoded body; raises BodyTooLarge for an endless one, UnsupportedEncoding for one that cannot be read."""
    gathered = bytearray()
    async for chunk in response.chunks():
        gathered += chunk
        if len(gathered) > ANSWER_BYTES:
            break
    coding = ", ".join(value for name, value in response.headers if name.lower() == "content-encoding")
    return decode_body(bytes(gathered), coding, ANSWER_BYTES)


def _draft(body: bytes) -> tuple[Draft, Parted]:
    """The answer, and the memory points that stood behind it."""
    reply = reply_from_body(body)
    if reply is None or not reply.choices:
        return Draft("", "no answer"), Parted("")
    choice = reply.choices[0]
    text = text_of(choice.message)
    for mark in THINKING_ENDS:
        text = text.rpartition(mark)[2]
    block = parted(text)
    return Draft(block.text, choice.finish_reason, bool(tool_calls(choice.message))), block
