"""A new session of a known user starts with what is remembered of the user's earlier ones, and keeps that for good (003-40)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ctxproxy.config.schema import Preload as Wanted
from ctxproxy.config.schema import Settings
from ctxproxy.core.budget import budget
from ctxproxy.core.carryover import Digest, Preload
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.extractive import CountText, extract
from ctxproxy.core.language import Language, language_of
from ctxproxy.core.messages import Message, read
from ctxproxy.core.points import MemoryPoint
from ctxproxy.core.preloads import ITEM_TOKENS, Past, Remembered, block_of, room_for, told_of
from ctxproxy.core.records import Session, SessionKey, StoredMessage
from ctxproxy.core.wire import from_log
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy.days import local_time, zone_of
from ctxproxy.proxy.erasing import forgotten_meanwhile
from ctxproxy.proxy.identify import Caller
from ctxproxy.proxy.state import State

log = logging.getLogger("ctxproxy")
LOOKED_AT = 4
"""Sessions that are looked at for one that is told of: some have nothing to tell yet."""
MOST_FACTS = 300
"""Facts of the user that are looked through for what the block tells."""
GROWN = 4
"""A digest is made anew when a session has grown by one in so many messages: over a whole conversation it is read about five times."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A request that may be the first of its session."""

    caller: Caller
    history: Sequence[Message]
    window_tokens: int
    max_output: int | None
    count_text: CountText
    recall: bool


async def preload_for(state: State, settings: Settings, session: Session | None, opening: Opening) -> tuple[Message, ...]:
    """The messages that a session starts with; those of a new one are made, and kept before they are sent, so that all later requests have them."""
    if session is not None:
        return await stored_preload(state, session)
    key, wanted = opening.caller.key, settings.memory.preload
    if key is None or not _begins(opening) or not (wanted.sessions or wanted.chunks):
        return ()
    try:
        kept = await _made(state, settings, key, opening, wanted)
    except StoreUnavailable as error:
        log.warning("session %s begins without what is remembered of its user: %s", key.id, error.message)
        return ()
    return tuple(map(read, kept.messages)) if kept else ()


async def stored_preload(state: State, session: Session) -> tuple[Message, ...]:
    """What a session that is there has begun with."""
    kept = await state.store.carryover.preload(session.key) if session.user else None
    return tuple(map(read, kept.messages)) if kept else ()


def _begins(opening: Opening) -> bool:
    """Whether a conversation of a known user begins with the request, under a policy that may change it."""
    policy = opening.caller.policy
    passes = policy.observe or (policy.preset == "off" and policy.pipeline is None)
    return opening.caller.user != "" and not passes and not any(message.role == "assistant" for message in opening.history)


async def _made(state: State, settings: Settings, key: SessionKey, opening: Opening, wanted: Wanted) -> Preload | None:
    told: dict[SessionKey, Remembered] = {}
    for session in await state.store.of_user(key.tenant, opening.caller.user, wanted.sessions * LOOKED_AT):
        if len(told) < wanted.sessions and (text := await _told(state, session)):
            told[session.key] = Remembered(_day(settings, session.last_used), text)
    prompt_tokens = budget(opening.caller.policy, opening.window_tokens, opening.max_output, 0).prompt_tokens
    room, language = room_for(prompt_tokens), language_of(opening.history)
    facts = await _facts(state, settings, key.tenant, opening.caller.user)
    pieces = await state.store.chunks.hottest(key.tenant, opening.caller.user, wanted.chunks) if wanted.chunks else []
    past = Past(facts, [*told.values()], [Remembered(_day(settings, piece.created), piece.chunk.text) for piece in pieces])
    block = await asyncio.to_thread(block_of, past, room, opening.count_text, language)
    if block is None:
        return None
    now = state.clock()
    preload = Preload(tuple(message.raw for message in block.messages), block.items, now)
    sources = {*told, *(fact.session for fact in facts), *(piece.key for piece in pieces)}
    return await state.store.carryover.begin(OpenSession(key, now, recall=opening.recall, user=opening.caller.user), preload, sources)


def _day(settings: Settings, time_s: float) -> str:
    return f"{local_time(time_s, zone_of(settings.memory.timezone)):%Y-%m-%d}"


async def _facts(state: State, settings: Settings, tenant: str, user: str) -> list[MemoryPoint]:
    return await state.store.facts.of_user(tenant, user, MOST_FACTS) if settings.memory.facts else []


async def _told(state: State, session: Session) -> str:
    return told_of(await state.store.summaries(session.key, None), await state.store.carryover.digest(session.key))


async def carry_over(state: State, key: SessionKey, count_text: CountText, *, digest: bool, drop: bool) -> None:
    """Behind an answer: `digest`: keep for later sessions what was said; `drop`: what this one began with had to go after an overflow, for good."""
    with contextlib.suppress(StoreUnavailable):
        if drop:
            await state.store.carryover.drop_preload(key)
        if digest:
            await _keep_digest(state, key, count_text)


async def _keep_digest(state: State, key: SessionKey, count_text: CountText) -> None:
    """What was said in a session, in short, if it has grown enough since that was done last; of what no summary tells."""
    session, digest = await state.store.session(key), await state.store.carryover.digest(key)
    if session is None or not session.tip or not _is_due(session, digest):
        return
    told = {summary.tip for summary in await state.store.summaries(key, None)}
    rows = [row for row in _untold(await state.store.history(key, session.tip), told) if row.raw and row.tip not in session.forgotten]
    messages = [message for message in (from_log(row.raw) for row in rows) if not message.directives.never_summarize]
    language: Language = language_of(messages)
    text = await asyncio.to_thread(extract, messages, ITEM_TOKENS, count_text, language)
    await state.store.carryover.put_digest(key, Digest(session.tip, text, session.messages, state.clock()))
    await forgotten_meanwhile(state.store, key, session.tip, session.forgotten)


def _is_due(session: Session, digest: Digest | None) -> bool:
    return digest is None or session.messages - digest.messages >= max(1, digest.messages // GROWN)


def _untold(rows: Sequence[StoredMessage], told: set[str]) -> Sequence[StoredMessage]:
    """The messages behind the last one that a summary reaches up to."""
    start = next((at + 1 for at in range(len(rows) - 1, -1, -1) if rows[at].tip in told), 0)
    return rows[start:]
