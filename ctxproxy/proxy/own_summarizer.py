"""Runs a summarizer of the user's own: bounded in time, its answer judged as a model's is; whatever it does, no request breaks."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple

from ctxproxy.core.extractive import CountText
from ctxproxy.core.own_summaries import Summarize, SummaryRequest, draft_of, request_of
from ctxproxy.core.records import Summary
from ctxproxy.core.summaries import Draft, Need, verify
from ctxproxy.proxy.summarizer import ANSWER_BYTES, TRIES, completed

log = logging.getLogger("ctxproxy")
MOST_THREADS = 4
"""Plain functions run in threads that nobody can stop: when so many have not come back, no further one is started."""


class Own(NamedTuple):
    """A summarizer of the user's own, and the import path that it is known by."""

    name: str
    function: Summarize


class _Failed(Exception):
    """The function gave no answer; the message says why, without a word of the conversation."""


class OwnSummarizer:
    """Asks functions of the user's; knows how many of their threads are still running."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._threads = 0

    async def make(self, own: Own, need: Need, count_text: CountText, timeout_s: float) -> Summary | None:
        """The summary, verified and completed; None if the function fails twice or takes too long. Never raises but for cancellation."""
        until = time.monotonic() + timeout_s
        for _ in range(TRIES):
            left_s = until - time.monotonic()
            if left_s <= 0:
                break
            try:
                draft = await self._draft(own.function, request_of(need), left_s)
            except _Failed as failed:
                log.warning("the summarizer %s failed: %s", own.name, failed)
                continue
            text, reason = await asyncio.to_thread(_judged, draft, need, count_text)
            if not reason:
                created = max(self._clock(), need.end)
                return Summary(need.tip, text, "llm", own.name, len(need.messages), count_text(text), need.start, need.end, created)
            log.warning("the summarizer %s gave no summary of %d messages: %s", own.name, len(need.messages), reason)
        return None

    async def _draft(self, function: Summarize, request: SummaryRequest, within_s: float) -> Draft:
        """What the function answers; raises _Failed."""
        running = asyncio.ensure_future(self._guarded(function, request))
        try:
            done, _ = await asyncio.wait({running}, timeout=within_s)
        finally:
            running.cancel()
        if not done:
            raise _Failed("it took longer than summarizer.timeout_s")
        outcome = running.result()
        if isinstance(outcome, Draft):
            return outcome
        raise _Failed(_told(outcome))

    async def _guarded(self, function: Summarize, request: SummaryRequest) -> Draft | BaseException:
        """The answer, or what was raised in its place."""
        try:
            answer = function(request) if inspect.iscoroutinefunction(function) else await self._in_thread(function, request)
            return draft_of(await answer if inspect.isawaitable(answer) else answer)
        except BaseException as error:  # noqa: BLE001  also SystemExit and CancelledError: a user's function may raise anything
            return error

    async def _in_thread(self, function: Summarize, request: SummaryRequest) -> object:
        """The answer of a plain function; its thread does not keep the program from ending."""
        if self._threads >= MOST_THREADS:
            raise _Failed(f"{MOST_THREADS} earlier calls have not come back")
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

        def ended(answer: object, error: BaseException | None) -> None:
            self._threads -= 1
            if not outcome.done():
                outcome.set_result((answer, error))

        def work() -> None:
            answer, error = None, None
            try:
                answer = function(request)
            except BaseException as raised:  # noqa: BLE001  as above
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: the program has ended meanwhile
                loop.call_soon_threadsafe(ended, answer, error)

        self._threads += 1
        threading.Thread(target=work, name="summarizer", daemon=True).start()
        answer, error = await outcome
        if error is not None:
            raise error
        return answer


def _judged(draft: Draft, need: Need, count_text: CountText) -> tuple[str, str]:
    """The text to keep, or "" and why it cannot stand for the originals."""
    if len(draft.text) > ANSWER_BYTES:
        return "", "far too long"
    verdict = verify(draft, need, count_text)
    return (completed(draft.text.strip(), need, count_text), "") if verdict.ok else ("", verdict.reason)


def _told(error: BaseException) -> str:
    """Kind and place of an error: its message may hold the conversation."""
    if isinstance(error, _Failed):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}{f' at line {frames[-1].lineno} of {frames[-1].name}' if frames else ''}"
