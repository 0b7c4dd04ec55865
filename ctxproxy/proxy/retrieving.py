"""What the newest request needs of what its prompt holds no more is looked up and put in before the user's message; a failure changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from typing import Literal

from ctxproxy.config.schema import Settings
from ctxproxy.core.fusion import NOT_COMPARED, Nearness
from ctxproxy.core.language import language_of
from ctxproxy.core.messages import text_of
from ctxproxy.core.note_search import MOST as MOST_NOTES
from ctxproxy.core.note_search import MOST_TOKENS as NOTES_TOKENS
from ctxproxy.core.note_search import FoundNote, Told, apart, as_passage, chosen, news
from ctxproxy.core.planned import Brought, Plan
from ctxproxy.core.presets import retrieves
from ctxproxy.core.recalled import Passage, with_recalled
from ctxproxy.core.records import SessionKey
from ctxproxy.core.retrieval import (
    FRAME_TOKENS,
    LINE_TOKENS,
    Bounds,
    Elsewhere,
    Query,
    choose,
    elsewhere,
    fill,
    gone,
    is_long_remark,
    query_of,
    sense_of,
)
from ctxproxy.core.situation import Situation
from ctxproxy.core.text_index import Place, Postings
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports.embedding import Access
from ctxproxy.proxy.days import age_of, local_time, zone_of
from ctxproxy.proxy.prepare import Prepared, user_of
from ctxproxy.proxy.state import State

log = logging.getLogger("ctxproxy")
CHOOSE_IN_THREAD_ABOVE = 100
"""Messages: up to there it takes a millisecond or two."""
OTHER_SESSIONS = 20
"""Of the user's, the last used ones, that are searched too."""


