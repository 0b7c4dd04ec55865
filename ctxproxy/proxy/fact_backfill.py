"""Conversations that were stored before facts were noted are read once, behind everything else, in the order in which they were used."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import NamedTuple

from ctxproxy.core.messages import Tip
from ctxproxy.core.records import SessionKey, StoredMessage
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.proxy.claims import claimed
from ctxproxy.proxy.fact_desk import FactDesk
from ctxproxy.proxy.memory_files import NO_FOLLOW

log = logging.getLogger("ctxproxy")
MARK, DONE = "facts.read", b"done\n"
"""A file under `data_dir` that says that it has been done; locked while it is."""
MOST_SESSIONS, PAGE = 1000, 100
MOST_BYTES = 4_000_000
"""Of one conversation, its newest messages."""


class _Stored(NamedTuple):
    """A session as it stands."""

    key: SessionKey
    user: str
    tip: Tip


async def read_earlier(store: Store, desk: FactDesk, data_dir: Path) -> None:
    """Have the facts noted of the sessions used last, of those that have none; what breaks off is begun anew at the next start. Never raises."""
    try:
        descriptor = os.open(data_dir / MARK, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o600)
        try:
            if not claimed(descriptor) or os.read(descriptor, len(DONE)):
                return
            if read := await _all_read(store, desk):
                log.info("the facts of %d earlier conversations were noted", read)
            os.write(descriptor, DONE)
        finally:
            os.close(descriptor)
    except (StoreUnavailable, OSError) as error:
        log.warning("earlier conversations could not be read for facts: %s", type(error).__name__)


async def _all_read(store: Store, desk: FactDesk) -> int:
    """How many had something to read; the oldest come first, since newer words end older ones."""
    found: list[_Stored] = []
    cursor: str | None = None
    while len(found) < MOST_SESSIONS:
        page = await store.sessions(PAGE, cursor, "")
        found += [_Stored(session.key, session.user, session.tip) for session in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            break
    return sum([await _was_read(store, desk, one) for one in reversed(found)])


async def _was_read(store: Store, desk: FactDesk, stored: _Stored) -> bool:
    if await store.facts.of(stored.key):
        return False
    rows = await _newest(store, stored.key, stored.tip)
    desk.note(stored.key, stored.user, rows)
    await desk.done(stored.key)
    return bool(rows)


async def _newest(store: Store, key: SessionKey, tip: Tip) -> list[StoredMessage]:
    """The newest messages of a history that are not too much together, oldest first."""
    found: list[StoredMessage] = []
    size = 0
    for row in reversed(await store.history(key, tip)):
        size += len(row.raw)
        if size > MOST_BYTES:
            break
        found.append(row)
    return found[::-1]
