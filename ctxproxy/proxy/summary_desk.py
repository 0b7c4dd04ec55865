"""Who writes which summary: one call per tip at a time, none for a while after a failure, and where the result is kept."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aiohttp import web

from ctxproxy.config.own_parts import summarizer_at
from ctxproxy.config.schema import Settings
from ctxproxy.core.dues import DuePoints
from ctxproxy.core.effects import CountUse, Effect, MadeOf, OpenSession, PutDue, PutSummary
from ctxproxy.core.language import language_of
from ctxproxy.core.messages import Tip
from ctxproxy.core.points import Point
from ctxproxy.core.policy import SummarizerPolicy
from ctxproxy.core.presets import stages_of
from ctxproxy.core.prompts import Prompt
from ctxproxy.core.records import SessionKey, Spent, Summary
from ctxproxy.core.situation import Situation
from ctxproxy.core.stages.rolling_summary import RollingSummary
from ctxproxy.core.summaries import Draft, Need, reads_again
from ctxproxy.core.summary_points import Parted, points_of
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Headers, Store, Tokenizer, Upstream
from ctxproxy.proxy.claims import Claims
from ctxproxy.proxy.fact_desk import FactDesk
from ctxproxy.proxy.identify import Target, credentials_of
from ctxproxy.proxy.index_desk import IndexDesk
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.own_summarizer import Own, OwnSummarizer
from ctxproxy.proxy.summarizer import Summarizer, Writer, one_answer
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
PAUSE_AFTER_FAILURE_S = 60.0
"""How long a session's summarizer is left alone after it has failed: one that is down stays down for longer than a turn."""
READ_AGAIN_CALLS = 3
"""How many windows' worth of originals are read again; of a longer history, an earlier summary stands for the beginning."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Asked:
    """By whom and where a summary is written for a request: the configured summarizer, else the request's own upstream, model and credential."""

    base_url: str
    model: str
    credentials: Headers
    window_tokens: int
    tokenizer: Tokenizer
    timeout_s: float
    own: Own | None = None
    """A function of the user's that is asked instead."""
    points: bool = False
    """A model is asked for memory points in the same call."""
    opening: OpenSession | None = None
    """Makes the session where the store did not have it when the request came: what a summary has cost is kept though no answer may come."""
    is_erased: Callable[[], bool] = _never
    """Whether the session was erased since the request came."""


@dataclass(frozen=True, slots=True)
class _Made:
    """What came of a call, without what it was made of: the summary, None if there is none, its cost, and the memory points that came with it."""

    tip: Tip
    forgotten: frozenset[Tip]
    summary: Summary | None
    spent: Spent
    points: Sequence[Point] = ()


