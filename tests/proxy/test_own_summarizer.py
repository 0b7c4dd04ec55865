"""Functions of the user's that summarize: their threads are counted, their time is shared by both tries."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from ctxproxy.core.messages import make
from ctxproxy.core.own_summaries import SummaryRequest
from ctxproxy.core.records import Summary
from ctxproxy.core.summaries import Need
from ctxproxy.proxy.own_summarizer import MOST_THREADS, Own, OwnSummarizer

TOLD = "The user wants a report about the rivers of the north."
NEED = Need(
    "tip-1",
    tuple(make({"role": "user", "content": f"Please write chapter {n} of the report about the rivers. " * 20}) for n in range(4)),
    "en",
    300,
    None,
    10.0,
    20.0,
    ("keep me",),
)


def count_text(text: str) -> int:
    return len(text.split())


async def made(summarizer: OwnSummarizer, function: Any, timeout_s: float = 30.0) -> Summary | None:
    return await summarizer.make(Own("mine:f", function), NEED, count_text, timeout_s)


async def test_count_range_and_time_are_filled_in(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[SummaryRequest] = []

    def summarize(request: SummaryRequest) -> Mapping[str, object]:
        asked.append(request)
        return {"content": f"  {TOLD}  ", "count": 99, "timestamp": 0}

    summary = await made(OwnSummarizer(clock=lambda: 77.0), summarize)
    assert summary is not None
    assert summary.text.startswith(TOLD)
    assert (summary.tip, summary.kind, summary.model, summary.messages) == ("tip-1", "llm", "mine:f", 4)
    assert (summary.start, summary.end, summary.created, summary.tokens) == (10.0, 20.0, 77.0, count_text(summary.text))
    assert (len(asked), asked[0].pins, caplog.text) == (1, ("keep me",), "")


async def test_a_failed_first_try_is_followed_by_another() -> None:
    answers = iter([None, TOLD])
    summary = await made(OwnSummarizer(), lambda request: next(answers))
    assert summary is not None
    assert await made(OwnSummarizer(), lambda request: next(answers)) is None


async def test_no_more_threads_are_started_than_may_hang_and_they_count_until_they_come_back(caplog: pytest.LogCaptureFixture) -> None:
    release, ended = threading.Event(), threading.Semaphore(0)
    own = OwnSummarizer()

    def hangs(request: SummaryRequest) -> str:
        release.wait(30)
        ended.release()
        return TOLD

    for _ in range(MOST_THREADS):
        assert await made(own, hangs, 0.01) is None
    before = threading.active_count()
    assert await made(own, hangs, 0.01) is None
    assert threading.active_count() == before
    assert f"{MOST_THREADS} earlier calls have not come back" in caplog.text
    release.set()
    for _ in range(MOST_THREADS):
        ended.acquire(timeout=30)
    while await made(own, lambda request: TOLD) is None:
        pass  # the last of them is just ending


async def test_an_answer_without_end_is_not_judged() -> None:
    assert await made(OwnSummarizer(), lambda request: "x" * 5_000_000) is None


async def test_the_content_of_an_answer_may_fail_as_the_function_may(caplog: pytest.LogCaptureFixture) -> None:
    class Answer:
        @property
        def content(self) -> str:
            raise RuntimeError("a text of the conversation")

    assert await made(OwnSummarizer(), lambda request: Answer()) is None
    assert "the summarizer mine:f failed: RuntimeError at line " in caplog.text
    assert "a text of the conversation" not in caplog.text
