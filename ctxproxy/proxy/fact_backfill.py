"""Conversations with messages that were not read for facts (noting was off, or the process ended before) are read at the start, behind all else."""

from __future__ import annotations

import logging

from ctxproxy.core.points import Unread
from ctxproxy.core.records import Span
from ctxproxy.ports import Store
from ctxproxy.proxy.fact_desk import FactDesk

log = logging.getLogger("ctxproxy")
MOST_SESSIONS = 1000
MOST_BYTES = 4_000_000
"""Of one conversation, its newest messages."""


async def read_earlier(store: Store, desk: FactDesk) -> None:
    """Have what was not read of the sessions used last noted; what breaks off goes on at the next start. Raises StoreUnavailable."""
    waiting = await store.facts.unread(MOST_SESSIONS)
    for one in reversed(waiting):  # the oldest come first, since newer words end older ones
        desk.note(one.session, one.user, await _newest(store, one))
        await desk.done(one.session)
    if waiting:
        log.info("%d earlier conversations were read for facts", len(waiting))


async def _newest(store: Store, unread: Unread) -> Span:
    """The newest messages that are not too much together; one at least, or it would wait for good."""
    after, size = unread.span.tip, 0
    for row in reversed(await store.history(unread.session, unread.span.tip)):
        size += len(row.raw)
        if row.tip == unread.span.after or (size > MOST_BYTES and after != unread.span.tip):
            break
        after = row.parent
    return Span(after, unread.span.tip)
