"""What left a prompt is noted in the day's memory file: behind the answer, once, and never at its expense."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from ctxproxy.config.policies import session_entry
from ctxproxy.config.schema import Settings
from ctxproxy.core.event_notes import event_prompt, events_in
from ctxproxy.core.leavings import Leavings, leavings, ready_text
from ctxproxy.core.memory_notes import Note, is_nothing
from ctxproxy.core.messages import Tip
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import SessionKey
from ctxproxy.core.situation import Situation
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.proxy.days import local_time, zone_of
from ctxproxy.proxy.memory_files import MemoryFiles
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.summary_desk import Asked, SummaryDesk
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
HEADINGS = {"trimmed": "Trimmed", "overflow": "Overflow", "by hand": "Compacted by hand"}


@dataclass(frozen=True, slots=True)
class _Ways:
    """How a note comes by its text: the summary that is being written up to `wants`, or a call of its own."""

    wants: Tip
    asked: Asked | None


@dataclass(frozen=True, slots=True)
class Notes:
    """Writes the notes of all sessions; `begin` returns at once."""

    files: MemoryFiles
    store: Store
    desk: SummaryDesk
    metrics: Metrics
    tasks: Tasks
    clock: Callable[[], float]

    def begin(self, settings: Settings, key: SessionKey, user: str, situation: Situation, plan: Plan, asked: Callable[[], Asked] | None) -> None:
        """Note what the plan's decision takes out, if it takes out anything and notes are wanted; `asked` gives how a model can be asked for it."""
        entry = session_entry(settings, key)
        wanted = settings.memory.daily_files and (entry is None or entry.daily_files)
        left = leavings(situation, plan) if wanted else None
        if left is not None:
            own = asked() if asked and settings.memory.daily_text == "events" and settings.summarizer.kind == "llm" else None
            self.tasks.start(self._written(settings, key, user, situation, left, _Ways(plan.wants, own)), "memory file")

    async def _written(self, settings: Settings, key: SessionKey, user: str, situation: Situation, left: Leavings, ways: _Ways) -> None:
        text = await self._events(situation, left, ways.asked) if ways.asked else ""
        if not text:
            await self.desk.done(key, ways.wants)  # one call serves both, the prompt and the note (000-15)
            text = await self._text(key, situation, left)
        if is_nothing(text):
            return
        now = local_time(self.clock(), zone_of(settings.memory.timezone))
        note = Note(key.name, left.tip, f"{HEADINGS[left.reason]} {now:%H:%M}, session {key.id}", text)
        try:
            written = await self.files.add(key.tenant, user, f"{now:%Y-%m-%d}", note)
        except OSError as error:
            self.metrics.memory_notes.labels("failed").inc()
            log.warning("could not write a memory file of session %s: %s", key.id, error.strerror or type(error).__name__)
            return
        self.metrics.memory_notes.labels("written" if written else "known").inc()
        await self._unless_gone(key, situation, left)

    async def _unless_gone(self, key: SessionKey, situation: Situation, left: Leavings) -> None:
        """Take a note out again whose session, or a message that it may tell of, was erased while it was being written."""
        with contextlib.suppress(StoreUnavailable, OSError):
            session = await self.store.session(key)
            if session is None:
                await self.files.erase([key])
            elif not (session.forgotten - situation.forgotten).isdisjoint(situation.reconciled.tips):
                await self.files.forget(key, [left.tip])

    async def _events(self, situation: Situation, left: Leavings, asked: Asked) -> str:
        """What happened, as a model tells it; "" if it tells nothing."""
        prompt = await asyncio.to_thread(event_prompt, left.messages, asked.window_tokens, situation.count_text)
        draft = await self.desk.answer(prompt, asked)
        return events_in(draft.text) if draft else ""

    async def _text(self, key: SessionKey, situation: Situation, left: Leavings) -> str:
        summaries = [*situation.summaries]  # one made for a session's first request is not in the store
        with contextlib.suppress(StoreUnavailable):
            summaries += await self.store.summaries(key, left.tips)
        return await asyncio.to_thread(ready_text, left, situation.reconciled.tips, summaries, situation.count_text)
