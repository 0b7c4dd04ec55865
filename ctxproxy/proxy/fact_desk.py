"""What is worth knowing of newly stored messages is noted behind the answers: one session's in order, never on a request's path.

Nothing of the messages is held while they wait: they are read from the store when their time has come. The store knows how far each
conversation was read, and which points of summaries are due, so that what still waits when the process ends is done after the next start
(`catching_up`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ctxproxy.core.effects import DropDue
from ctxproxy.core.memory_points import REMARKED, Told, changes
from ctxproxy.core.messages import Tip
from ctxproxy.core.points import MemoryPoint, Point, PointChanges
from ctxproxy.core.records import Session, SessionKey, Span, StoredMessage
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.proxy.counting import Readings
from ctxproxy.proxy.erasing import forgotten_meanwhile
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
AT_ONCE_BYTES = 65_536
"""Of messages that are read in one go: a tenth of a second of a thread, which gives way to requests in between."""
MOST_OF_USER = 300
"""Points of a user's other sessions that new words are compared with."""


@dataclass(frozen=True, slots=True)
class _Job:
    """Messages of a session that were stored, or points that came with a summary of its history up to the span's end."""

    span: Span
    user: str = ""
    points: tuple[Point, ...] = ()


def _together(first: _Job, second: _Job) -> _Job | None:
    """Messages that follow each other as one job; None where something else is to be done, or another user said them."""
    if first.points or second.points or first.user != second.user or first.span.tip != second.span.after:
        return None
    return replace(first, span=Span(first.span.after, second.span.tip))


class FactDesk:
    """Reads messages in a thread and writes what they tell; a failure is logged and counted, and nobody else hears of it. An `erasing.Part`."""

    def __init__(self, store: Store, readings: Readings, metrics: Metrics, tasks: Tasks, lull: Lull) -> None:
        self._store = store
        self._readings = readings
        self._metrics = metrics
        self._tasks = tasks
        self._lull = lull
        self._lines: dict[SessionKey, deque[_Job]] = {}
        self._failed: dict[SessionKey, _Job] = {}
        """Messages that were not read, for the store did not answer: they are read with the session's next ones."""
        self._ended: dict[SessionKey, asyncio.Event] = {}
        self._work: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        """Held while a job is done."""

    def note(self, key: SessionKey, user: str, span: Span) -> None:
        """Have these messages read; returns at once."""
        if failed := self._failed.pop(key, None):
            self._add(key, failed)
        self._add(key, _Job(span, user))

    def note_summary(self, key: SessionKey, tip: Tip, points: Sequence[Point]) -> None:
        """Have the points kept that came with a summary of the history up to `tip`; returns at once."""
        if points:
            self._add(key, _Job(Span(tip, tip), points=tuple(points)))

    async def done(self, key: SessionKey) -> None:
        """Wait until nothing waits for a session any more."""
        if key in self._lines:
            await self._ended.setdefault(key, asyncio.Event()).wait()

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Note nothing more of these sessions; what is just being written is waited for."""
        for key in keys:
            self._failed.pop(key, None)
            if line := self._lines.get(key):
                line.clear()
        async with self._writing:
            return

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        """Nothing: each job looks for itself what was forgotten before and while it was done."""

    def _add(self, key: SessionKey, job: _Job) -> None:
        line = self._lines.setdefault(key, deque())
        if line and (both := _together(line[-1], job)):
            line[-1] = both
        else:
            line.append(job)
        if self._work is None:
            self._work = self._tasks.start(self._do_all(), "facts")

    async def _do_all(self) -> None:
        """Do all that waits, one session's in order, the sessions by turns."""
        try:
            while self._lines:
                async with self._lull.piece(), self._writing:
                    await self._do_one(next(iter(self._lines)))
        finally:
            self._work = None

    async def _do_one(self, key: SessionKey) -> None:
        """A piece of a session's first job; the session then waits behind the others."""
        line = self._lines[key]
        if line and (rest := await self._do(key, line.popleft())):
            line.appendleft(rest)
        del self._lines[key]
        if line:
            self._lines[key] = line
        elif ended := self._ended.pop(key, None):
            ended.set()

    async def _do(self, key: SessionKey, job: _Job) -> _Job | None:
        """What is left of a job when a piece of it is done."""
        try:
            session = await self._store.session(key)
            if session is None:
                return None
            return await (self._keep(session, job) if job.points else self._read(session, job))
        except StoreUnavailable as error:
            self._metrics.memory_points.labels("failed").inc()
            if not job.points:
                self._failed[key] = job
            log.warning("could not note the facts of session %s: %s", key.id, error.message)
        except Exception as error:
            self._metrics.memory_points.labels("failed").inc()
            log.exception("reading the facts of a session failed: %s", type(error).__name__)
        return None

    async def _keep(self, session: Session, job: _Job) -> None:
        """The points of a summary, if that is there still: the session may have been begun anew since."""
        tip = job.span.tip
        if await self._store.summaries(session.key, [tip]):
            await self._put(session, job.user, PointChanges(job.points), tip, "summary")
        await self._store.apply([DropDue(session.key, "points", tip)])

    async def _read(self, session: Session, job: _Job) -> _Job | None:
        rows = await self._store.span(session.key, job.span, AT_ONCE_BYTES)
        if not rows:
            return None
        read_to = rows[-1].tip
        await self._put(session, job.user, await self._changes(session, job, rows), read_to, "rules")
        return None if read_to == job.span.tip else replace(job, span=Span(read_to, job.span.tip))

    async def _put(self, session: Session, user: str, found: PointChanges, tip: Tip, source: str) -> None:
        read_to = tip if source == "rules" else ""
        if await self._store.facts.put(session.key, user or session.user, found, read_to) and found:
            self._metrics.memory_points.labels(source).inc(len(found.new))
            await forgotten_meanwhile(self._store, session.key, tip, session.forgotten)

    async def _changes(self, session: Session, job: _Job, rows: Sequence[StoredMessage]) -> PointChanges:
        fresh = _told(session, rows)
        if not any(one.message.role == "user" for one in fresh):  # what users say may end something, what others say cannot
            return await asyncio.to_thread(changes, fresh, (), [], session.key, self._readings)
        before = _told(session, await self._store.heard(session.key, job.span.after, REMARKED))
        held = await self._held(session.key, job.user)
        return await asyncio.to_thread(changes, fresh, before, held, session.key, self._readings)

    async def _held(self, key: SessionKey, user: str) -> list[MemoryPoint]:
        """What is in force in the session and in its user's others, oldest first."""
        own = [one for one in await self._store.facts.of(key) if one.in_force]
        others = await self._store.facts.of_user(key.tenant, user, MOST_OF_USER) if user else []
        return sorted((*own, *(one for one in others if one.session != key)), key=lambda one: one.point.time)


def _told(session: Session, rows: Sequence[StoredMessage]) -> list[Told]:
    """What these messages say, but for what broke off and what is not to be known any more."""
    return [Told(row.tip, row.message, row.created) for row in rows if row.raw and not row.partial and row.tip not in session.forgotten]
