"""From a situation to an answer: plan, send, and after an overflow the ladder's rungs, all before the client has seen a byte."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Literal, assert_never

import msgspec
from aiohttp import web
from msgspec import structs

from ctxproxy.config.schema import Settings
from ctxproxy.core import ladder, wire
from ctxproxy.core.budget import tightened
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.ladder import Attempt, ClampOutput, Clear, GiveUp, Replan, ShortenLastUser, SummarizeAndTrim
from ctxproxy.core.plan import observed, plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.preloads import lighter
from ctxproxy.core.rescue_plans import cleared, replanned, shortened, trimmed
from ctxproxy.core.situation import Situation
from ctxproxy.core.steps import at_limit, stopped
from ctxproxy.ports import Response
from ctxproxy.ports.embedding import Access
from ctxproxy.proxy.attempt import Refused, Whole, examine
from ctxproxy.proxy.early import EarlyCall
from ctxproxy.proxy.identify import credentials_of, origin_of
from ctxproxy.proxy.outgoing import call_for
from ctxproxy.proxy.prepare import Prepared, is_erased
from ctxproxy.proxy.recall_offer import RecallUse
from ctxproxy.proxy.retrieving import with_retrieval
from ctxproxy.proxy.state import State
from ctxproxy.proxy.streams import Stream
from ctxproxy.proxy.summary_desk import Asked, asked_for, informed, need_of

log = logging.getLogger("ctxproxy")
MEGABYTE = 1_048_576
PLAN_HERE_MESSAGES, PLAN_HERE_TOKENS = 100, 2000
"""A plan of more is made in a thread where it may have to compact: texts that were not read before take some four milliseconds a thousand tokens."""

Decide = Callable[[Situation], Plan]


class Got(msgspec.Struct, frozen=True):
    """What came of a request, and the plan that it came of."""

    result: Stream | Whole | Refused
    situation: Situation
    plan: Plan
    attempts: int
    marks: tuple[tuple[str, int], ...] = ()
    """What was done beside the plan's stages, for `X-Context-Actions`."""
    changes: Mapping[str, bytes] = {}
    """Values that were sent in place of the request's own."""
    recall: RecallUse | None = None
    """What the model did with the recall tool; None where it was not offered."""

    @property
    def calls(self) -> int:
        """Upstream calls, up to now."""
        return self.attempts + (self.recall.calls if self.recall else 0)

    @property
    def overflow(self) -> Literal["", "rescued", "gave_up"]:
        """What came of it if the upstream said "too long"; "" if it did not."""
        if isinstance(self.result, Refused):
            return "gave_up" if self.attempts > 1 or self.result.verdict.kind == "overflow" else ""
        return "rescued" if self.attempts > 1 else ""


class Ready(msgspec.Struct, frozen=True):
    """A plan, what it was made from, and the body that carries it out."""

    situation: Situation
    plan: Plan
    body: bytes


