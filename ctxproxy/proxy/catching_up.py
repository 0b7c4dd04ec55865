"""What a process that was killed has left undone behind its answers is done at the next start, behind all else: the store tells what that is.

One process at a time is at it. What another one has not done yet but is about to may be done twice; each work finds then that it is done.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from ctxproxy.core.dues import DueNote, DuePoints
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy.fact_backfill import read_earlier
from ctxproxy.proxy.preloading import carry_over
from ctxproxy.proxy.state import State

log = logging.getLogger("ctxproxy")
CLAIM = "catching up"
MOST_DUES = 10_000
MOST_INDEXED = 1000
"""Sessions, those used last, that are looked at for what the search index lacks."""
MOST_CARRIED = 100
"""Sessions, those used last, of which what passes to later ones may lack the last turns: it is made right behind the answer."""


async def catch_up(state: State) -> None:
    """Do all that waits in the store; what breaks off goes on at the next start. Never raises."""
    with state.claims.tried(CLAIM) as free:
        for name, work in WORKS.items() if free else ():
            try:
                await work(state)
            except StoreUnavailable as error:
                log.warning("%s could not be caught up with: %s", name, error.message)


async def _facts(state: State) -> None:
    """What the messages tell first: what a summary tells of them is newer."""
    if not state.settings().memory.facts:
        return
    await read_earlier(state.store, state.facts)
    for key, due in await state.store.dues(MOST_DUES):
        if isinstance(due, DuePoints):
            state.facts.note_summary(key, due.tip, due.points)


async def _notes(state: State) -> None:
    settings = state.settings()
    for key, due in await state.store.dues(MOST_DUES):
        if isinstance(due, DueNote):
            session = await state.store.session(key)
            tokenizer = await state.gauges.tokenizer(settings, session.model if session else "")
            await state.notes.catch_up(settings, key, due, tokenizer.count)


async def _index(state: State) -> None:
    if state.settings().retrieval.kind != "off":
        for key in await state.store.chunks.behind(MOST_INDEXED):
            await state.index.catch_up(key)


async def _digests(state: State) -> None:
    settings = state.settings()
    if not settings.memory.preload.sessions:
        return
    for session in (await state.store.sessions(MOST_CARRIED, None, "")).sessions:
        if session.user:
            tokenizer = await state.gauges.tokenizer(settings, session.model)
            await carry_over(state, session.key, tokenizer.count, digest=True, drop=False)


WORKS: Mapping[str, Callable[[State], Awaitable[None]]] = MappingProxyType(
    {"facts": _facts, "memory files": _notes, "the search index": _index, "what later sessions begin with": _digests}
)