class SummaryDesk:
    """Writes summaries; `write` may be called for the same one many times at once, and asks once."""

    def __init__(
        self, store: Store, upstream: Callable[[str], Upstream], metrics: Metrics, tasks: Tasks, facts: FactDesk, index: IndexDesk, claims: Claims
    ) -> None:
        self._store = store
        self._claims = claims
        self._upstream = upstream
        self._metrics = metrics
        self._tasks = tasks
        self._facts = facts
        self._index = index
        self._own = OwnSummarizer()
        self._writing: dict[tuple[SessionKey | None, Tip], asyncio.Task[Summary | None]] = {}
        self._failed_at: dict[SessionKey, float] = {}

    def is_busy(self, key: SessionKey) -> bool:
        """Whether a summary of this session is being written: what it will tell need not be asked for twice."""
        return any(session == key for session, _ in self._writing)

    def write_behind(self, key: SessionKey, need: Need, asked: Asked) -> None:
        """Begin to write a summary that nobody waits for, unless another process is at one of this session: it is there at the next request."""
        if self.is_busy(key) or self._claims.is_free(_claim(key)):
            self._tasks.start(self.write(key, need, asked), "summary")

    async def done(self, key: SessionKey, tip: Tip) -> None:
        """Wait until a summary that is being written is there, or has failed; asks for none itself."""
        if running := self._writing.get((key, tip)):
            await asyncio.wait([running])

    async def write(self, key: SessionKey | None, need: Need, asked: Asked) -> Summary | None:
        """The summary, kept in the store if there is a session; None if it cannot be had. Never raises but for cancellation."""
        if key is not None and time.monotonic() - self._failed_at.get(key, -PAUSE_AFTER_FAILURE_S) < PAUSE_AFTER_FAILURE_S:
            return None
        at = (key, need.tip)
        running = self._writing.get(at) if key is not None else None
        if running is None:
            running = self._tasks.start(self._write(key, need, asked), "summary")
            self._writing[at] = running
            running.add_done_callback(lambda _: self._writing.pop(at, None))
        return await asyncio.shield(running)

    async def answer(self, prompt: Prompt, asked: Asked) -> Draft | None:
        """A model's answer to a call of another kind; None if none came, or where a function of the user's writes summaries."""
        if asked.own is not None:
            return None
        costs: list[float] = []
        writer = Writer(self._upstream(asked.base_url), asked.base_url, asked.model, asked.window_tokens, asked.credentials)
        draft = await one_answer(prompt, writer, asked.timeout_s, asked.tokenizer.count, costs.append)
        self._metrics.count_spent(Spent(cost_summaries=sum(costs)))
        return draft

    async def _write(self, key: SessionKey | None, need: Need, asked: Asked) -> Summary | None:
        with self._claims.tried(_claim(key)) if key is not None else contextlib.nullcontext():
            return await self._written(key, need, asked)

    async def _written(self, key: SessionKey | None, need: Need, asked: Asked) -> Summary | None:
        if key is not None and (there := await self._come_meanwhile(key, need.tip)):
            return there
        costs: list[float] = []
        blocks: list[Parted] = []
        summary = await self._made(need, asked, costs.append, blocks.append)
        self._metrics.summaries.labels("failed" if summary is None else "made").inc()
        spent = Spent(cost_summaries=sum(costs))
        self._metrics.count_spent(spent)
        if key is None:
            return summary
        if summary is None:
            self._failed_at[key] = time.monotonic()
        else:
            self._failed_at.pop(key, None)
        points = await self._points(need, summary, blocks) if summary and asked.points else ()
        opening = None if await self._is_stored(key) else asked.opening
        if not asked.is_erased():
            await self._keep(key, _Made(need.tip, need.forgotten, summary, spent, points), [opening] if opening else [])
        return summary

    async def _points(self, need: Need, summary: Summary, blocks: Sequence[Parted]) -> Sequence[Point]:
        """The memory points that came with a summary; a block that is not valid is counted, and gives none."""
        self._metrics.memory_points.labels("refused").inc(sum(block.refused for block in blocks))
        told = [one for block in blocks for one in block.told]
        return await asyncio.to_thread(points_of, told, summary.text, need.covered, need.tip, summary.created)

    async def _come_meanwhile(self, key: SessionKey, tip: Tip) -> Summary | None:
        """The summary that another request, or another process, has had written since this one was found to be wanted."""
        with contextlib.suppress(StoreUnavailable):
            return next((one for one in await self._store.summaries(key, [tip]) if one.kind == "llm"), None)
        return None

    async def _is_stored(self, key: SessionKey) -> bool:
        try:
            return await self._store.session(key) is not None
        except StoreUnavailable:
            return True  # writing tells what is wrong

    async def _keep(self, key: SessionKey, made: _Made, opening: Sequence[OpenSession]) -> None:
        """Put what was made into the store, the search index and the facts; nothing comes of it where the session is not there."""
        summary = made.summary
        effects: list[Effect] = [*opening, CountUse(key, spent=made.spent), MadeOf(key, made.forgotten)]
        effects += [PutSummary(key, summary)] if summary else []
        effects += [PutDue(key, DuePoints(made.tip, tuple(made.points)))] if made.points else []
        try:
            await self._store.apply(effects)
            if not await self._store.summaries(key, [made.tip]):
                return
        except StoreUnavailable as error:
            log.warning("could not write a summary of session %s to the store: %s", key.id, error.message)
        if summary is not None:
            self._index.note_summary(key, summary)
            if made.points:
                self._facts.note_summary(key, made.tip, made.points)

    async def _made(self, need: Need, asked: Asked, spend: Callable[[float], None], part: Callable[[Parted], None]) -> Summary | None:
        if asked.own is not None:
            return await self._own.make(asked.own, need, asked.tokenizer.count, asked.timeout_s)
        writer = Writer(self._upstream(asked.base_url), asked.base_url, asked.model, asked.window_tokens, asked.credentials)
        return await Summarizer(asked.timeout_s, points=part if asked.points else None).make(need, writer, asked.tokenizer.count, spend)


def _claim(key: SessionKey) -> str:
    return f"summary {key.tenant} {key.name}"


def asked_for(request: web.Request, settings: Settings, target: Target, model: str, window_tokens: int, tokenizer: Tokenizer) -> Asked:
    """How a summary is asked for on behalf of a request; credentials stay in memory."""
    own = settings.summarizer
    if own.base_url or own.api_key:
        credentials: list[tuple[str, str]] = [("Authorization", f"Bearer {own.api_key}")] if own.api_key else []
    else:
        credentials = credentials_of(request, target)
    function = summarizer_at(own.kind)
    named = Own(own.kind, function) if function else None
    base_url, points = own.base_url or target.base_url, settings.memory.facts and own.memory_points
    return Asked(base_url, own.model or model, credentials, window_tokens, tokenizer, own.timeout_s, named, points)


def need_of(situation: Situation, tip: Tip, policy: SummarizerPolicy, window_tokens: int) -> Need:
    """What has to be summarized: what came after an earlier summary, or all of it again where that is due and not too much.

    A running summary is only carried on: nothing is summarized twice (004-S12).
    """
    at = situation.reconciled.tips.index(tip) + 1
    places = {t: n for n, t in enumerate(situation.reconciled.tips[:at], 1)}
    ready = [s for s in situation.summaries if s.kind == "llm" and s.tip in places]
    previous = max(ready, key=lambda s: places[s.tip], default=None)
    readable = sum(situation.counts[:at]) <= READ_AGAIN_CALLS * window_tokens
    running = next((stage for stage in stages_of(situation.policy) if isinstance(stage, RollingSummary)), None)
    if previous and readable and not running and reads_again(places[previous.tip], at):
        previous = None
    start = places[previous.tip] if previous else 0
    messages = situation.reconciled.history[start:at]
    language = language_of(situation.reconciled.history, situation.memo) if policy.language == "auto" else policy.language
    most = min(policy.max_tokens, running.max_summary_tokens if running else policy.max_tokens, max(situation.budget.limit // 4, 64))
    gone = situation.forgotten | situation.cleared
    kept = tuple(m for m, t in zip(messages, situation.reconciled.tips[start:at], strict=True) if t not in gone)
    times = situation.since, situation.now
    return Need(tip, kept, language, most, previous, *times, tuple(situation.pins), situation.forgotten, situation.memo)


def informed(situation: Situation, summary: Summary) -> Situation:
    """The situation with one more summary ready."""
    return replace(situation, summaries=[*situation.summaries, summary])
