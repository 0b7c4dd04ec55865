"""Looks up all that is needed to say where a phrase went: the whole log, and what the next request on each branch would carry."""

from __future__ import annotations

import asyncio

from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.phrases import phrase_of
from ctxproxy.core.plan import plan
from ctxproxy.core.records import Session
from ctxproxy.core.sightings import Sightings
from ctxproxy.core.why import View, Why, explain
from ctxproxy.errors import BadRequest
from ctxproxy.ports import Store
from ctxproxy.proxy.prepare import stored_situation
from ctxproxy.proxy.state import State

PAGE_MESSAGES = 256
"""Of the log, in memory at a time."""
MOST_TOLD = 50
"""Messages that are told of."""
MOST_BRANCHES = 20
"""A plan is made for each branch that is told of; of messages on further ones only the number is told."""


async def trace(state: State, session: Session, text: str, most: int = MOST_TOLD) -> Why:
    """Where a phrase went in a session; raises BadRequest for a text that nothing can be looked for with, StoreUnavailable."""
    try:
        phrase = phrase_of(text)
    except ValueError as error:
        raise BadRequest(f"text {error}: give some words that were said, or the name of a file", param="text") from None
    seen, after = Sightings(phrase, most), 0
    while True:
        page = await state.store.log(session.key, after, PAGE_MESSAGES)
        await asyncio.to_thread(seen.add, page.messages)
        if page.following is None:
            break
        after = page.following
    current = await current_branch(state.store, session)
    leaves = await state.store.leaves(session.key)
    branches = dict.fromkeys([current, *(one.branch for one in seen.placed([current, *leaves]))])
    views = {tip: await _view(state, session, tip) for tip in list(branches)[:MOST_BRANCHES]}
    return await asyncio.to_thread(explain, phrase, session, seen, views, await state.store.pins(session.key))


async def current_branch(store: Store, session: Session) -> Tip:
    """Where the conversation stands; for one that never got an answer, the branch written last."""
    leaves = [] if session.tip != ROOT else await store.leaves(session.key)
    return leaves[0] if leaves else session.tip


async def _view(state: State, session: Session, tip: Tip) -> View:
    situation = await stored_situation(state, state.settings(), session, tip)
    return View(situation, await asyncio.to_thread(plan, situation))