async def with_retrieval(
    state: State, settings: Settings, prepared: Prepared, situation: Situation, planned: Plan, access: Callable[[], Access]
) -> Plan:
    """The plan with passages of the past that the last user message asks for; the same plan where nothing is, or nothing can be, found.

    `access` gives that of the request.
    """
    key, history = prepared.caller.key, situation.reconciled.history
    if key is None or settings.retrieval.kind == "off" or not retrieves(situation.policy) or not history or history[-1].role != "user":
        return planned
    user = user_of(prepared.caller, prepared.session)
    lost = gone(planned.transcript, situation.reconciled.tips, situation.forgotten) if planned.changed else frozenset()
    if not lost and not user:
        return planned
    try:
        query, kind = query_of(history), settings.retrieval.kind
        if not query.terms or (is_long_remark(query) and kind != "dense"):
            return planned
        bounds = Bounds(settings.retrieval.top_k, settings.retrieval.max_tokens, settings.retrieval.min_score)
        search = _Search(state, key, user, situation, planned, query, bounds, zone_of(settings.memory.timezone))
        return await search.plan(kind, access())
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

    async def plan(self, kind: Literal["keyword", "dense", "hybrid"], access: Access) -> Plan:
        """The plan with all that was found."""
        near = await self.near(access, alone=kind == "dense") if kind == "dense" or (kind == "hybrid" and self.query.asks) else NOT_COMPARED
        others, own = apart(await self.in_files(), self.key.name)
        shown = self.shown() if others or own or self.user else ""
        room = min(self.bounds.max_tokens, self.situation.budget.with_recalled - self.planned.transcript.tokens - FRAME_TOKENS)
        notes = self.noted(others, Told(self.key.name, self.situation.cleared, shown), room)
        postings = await self.postings()
        told = Told(self.key.name, self.situation.cleared, shown, postings.by_term)
        notes += self.noted(news(own, self.query, told), told, room - self.cost(notes))
        here = await self.here(postings, room - self.cost(notes), near)
        others_said = await self.elsewhere(room - self.cost([*notes, *here]), shown) if self.user and self.query.asks else []
        there = [passage for _, passage in others_said]
        passages = [*sorted([*notes, *there], key=lambda passage: (passage.day, passage.place)), *here]
        found = with_recalled(self.situation, self.planned, passages, language_of([self.situation.reconciled.history[-1]]))
        if found.recalled is None:
            return found
        if here:
            self._note_use(self.key, [passage.place for passage in here])
        said_before = [*others_said, *((self.key, passage) for passage in here)]
        return replace(found, brought=tuple(Brought(key, one.place, one.text) for key, one in said_before))

    def cost(self, passages: Sequence[Passage]) -> int:
        """Tokens of passages with the lines that they stand in."""
        return sum(self.situation.count_text(one.text) + LINE_TOKENS for one in passages)

    async def in_files(self) -> list[FoundNote]:
        """What the memory files hold of what is looked for; a question alone looks there."""
        if not self.query.asks:
            return []
        try:
            return await self.state.note_search.found(self.key, self.user, self.query.terms)
        except OSError as error:
            log.warning("the memory files of session %s could not be searched: %s", self.key.id, error.strerror or type(error).__name__)
            return []

    def shown(self) -> str:
        """What the prompt holds."""
        return "\n".join(text_of(one) for one in (*self.situation.preload, *(entry.message for entry in self.planned.transcript.entries)))

    def noted(self, found: Sequence[FoundNote], told: Told, room: int) -> list[Passage]:
        """What fits of what was found in memory files."""
        age_days = partial(age_of, time_s=self.situation.now, zone=self.zone)
        ranked = [as_passage(piece) for piece in chosen(found, told, age_days, self.bounds.min_score)] if found else []
        return fill(ranked, lambda one: self.cost([one]), min(room, NOTES_TOKENS), MOST_NOTES)

    async def near(self, access: Access, *, alone: bool) -> Nearness:
        """What is near in meaning to what is asked for, in this session."""
        return Nearness(await self.state.vectors.nearest(self.key, sense_of(self.situation.reconciled.history), access), alone)

    async def postings(self) -> Postings:
        """Where what is looked for stands in the session's log."""
        return await self.state.index.postings(self.key, list(self.query.terms), self.situation.reconciled)

    async def here(self, postings: Postings, room: int, near: Nearness) -> list[Passage]:
        """What fits of what this session's prompt holds no more."""
        reconciled, bounds = self.situation.reconciled, replace(self.bounds, max_tokens=room)
        finding = partial(choose, self.situation, self.planned.transcript, self.query, postings, bounds, near)
        return await asyncio.to_thread(finding) if len(reconciled.tips) > CHOOSE_IN_THREAD_ABOVE else finding()

    async def elsewhere(self, room: int, shown: str) -> list[tuple[SessionKey, Passage]]:
        """What was said in the user's other sessions, fits clearly and is not shown yet, in the room that is left, each with its session."""
        chunks, terms = self.state.store.chunks, list(self.query.terms)
        sessions = await self.state.store.of_user(self.key.tenant, self.user, OTHER_SESSIONS)
        found = [Elsewhere(s.key, await chunks.postings(s.key, terms)) for s in sessions if s.key != self.key]
        passages: list[tuple[SessionKey, Passage]] = []
        for key, places in elsewhere(found, self.query, self.bounds):
            for piece in await chunks.texts(key, places):
                day = f"{local_time(piece.created, self.zone):%Y-%m-%d}"
                passage = Passage((piece.chunk.tip, piece.chunk.part), piece.chunk.role, piece.chunk.text, day)
                if passage.text not in shown and (cost := self.cost([passage])) <= room:
                    room -= cost
                    passages.append((key, passage))
            self._note_use(key, places)
        return passages

    def _note_use(self, key: SessionKey, places: Sequence[Place]) -> None:
        """Count behind the answer what was recalled: what is recalled often is what a new session begins with."""
        self.state.tasks.start(_touched(self.state, key, places), "recalled")


async def _touched(state: State, key: SessionKey, places: Sequence[Place]) -> None:
    with contextlib.suppress(StoreUnavailable):
        await state.store.chunks.touch(key, places)
