"""What left a prompt is noted in the day's memory file: behind the answer, once, and never at its expense."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ctxproxy.config.policies import session_entry
from ctxproxy.config.schema import Settings
from ctxproxy.core.dues import DueNote
from ctxproxy.core.effects import DropDue, Effect, PutDue
from ctxproxy.core.event_notes import event_prompt, events_in
from ctxproxy.core.extractive import CountText
from ctxproxy.core.leavings import Leavings, leavings, ready_text
from ctxproxy.core.memory_notes import Note, is_nothing
from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import SessionKey, Summary
from ctxproxy.core.situation import Situation
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.proxy.claims import Claims
from ctxproxy.proxy.days import local_time, zone_of
from ctxproxy.proxy.memory_files import MemoryFiles
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.summary_desk import Asked, SummaryDesk
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
HEADINGS = {"trimmed": "Trimmed", "overflow": "Overflow", "by hand": "Compacted by hand"}


@dataclass(frozen=True, slots=True)
class ToNote:
    """What a note is of, and what was known when it left the prompt."""

    key: SessionKey
    user: str
    left: Leavings
    time: float
    tips: Sequence[Tip]
    """Of the history."""
    forgotten: frozenset[Tip]
    count_text: CountText
    summaries: Sequence[Summary] = ()
    wants: Tip = ROOT
    """A summary up to here is being written, whose words will do."""

    @property
    def dues(self) -> list[Effect]:
        """What is kept with the decision, so that the note is written though the process may be killed."""
        return [PutDue(self.key, DueNote(self.left.tips, self.left.reason, self.user, self.time))]

    @property
    def claim(self) -> str:
        """Who holds it is writing the note."""
        return f"note {self.key.tenant} {self.key.name} {self.left.tip}"


@dataclass(frozen=True, slots=True)
class Notes:
    """Writes the notes of all sessions; `begin` returns at once."""

    files: MemoryFiles
    store: Store
    desk: SummaryDesk
    metrics: Metrics
    tasks: Tasks
    claims: Claims
    clock: Callable[[], float]

    def to_note(self, settings: Settings, key: SessionKey, user: str, situation: Situation, plan: Plan) -> ToNote | None:
        """What the plan's decision takes out, if it takes out anything and notes are wanted."""
        left = leavings(situation, plan) if _wanted(settings, key) else None
        if left is None:
            return None
        known = situation.reconciled.tips, situation.forgotten, situation.count_text, [*situation.summaries]
        return ToNote(key, user, left, self.clock(), *known, plan.wants)

    def begin(self, settings: Settings, one: ToNote, asked: Callable[[], Asked] | None) -> None:
        """Write a note; `asked` gives how a model can be asked for it."""
        own = asked() if asked and settings.memory.daily_text == "events" and settings.summarizer.kind == "llm" else None
        self.tasks.start(self._written(settings, one, own), "memory file")

    async def catch_up(self, settings: Settings, key: SessionKey, due: DueNote, count_text: CountText) -> None:
        """Write a note that an earlier process has left undone, in words that are there; none that somebody is writing. Raises StoreUnavailable."""
        session, rows = await self.store.session(key), await self.store.history(key, due.tip)
        of_it = frozenset(due.tips)
        left = [(at, row) for at, row in enumerate(rows) if row.tip in of_it]
        if session is None or not left or not _wanted(settings, key):
            await self.store.apply([DropDue(key, "note", due.tip)])
            return
        leaving = Leavings(due.reason, tuple(row.tip for _, row in left), tuple(row.message for _, row in left), left[0][0])
        one = ToNote(key, due.user, leaving, due.time, [row.tip for row in rows], session.forgotten, count_text)
        if self.claims.is_free(one.claim):
            await self._written(settings, one, None)

    async def _written(self, settings: Settings, one: ToNote, asked: Asked | None) -> None:
        with self.claims.tried(one.claim):
            text = await self._events(one, asked) if asked else ""
            if not text:
                await self.desk.done(one.key, one.wants)  # one call serves both, the prompt and the note (000-15)
                text = await self._text(one)
            if is_nothing(text) or await self._put(settings, one, text):
                with contextlib.suppress(StoreUnavailable):
                    await self.store.apply([DropDue(one.key, "note", one.left.tip)])

    async def _put(self, settings: Settings, one: ToNote, text: str) -> bool:
        """Whether the note is in a file, or is not to be."""
        then = local_time(one.time, zone_of(settings.memory.timezone))
        note = Note(one.key.name, one.left.tip, f"{HEADINGS[one.left.reason]} {then:%H:%M}, session {one.key.id}", text)
        try:
            written = await self.files.add(one.key.tenant, one.user, f"{then:%Y-%m-%d}", note)
        except OSError as error:
            self.metrics.memory_notes.labels("failed").inc()
            log.warning("could not write a memory file of session %s: %s", one.key.id, error.strerror or type(error).__name__)
            return False
        self.metrics.memory_notes.labels("written" if written else "known").inc()
        await self._unless_gone(one)
        return True

    async def _unless_gone(self, one: ToNote) -> None:
        """Take a note out again whose session, or a message that it may tell of, was erased while it was being written."""
        with contextlib.suppress(StoreUnavailable, OSError):
            session = await self.store.session(one.key)
            if session is None:
                await self.files.erase([one.key])
            elif not (session.forgotten - one.forgotten).isdisjoint(one.tips):
                await self.files.forget(one.key, [one.left.tip])

    async def _events(self, one: ToNote, asked: Asked) -> str:
        """What happened, as a model tells it; "" if it tells nothing."""
        prompt = await asyncio.to_thread(event_prompt, one.left.messages, asked.window_tokens, one.count_text)
        draft = await self.desk.answer(prompt, asked)
        return events_in(draft.text) if draft else ""

    async def _text(self, one: ToNote) -> str:
        summaries = [*one.summaries]  # one made for a session's first request is not in the store
        with contextlib.suppress(StoreUnavailable):
            summaries += await self.store.summaries(one.key, one.left.tips)
        return await asyncio.to_thread(ready_text, one.left, one.tips, summaries, one.count_text)


def _wanted(settings: Settings, key: SessionKey) -> bool:
    entry = session_entry(settings, key)
    return settings.memory.daily_files and (entry is None or entry.daily_files)