class Rescue:
    """One request's way to its answer."""

    def __init__(self, state: State, request: web.Request, settings: Settings, prepared: Prepared) -> None:
        self._state = state
        self._request = request
        self._settings = settings
        self._prepared = prepared
        self._began = time.monotonic()
        self._ladder = ladder.start(settings.recovery)
        self._max_output = prepared.chat.max_output
        self._changes: dict[str, bytes] = {}
        self._marks: list[tuple[str, int]] = []

    def let_go(self) -> Prepared:
        """What was prepared, without the request's bytes: nothing is sent any more, and an answer may take minutes."""
        self._prepared = structs.replace(self._prepared, chat=wire.without_bytes(self._prepared.chat))
        return self._prepared

    @cached_property
    def asked(self) -> Asked:
        """How a summary can be asked for on the request's behalf."""
        settings, target, model = self._settings, self._prepared.caller.target, self._prepared.chat.model
        origin = origin_of(settings.summarizer.base_url or target.base_url)
        window = self._state.windows.belief(origin, settings.summarizer.model or model, settings.models).window
        asked = asked_for(self._request, settings, target, model, window, self._prepared.gauge.tokenizer)
        return replace(asked, opening=self._opening(), is_erased=is_erased(self._state, self._prepared))

    def _opening(self) -> OpenSession | None:
        caller, session = self._prepared.caller, self._prepared.session
        if caller.key is None or session is not None:
            return None
        return OpenSession(caller.key, self._state.clock(), recall=self._prepared.bare is not None, user=caller.user)

    async def first_plan(self) -> Ready:
        """What to send, with the summary it wants where that is to be waited for."""
        situation, planned = await self._decided(self._prepared.situation, plan, wait=not self._settings.summarizer.background)
        self._watch_steps(situation)
        if not situation.policy.observe:
            planned = await with_retrieval(self._state, self._settings, self._prepared, situation, planned, self._access)
        if self._prepared.session is None and situation.preload:
            self._marks.append(("preload", 1))
        if situation.policy.observe and planned.changed:
            self._marks.append(("observed", 1))
            planned = observed(situation, planned)
        return self._ready(situation, planned)

    def _access(self) -> Access:
        target = self._prepared.caller.target
        return Access(target.base_url, credentials_of(self._request, target))

    def _watch_steps(self, situation: Situation) -> None:
        """Say that the turn has come to its most steps, and have it answered without another call where that was asked for (000-06)."""
        history, chat = situation.reconciled.history, self._prepared.chat
        if not at_limit(situation.policy, history):
            return
        self._marks.append(("max_steps", 1))
        self._state.metrics.max_steps.inc()
        if stopped(situation.policy, history) and (chat.tools or chat.functions):
            self._changes["tool_choice" if chat.tools else "function_call"] = b'"none"'

    async def answer(self, ready: Ready, early: EarlyCall) -> Got:
        """The upstream's answer, or its last refusal; raises UpstreamUnreachable and UpstreamTimeout."""
        attempts = 0
        while True:
            attempts += 1
            as_it_came = self._prepared.bare is None and ready.body is self._prepared.chat.body and attempts == 1
            result = await self._examined(await early.response() if as_it_came else await self._send(ready.body))
            step = await self._rescued(result, ready) if isinstance(result, Refused) else None
            if step is None:
                return self._got(result, ready.situation, ready.plan, attempts)
            await result.response.close()
            ready = step

    def _ready(self, situation: Situation, planned: Plan) -> Ready:
        edited = self._prepared.rebuilt or planned.changed
        return Ready(situation, planned, wire.render(self._prepared.chat, planned.messages if edited else None, self._changes))

    def _got(self, result: Stream | Whole | Refused, situation: Situation, planned: Plan, attempts: int) -> Got:
        got = Got(result, situation, planned, attempts, tuple(self._marks), dict(self._changes))
        if got.overflow:
            self._state.metrics.overflows.labels(got.overflow).inc()
        return got

    async def _send(self, body: bytes) -> Response:
        """One upstream call with a body of ours."""
        target = self._prepared.caller.target
        call = call_for(self._request, target, self._settings, body, reencoded=True, plain=self._prepared.bare is not None)
        return await self._state.upstream(target.base_url).send(call)

    async def _examined(self, response: Response) -> Stream | Whole | Refused:
        metrics, status = self._state.metrics, response.status
        (metrics.called_well if status == 200 else metrics.upstream_calls.labels("chat", str(status))).inc()
        return await examine(response, self._state.tasks, int(self._settings.listen.max_body_mb * MEGABYTE))

    async def _rescued(self, refused: Refused, sent: Ready) -> Ready | None:
        """What to try next, after the refusal was learned from; None where there is nothing, or where a fault of ours keeps us from it."""
        try:
            counted = round(sent.plan.tokens_sent / self._prepared.gauge.factor)
            await self._state.windows.learn(self._prepared.caller.target.origin, self._prepared.chat.model, refused.verdict, counted=counted)
            step = await self._next(refused, sent.situation, sent.plan)
            return self._ready(*step) if step else None
        except Exception as error:
            log.exception("the rescue of a refused request failed, its refusal is passed on: %s", type(error).__name__)
            self._state.metrics.failed_open.inc()
            self._marks.append(("failed_open", 1))
            return None

    async def _next(self, refused: Refused, situation: Situation, sent: Plan) -> tuple[Situation, Plan] | None:
        """The next rung's plan; None when nothing is left that would help."""
        belief = self._state.windows.belief(self._prepared.caller.target.origin, self._prepared.chat.model, self._settings.models)
        while True:
            facts = Attempt(
                prompt_tokens=sent.tokens_sent,
                elapsed_s=time.monotonic() - self._began,
                max_tokens=self._max_output,
                reserve_tokens=situation.budget.reserve,
                window_tokens=belief.window,
            )
            self._ladder, rung = ladder.next_rung(self._ladder, refused.verdict, facts)
            match rung:
                case GiveUp(reason=reason):
                    if refused.verdict.kind == "overflow":
                        log.warning("an overflow was not rescued: %s (%d tokens by our count)", reason, sent.tokens_sent)
                    return None
                case ClampOutput(max_tokens=most):
                    self._clamp(most)
                    return situation, sent
                case Replan() | SummarizeAndTrim() | Clear() | ShortenLastUser():
                    situation, planned = await self._rung_plan(rung, situation)
                case _:
                    assert_never(rung)
            if not ladder.too_little(sent.tokens_sent, planned.tokens_sent):
                return situation, planned
            self._ladder = ladder.skipped(self._ladder)

    def _clamp(self, most: int) -> None:
        self._max_output = most
        self._changes[self._prepared.chat.output_key or "max_tokens"] = str(most).encode()
        self._marks.append(("clamp_output", 1))

    async def _rung_plan(self, rung: Replan | SummarizeAndTrim | Clear | ShortenLastUser, situation: Situation) -> tuple[Situation, Plan]:
        recovery, background = self._settings.recovery, self._settings.summarizer.background
        match rung:
            case Replan(budget_tokens=tokens):
                situation = lighter(situation, tokens)
                budget = tightened(situation.budget, tokens)
                return await self._decided(situation, lambda s: replanned(s, budget), wait=not background and not self._ladder.summarizer_failed)
            case SummarizeAndTrim(budget_tokens=tokens, may_wait=may_wait):
                situation = lighter(situation, tokens)
                budget = tightened(situation.budget, tokens)
                return await self._decided(situation, lambda s: trimmed(s, budget, recovery), wait=may_wait)
            case Clear():
                situation = lighter(situation, 0)
                return situation, cleared(situation)
            case ShortenLastUser(budget_tokens=tokens):
                situation = lighter(situation, 0)
                return situation, shortened(situation, tightened(situation.budget, tokens))

    async def _decided(self, situation: Situation, decide: Decide, *, wait: bool) -> tuple[Situation, Plan]:
        """A decision, made again with the summary it wants if that comes in time; else that is written in the background."""
        planned = await _computed(decide, situation)
        if not planned.wants:
            return situation, planned
        desk, key = self._state.summaries, self._prepared.caller.key
        need = need_of(situation, planned.wants, self._settings.summarizer, self.asked.window_tokens)
        if not wait:
            if key is not None:
                desk.write_behind(key, need, self.asked)
            return situation, planned
        summary = await desk.write(key, need, self.asked)
        if summary is None:
            self._ladder = ladder.summarizer_failed(self._ladder)
            return situation, planned
        better = informed(situation, summary)
        return better, await _computed(decide, better)


async def _computed(decide: Decide, situation: Situation) -> Plan:
    """The decision; in a thread where it may take long enough to be felt by other requests."""
    tokens = sum(situation.counts)
    if tokens > situation.budget.target and (tokens > PLAN_HERE_TOKENS or len(situation.counts) > PLAN_HERE_MESSAGES):
        return await asyncio.to_thread(decide, situation)
    return decide(situation)
