"""What the newest request needs of what its prompt holds no more is looked up and put in before the user's message; a failure changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from ctxproxy.config.schema import Retrieval, Settings
from ctxproxy.core.language import language_of
from ctxproxy.core.plan import Plan
from ctxproxy.core.presets import retrieves
from ctxproxy.core.recalled import Passage, with_recalled
from ctxproxy.core.records import SessionKey
from ctxproxy.core.retrieval import Bounds, Elsewhere, Query, choose, elsewhere, gone, query_of
from ctxproxy.core.situation import Situation
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy.prepare import Prepared
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
    user = prepared.caller.user or (prepared.session.user if prepared.session else "")
    lost = gone(planned.transcript, situation.reconciled.tips, situation.forgotten)
    if not lost and not user:
        return planned
    try:
        return await _searched(state, settings.retrieval, key, user, situation, planned)
    except StoreUnavailable as error:
        state.metrics.store_errors.inc()
        log.warning("session %s could not be searched: %s", key.id, error.message)
    except Exception as error:
        log.exception("searching session %s failed, the request goes out without it: %s", key.id, type(error).__name__)
        state.metrics.failed_open.inc()
    return planned


async def _searched(state: State, wanted: Retrieval, key: SessionKey, user: str, situation: Situation, planned: Plan) -> Plan:
    query = query_of(situation.reconciled.history)
    if not query.terms:
        return planned
    terms, bounds = list(query.terms), Bounds(wanted.top_k, wanted.max_tokens, wanted.min_score)
    reconciled = situation.reconciled
    postings = await state.index.postings(key, terms, reconciled.history, reconciled.tips, situation.now)
    chosen = partial(choose, situation, planned.transcript, query, postings, bounds)
    passages = await asyncio.to_thread(chosen) if len(reconciled.tips) > CHOOSE_IN_THREAD_ABOVE else chosen()
    here = len(passages)
    if user and query.asks:
        passages = [*await _of_other_sessions(state, key, user, query, bounds, situation, planned, passages), *passages]
    found = with_recalled(situation, planned, passages, language_of([reconciled.history[-1]]))
    if found.recalled is not None and here:
        state.tasks.start(state.store.chunks.touch(key, [passage.place for passage in passages[-here:]]), "recalled")
    return found


async def _of_other_sessions(
    state: State, key: SessionKey, user: str, query: Query, bounds: Bounds, situation: Situation, planned: Plan, here: Sequence[Passage]
) -> list[Passage]:
    """What was said in other sessions of the user that fits at least as well as what was found in this one; bounded by what that leaves."""
    sessions = [session.key for session in await state.store.of_user(key.tenant, user, OTHER_SESSIONS) if session.key != key]
    terms = list(query.terms)
    found = [Elsewhere(other, await state.store.chunks.postings(other, terms)) for other in sessions]
    room = min(bounds.max_tokens, situation.budget.limit - planned.transcript.tokens) - sum(situation.count_text(one.text) for one in here)
    passages: list[Passage] = []
    for other, places in elsewhere(found, query, bounds):
        for piece in await state.store.chunks.texts(other, places):
            cost = situation.count_text(piece.chunk.text)
            if cost <= room:
                room -= cost
                passages.append(Passage((piece.chunk.tip, piece.chunk.part), piece.chunk.role, piece.chunk.text, piece.created))
        state.tasks.start(state.store.chunks.touch(other, places), "recalled")
    return sorted(passages, key=lambda passage: (passage.created or 0.0, passage.place))
