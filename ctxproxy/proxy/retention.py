"""Sessions that were not used for `sessions.retention_days` are erased: from the store, from the memory files, from the file's free space."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from ctxproxy.config.schema import Settings
from ctxproxy.core.effects import OpenSession
from ctxproxy.core.records import Owned, Session
from ctxproxy.errors import StoreUnavailable
from ctxproxy.proxy.state import State

log = logging.getLogger("ctxproxy")
DAY_S = 86_400.0
EVERY_S = 3600.0
"""How often is looked for them, beside the program's start."""
BATCH = 50
"""Sessions that are erased in one transaction."""


class Sweeper:
    """Looks for them; the file is compacted after the first round that erased something, later at most once a day: other writes wait for that."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._compacted_at = float("-inf")
        self._traces = False

    async def sweep(self) -> int:
        """Erase what is due; how many sessions that were. Never raises."""
        erased = 0
        try:
            erased = await self._erased()
            await self._compacted()
        except StoreUnavailable as error:
            log.warning("sessions that are not used any more could not be erased: %s", error.message)
        except OSError as error:
            log.warning("memory files of sessions that are not used any more could not be erased: %s", error.strerror or type(error).__name__)
        return erased

    async def _erased(self) -> int:
        days = self._state.settings().sessions.retention_days
        if days is None:
            return 0
        before, erased = self._state.clock() - days * DAY_S, 0
        while batch := await self._state.store.retention.unused(before, BATCH):
            done = await self._gone(batch, before)
            erased += done
            if not done:
                break
        if erased:
            log.info("erased %d sessions that were not used for %d days", erased, days)
        return erased

    async def _gone(self, batch: list[Owned], before: float) -> int:
        keys = [owned.key for owned in batch]
        done = sum(await self._state.eraser.around(keys, lambda: asyncio.gather(*(self._state.store.retention.erase(key, before) for key in keys))))
        self._state.metrics.expired.inc(done)
        self._traces = self._traces or done > 0
        return done

    async def _compacted(self) -> None:
        now = self._state.clock()
        if self._traces and now - self._compacted_at >= DAY_S:
            await self._state.store.retention.compact()
            self._compacted_at, self._traces = now, False


async def awake(state: State, settings: Settings, session: Session | None) -> Session | None:
    """The session of a request that has just come, noted as used if it was not for a day: no sweep, of whichever process, takes it away then.

    `last_used` stays what it was before. None if it was erased at this very moment.
    """
    now = state.clock()
    if session is None or now - session.last_used < DAY_S or settings.sessions.retention_days is None:
        return session
    try:
        await state.store.apply([OpenSession(session.key, now, recall=session.recall)])
    except StoreUnavailable:
        return session  # a full disk: there nothing is erased either
    found = await state.store.session(session.key)
    return replace(found, last_used=session.last_used) if found else None
