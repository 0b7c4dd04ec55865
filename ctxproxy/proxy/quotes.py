"""What an answer made use of, of all that was recalled for it, is noted behind it: it counts for more when it is looked for again (003-50)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Sequence

from ctxproxy.core.messages import Message, text_of
from ctxproxy.core.planned import Plan
from ctxproxy.core.quoting import heard, quotes
from ctxproxy.core.records import SessionKey
from ctxproxy.core.text_index import Place
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy.state import State


async def note_quotes(state: State, plan: Plan, replies: Sequence[Message]) -> None:
    """Count the recalled pieces that any of the replies quotes; a store that does not answer loses no more than that."""
    found = await asyncio.to_thread(_quoted, plan, replies)
    with contextlib.suppress(StoreUnavailable):
        for key, places in found.items():
            await state.store.chunks.note_quoted(key, places)


def _quoted(plan: Plan, replies: Sequence[Message]) -> dict[SessionKey, list[Place]]:
    asked = text_of(plan.transcript.entries[plan.transcript.last_user].message)
    said = [heard(text_of(reply), asked) for reply in replies]
    found: dict[SessionKey, list[Place]] = defaultdict(list)
    for piece in plan.brought:
        if any(quotes(one, piece.text) for one in said):
            found[piece.key].append(piece.place)
    return found
