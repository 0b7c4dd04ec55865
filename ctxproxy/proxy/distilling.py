"""Makes `MEMORY.md` of the daily files of a session or user: when somebody asks for it, or each day at 23:55 (000-S15, 000-S16)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, TypeAlias

from ctxproxy.config.schema import Settings
from ctxproxy.core.distilling import Dated, Item, answered, by_rules, items_in, marks_of, read_in, request
from ctxproxy.core.records import SessionKey
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Tokenizer
from ctxproxy.proxy.days import local_time, until, zone_of
from ctxproxy.proxy.identify import target_for
from ctxproxy.proxy.memory_files import Entry
from ctxproxy.proxy.state import State
from ctxproxy.proxy.summary_desk import Asked

log = logging.getLogger("ctxproxy")
DAYS, MOST_DAYS = 3, 30
"""Of notes that are read, today's included (000-S16)."""
ATTEMPTS, PAUSE_S = 3, 60.0
"""How often a model is asked before the file is left as it is, and how long after a failure."""
HOUR, MINUTE = 23, 55
Result: TypeAlias = Literal["written", "unchanged", "no_notes", "nothing", "failed", "busy"]


@dataclass(frozen=True, slots=True)
class Distilled:
    """What came of it: `unchanged`: these very notes were read before; `nothing`: the model finds nothing worth keeping; `busy`: another process
    is at it.
    """

    result: Result
    notes: int = 0
    items: int = 0


class Distiller:
    """One folder at a time in one program, so that nothing is asked for twice."""

    def __init__(self, state: State, pause_s: float = PAUSE_S) -> None:
        self._state = state
        self._pause_s = pause_s

    def wait_s(self) -> float:
        """Until the next round that comes by itself."""
        return until(HOUR, MINUTE, self._state.clock(), zone_of(self._state.settings().memory.timezone))

    async def daily(self) -> None:
        """Distill every folder, if that is wanted each day. Never raises."""
        await self._round()

    async def make_up(self) -> None:
        """The last round that was due, if it did not come to its end: the program was not running, or was killed. Never raises."""
        await self._round(if_missed=True)

    async def _round(self, *, if_missed: bool = False) -> None:
        """The notes of days whose own rounds were missed are read, too."""
        settings, files, due = self._state.settings(), self._state.notes.files, self._due_day()
        if settings.memory.distill != "daily":
            return
        try:
            last = await files.last_round()
            if if_missed and last == due:
                return
            missed = max((due - last).days - 1, 0) if last else 0
            for tenant, folder in await files.folders():
                await self._told(settings, tenant, folder, min(DAYS + missed, MOST_DAYS))
            await files.note_round(due)
        except OSError as error:
            log.warning("memory could not be distilled: %s", type(error).__name__)

    def _due_day(self) -> date:
        """That of the last round that should have been by now."""
        now = local_time(self._state.clock(), zone_of(self._state.settings().memory.timezone))
        return now.date() - timedelta(days=(now.hour, now.minute) < (HOUR, MINUTE))

    async def _told(self, settings: Settings, tenant: str, folder: str, days: int) -> None:
        try:
            await self.folder(settings, tenant, folder, days)
        except (OSError, StoreUnavailable) as error:
            log.warning("memory could not be distilled: %s", type(error).__name__)

    async def folder(self, settings: Settings, tenant: str, folder: str, days: int) -> Distilled:
        """Distill the notes of a folder's newest days; what does not come out well leaves the file as it is. Raises OSError, StoreUnavailable."""
        async with self._state.distilling:
            with self._state.notes.files.distilling() as free:
                return await self._distilled(settings, tenant, folder, days) if free else Distilled("busy")

    async def _distilled(self, settings: Settings, tenant: str, folder: str, days: int) -> Distilled:
        entries, text = await self._state.notes.files.in_folder(tenant, folder)
        now = local_time(self._state.clock(), zone_of(settings.memory.timezone))
        first = f"{now - timedelta(days=days - 1):%Y-%m-%d}"
        notes = [Dated(entry.day, entry.note) for entry in entries if entry.day >= first]
        if not notes:
            return Distilled("no_notes")
        if marks_of(notes) <= read_in(text):
            return Distilled("unchanged", len(notes), len(items_in(text)))
        items = await self._items(settings, tenant, entries, notes, items_in(text))
        if not items:
            return Distilled("failed" if items is None else "nothing", len(notes), len(items_in(text)))
        told = f"{now:%Y-%m-%d %H:%M}: {len(notes)} notes read, {len(items_in(text))} items before"
        written = await self._state.notes.files.put_distilled(tenant, folder, items, marks_of(notes), told)
        return Distilled("written", len(notes), written)

    async def _items(
        self, settings: Settings, tenant: str, entries: Sequence[Entry], notes: Sequence[Dated], items: Sequence[Item]
    ) -> list[Item] | None:
        """The new list; None if the model gave none in all attempts."""
        session = await self._state.store.session(SessionKey(tenant, entries[-1].note.session))
        model = settings.summarizer.model or (session.model if session else "")
        tokenizer = await self._state.gauges.tokenizer(settings, model)
        if settings.summarizer.kind != "llm" or not model:
            return await asyncio.to_thread(by_rules, notes, items, tokenizer.count)
        asked = self._asking(settings, model, tokenizer)
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(self._pause_s)
            found = await self._answered(asked, notes, items)
            if found is not None:
                return found
        return None

    async def _answered(self, asked: Asked, notes: Sequence[Dated], items: Sequence[Item]) -> list[Item] | None:
        prompt = await asyncio.to_thread(request, notes, items, asked.window_tokens, asked.tokenizer.count)
        draft = await self._state.summaries.answer(prompt, asked)
        return answered(draft.text, notes, items) if draft else None

    def _asking(self, settings: Settings, model: str, tokenizer: Tokenizer) -> Asked:
        """The configured summarizer, else the upstream with the configured key: no client is there whose credential could be taken."""
        own, target = settings.summarizer, target_for(settings, model)
        key = own.api_key or ("" if own.base_url else target.api_key)
        window = self._state.windows.belief(target.origin, model, settings.models).window
        credentials = [("Authorization", f"Bearer {key}")] if key else []
        return Asked(own.base_url or target.base_url, model, credentials, window, tokenizer, own.timeout_s)
