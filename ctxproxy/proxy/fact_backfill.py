"""Conversations with messages that were not read for facts (noting was off, or the process ended before) are read at the start, behind all else."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ctxproxy.core.points import Unread
from ctxproxy.core.records import Span
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.proxy.claims import claimed
from ctxproxy.proxy.fact_desk import FactDesk
from ctxproxy.proxy.memory_files import NO_FOLLOW

log = logging.getLogger("ctxproxy")
MARK = "facts.read"
"""A file under `data_dir` that is locked by who is at it."""
MOST_SESSIONS = 1000
MOST_BYTES = 4_000_000
"""Of one conversation, its newest messages."""


async def read_earlier(store: Store, desk: FactDesk, data_dir: Path) -> None:
    """Have what was not read of the sessions used last noted; what breaks off goes on at the next start. Never raises."""
    try:
        descriptor = os.open(data_dir / MARK, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o600)
        try:
            if not claimed(descriptor):
                return
            waiting = await store.facts.unread(MOST_SESSIONS)
            for one in reversed(waiting):  # the oldest come first, since newer words end older ones
                desk.note(one.session, one.user, await _newest(store, one))
                await desk.done(one.session)
            if waiting:
                log.info("%d earlier conversations were read for facts", len(waiting))
        finally:
            os.close(descriptor)
    except (StoreUnavailable, OSError) as error:
        log.warning("earlier conversations could not be read for facts: %s", type(error).__name__)


async def _newest(store: Store, unread: Unread) -> Span:
    """The newest messages that are not too much together; one at least, or it would wait for good."""
    after, size = unread.span.tip, 0
    for row in reversed(await store.history(unread.session, unread.span.tip)):
        size += len(row.raw)
        if row.tip == unread.span.after or (size > MOST_BYTES and after != unread.span.tip):
            break
        after = row.parent
    return Span(after, unread.span.tip)
