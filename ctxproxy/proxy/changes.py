"""What somebody may have changed in a session, by the admin API or by a command: pins, compaction, forgetting, clearing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as with_keys

from ctxproxy.core.effects import Choose, Effect, MadeOf, PutCheckpoint, PutPin
from ctxproxy.core.messages import Tip
from ctxproxy.core.phrases import Phrase
from ctxproxy.core.plan import compacted_now
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import Pin, Session, SessionKey, StoredMessage
from ctxproxy.core.situation import Situation, recent_turns
from ctxproxy.ports import Store
from ctxproxy.proxy.prepare import stored_message
from ctxproxy.proxy.state import State

KEPT_TURNS = 2
"""Of a compaction by hand (000-S11)."""
PAGE_MESSAGES = 256
"""Of the log, in memory at a time."""
CLEARED_BRANCHES = 100
"""So many branches of a session stay cleared, those that were cleared last."""


async def pinned(state: State, key: SessionKey, text: str, before: Sequence[Effect] = ()) -> Pin:
    """The pin that a text is kept under from now on; the one that it has already, if there is one."""
    async with state.claims.held(f"pins {key.tenant} {key.name}"):  # else two at once would take the same number
        pins = await state.store.pins(key)
        known = next((pin for pin in pins if pin.text == text), None)
        pin = known or Pin(max((p.number for p in pins), default=0) + 1, text, state.clock())
        await state.store.apply([*before, *([] if known else [PutPin(key, pin)])])
        return pin


async def compacted(state: State, key: SessionKey, user: str, situation: Situation, before: Sequence[Effect] = ()) -> Plan:
    """The plan of a compaction that was asked for, kept if it made the prompt shorter; only the newest turns are sure to stay whole."""
    keep = min(recent_turns(situation), KEPT_TURNS)
    by_hand = replace(situation, policy=with_keys(situation.policy, keep_recent_turns=keep))
    planned = await asyncio.to_thread(compacted_now, by_hand)
    if planned.checkpoint is not None:
        leaves = state.notes.to_note(state.settings(), key, user, by_hand, planned)
        made_of = MadeOf(key, situation.forgotten, tuple(situation.pins))
        await state.store.apply([*before, made_of, PutCheckpoint(key, planned.checkpoint), *(leaves.dues if leaves else ())])
        if leaves:
            state.notes.begin(state.settings(), leaves, None)
    return planned


def clearing(key: SessionKey, session: Session | None, tips: Sequence[Tip]) -> list[Effect]:
    """What it takes that nothing of a history is sent any more."""
    on_it = frozenset(tips)
    elsewhere = [tip for tip in session.cleared if tip not in on_it] if session else []
    return [Choose(key, cleared=(*elsewhere, tips[-1])[-CLEARED_BRANCHES:])] if tips else []


async def tips_holding(store: Store, key: SessionKey, phrase: Phrase) -> list[Tip]:
    """The messages of any branch that hold a phrase."""
    found: list[Tip] = []
    after: int | None = 0
    while after is not None:
        page = await store.log(key, after, PAGE_MESSAGES)
        found += await asyncio.to_thread(_holding, page.messages, phrase)
        after = page.following
    return found


def _holding(rows: Sequence[StoredMessage], phrase: Phrase) -> list[Tip]:
    return [row.tip for row in rows if row.raw and phrase.in_message(stored_message(row))]
