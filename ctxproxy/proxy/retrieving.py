"""What the newest request needs of what its prompt holds no more is looked up and put in before the user's message; a failure changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial

from ctxproxy.config.schema import Settings
from ctxproxy.core.language import language_of
from ctxproxy.core.planned import Plan
from ctxproxy.core.presets import retrieves
from ctxproxy.core.recalled import Passage, with_recalled
from ctxproxy.core.records import SessionKey
from ctxproxy.core.retrieval import FRAME_TOKENS, LINE_TOKENS, Bounds, Elsewhere, Query, choose, elsewhere, gone, query_of
from ctxproxy.core.situation import Situation
from ctxproxy.core.text_index import Place
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy.days import local_time, zone_of
from ctxproxy.proxy.prepare import Prepared, user_of
from ctxproxy.proxy.state import State

log = logging.getLogger("ctxproxy")
CHOOSE_IN_THREAD_ABOVE = 100
"""Messages: up to there it takes a millisecond or two."""
OTHER_SESSIONS = 20
"""Of the user's, the last used ones, that are searched too."""


async def with_retrieval(state: State, settings: Settings, prepared: Prepared, situation: Situation, planned: Plan) -> Plan:
    """The plan with passages of the past that the last user message asks for; the same plan where nothing is, or nothing can be, found."""
    key, history = prepared.caller.key, situation.reconciled.history
    if key is None or settings.retrieval.kind == "off" or not retrieves(situation.policy) or not history or history[-1].role != "user":
        return planned
    user = user_of(prepared.caller, prepared.session)
    lost = gone(planned.transcript, situation.reconciled.tips, situation.forgotten)
    if not lost and not user:
        return planned
    try:
        query = query_of(history)
        bounds = Bounds(settings.retrieval.top_k, settings.retrieval.max_tokens, settings.retrieval.min_score)
        search = _Search(state, key, user, situation, planned, query, bounds, zone_of(settings.memory.timezone))
        return await search.plan() if query.terms else planned
    except StoreUnavailable as error:
        state.metrics.store_errors.inc()
        log.warning("session %s could not be searched: %s", key.id, error.message)
    except Exception as error:
        log.exception("searching session %s failed, the request goes out without it: %s", key.id, type(error).__name__)
        state.metrics.failed_open.inc()
    return planned


@dataclass(frozen=True, slots=True)
class _Search:
    """One request's search: in its own session, and in the others of its user."""

    state: State
    key: SessionKey
    user: str
    situation: Situation
    planned: Plan
    query: Query
    bounds: Bounds
    zone: tzinfo | None

    async def plan(self) -> Plan:
        """The plan with all that was found."""
        here = await self.here()
        passages = [*await self.elsewhere(here), *here] if self.user and self.query.asks else here
        found = with_recalled(self.situation, self.planned, passages, language_of([self.situation.reconciled.history[-1]]))
        if found.recalled is not None and here:
            self._note_use(self.key, [passage.place for passage in here])
        return found

    async def here(self) -> list[Passage]:
        """What fits of what this session's prompt holds no more."""
        reconciled = self.situation.reconciled
        postings = await self.state.index.postings(self.key, list(self.query.terms), reconciled.history, reconciled.tips, self.situation.now)
        chosen = partial(choose, self.situation, self.planned.transcript, self.query, postings, self.bounds)
        return await asyncio.to_thread(chosen) if len(reconciled.tips) > CHOOSE_IN_THREAD_ABOVE else chosen()

    async def elsewhere(self, here: Sequence[Passage]) -> list[Passage]:
        """What was said in the user's other sessions and fits clearly, in the room that is left, oldest first."""
        chunks, terms, count = self.state.store.chunks, list(self.query.terms), self.situation.count_text
        sessions = await self.state.store.of_user(self.key.tenant, self.user, OTHER_SESSIONS)
        found = [Elsewhere(s.key, await chunks.postings(s.key, terms)) for s in sessions if s.key != self.key]
        room = min(self.bounds.max_tokens, self.situation.budget.limit - self.planned.transcript.tokens - FRAME_TOKENS)
        room -= sum(count(one.text) + LINE_TOKENS for one in here)
        passages: list[Passage] = []
        for key, places in elsewhere(found, self.query, self.bounds):
            for piece in await chunks.texts(key, places):
                cost = count(piece.chunk.text) + LINE_TOKENS
                if cost <= room:
                    room -= cost
                    day = f"{local_time(piece.created, self.zone):%Y-%m-%d}"
                    passages.append(Passage((piece.chunk.tip, piece.chunk.part), piece.chunk.role, piece.chunk.text, day))
            self._note_use(key, places)
        return sorted(passages, key=lambda passage: (passage.day, passage.place))

    def _note_use(self, key: SessionKey, places: Sequence[Place]) -> None:
        """Count behind the answer what was recalled: what is recalled often is what a new session begins with."""
        self.state.tasks.start(_touched(self.state, key, places), "recalled")


async def _touched(state: State, key: SessionKey, places: Sequence[Place]) -> None:
    with contextlib.suppress(StoreUnavailable):
        await state.store.chunks.touch(key, places)
