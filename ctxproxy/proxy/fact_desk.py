"""What is worth knowing of newly stored messages is noted behind the answers: one session's in order, never on a request's path."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ctxproxy.core.memory_points import Told, changes
from ctxproxy.core.messages import Tip
from ctxproxy.core.points import MemoryPoint, Point, PointChanges
from ctxproxy.core.records import Session, SessionKey, StoredMessage
from ctxproxy.core.wire import from_log
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
HEARD_BEFORE = 2
"""Of the messages read before, the user's that a remark in the next ones may mean."""
MOST_WAITING = 100
"""Of one session: where the store is slower than its conversation, what is older is not noted."""
MOST_OF_USER = 300
"""Points of a user's other sessions that new words are compared with."""


@dataclass(frozen=True, slots=True)
class _Job:
    """Messages of a session that were stored, or points that came with a summary of it; `tip` is the last message that it is about."""

    tip: Tip
    user: str = ""
    rows: tuple[StoredMessage, ...] = ()
    before: tuple[Told, ...] = ()
    points: tuple[Point, ...] = ()

    @property
    def size_bytes(self) -> int:
        """What it holds in memory."""
        return sum(len(row.raw) for row in self.rows)


@dataclass(slots=True)
class _Line:
    """What waits for one session, and the task that does it."""

    jobs: deque[_Job]
    work: asyncio.Task[None]


def _batches(rows: Sequence[StoredMessage]) -> Iterator[list[StoredMessage]]:
    """Messages in order, as many at once as may be read."""
    batch: list[StoredMessage] = []
    size = 0
    for row in rows:
        size += len(row.raw)
        if batch and size > AT_ONCE_BYTES:
            yield batch
            batch, size = [], len(row.raw)
        batch.append(row)
    if batch:
        yield batch


def _together(first: _Job, second: _Job) -> _Job | None:
    """Messages that follow each other as one job; None where they are too many, or of two users, or something else is to be done."""
    if not (first.rows and second.rows) or first.user != second.user or second.rows[0].parent != first.tip:
        return None
    if first.size_bytes + second.size_bytes > AT_ONCE_BYTES:
        return None
    return replace(first, tip=second.tip, rows=(*first.rows, *second.rows))


class FactDesk:
    """Reads messages in a thread and writes what they tell; a failure is logged and counted, and nobody else hears of it. An `erasing.Part`."""

    def __init__(self, store: Store, readings: Readings, metrics: Metrics, tasks: Tasks, lull: Lull) -> None:
        self._store = store
        self._readings = readings
        self._metrics = metrics
        self._tasks = tasks
        self._lull = lull
        self._lines: dict[SessionKey, _Line] = {}
        self._writing = asyncio.Lock()
        """Held while a job is done."""

    def note(self, key: SessionKey, user: str, rows: Sequence[StoredMessage], before: Sequence[Told] = ()) -> None:
        """Have these messages read; `before` are user messages right before them that a remark may mean. Returns at once."""
        for batch in _batches(rows):
            self._add(key, _Job(batch[-1].tip, user, tuple(batch), tuple(before)))
            heard = [row for row in batch if row.role == "user" and row.raw][-HEARD_BEFORE:]
            before = [Told(row.tip, from_log(row.raw), row.created) for row in heard] or before

    def note_summary(self, key: SessionKey, tip: Tip, points: Sequence[Point]) -> None:
        """Have the points kept that came with a summary of the history up to `tip`; returns at once."""
        if points:
            self._add(key, _Job(tip, points=tuple(points)))

    async def done(self, key: SessionKey) -> None:
        """Wait until nothing waits for a session any more."""
        if line := self._lines.get(key):
            await asyncio.wait([line.work])

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Note nothing more of these sessions; what is just being written is waited for."""
        for key in keys:
            if line := self._lines.get(key):
                self._lull.hold(-sum(job.size_bytes for job in line.jobs))
                line.jobs.clear()
        async with self._writing:
            return

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        """Nothing: each job looks for itself what was forgotten before and while it was done."""

    def _add(self, key: SessionKey, job: _Job) -> None:
        self._lull.hold(job.size_bytes)
        line = self._lines.get(key)
        if line is None:
            jobs = deque([job])
            self._lines[key] = _Line(jobs, self._tasks.start(self._work(key, jobs), "facts"))
            return
        if line.jobs and (both := _together(line.jobs[-1], job)):
            line.jobs[-1] = both
            return
        if len(line.jobs) >= MOST_WAITING:
            self._lull.hold(-line.jobs.popleft().size_bytes)
            self._metrics.memory_points.labels("left_out").inc()
        line.jobs.append(job)

    async def _work(self, key: SessionKey, jobs: deque[_Job]) -> None:
        """Do all that waits for a session, one after the other."""
        try:
            while jobs:
                async with self._lull.piece(), self._writing:
                    if jobs:
                        job = jobs.popleft()
                        self._lull.hold(-job.size_bytes)
                        await self._do(key, job)
        finally:
            del self._lines[key]

    async def _do(self, key: SessionKey, job: _Job) -> None:
        try:
            session = await self._store.session(key)
            if session is None or not await self._is_of(session, job):
                return
            found = PointChanges(job.points) if job.points else await self._read(key, job, session.forgotten)
            if found and await self._store.facts.put(key, job.user or session.user, found):
                self._metrics.memory_points.labels("summary" if job.points else "rules").inc(len(found.new))
                await forgotten_meanwhile(self._store, key, job.tip, session.forgotten)
        except StoreUnavailable as error:
            self._metrics.memory_points.labels("failed").inc()
            log.warning("could not note the facts of session %s: %s", key.id, error.message)
        except Exception as error:
            self._metrics.memory_points.labels("failed").inc()
            log.exception("reading the facts of a session failed: %s", type(error).__name__)

    async def _is_of(self, session: Session, job: _Job) -> bool:
        """Whether what a job is about is there still: another process may have erased it, and the session may have been begun anew since."""
        if job.rows:
            return job.rows[-1].created >= session.created or await self._store.known(session.key, [job.tip]) > 0
        return bool(await self._store.summaries(session.key, [job.tip]))

    async def _read(self, key: SessionKey, job: _Job, forgotten: Collection[Tip]) -> PointChanges:
        rows = [row for row in job.rows if row.raw and not row.partial and row.tip not in forgotten]
        fresh = [Told(row.tip, from_log(row.raw), row.created) for row in rows]
        heard = any(one.message.role == "user" for one in fresh)
        held = await self._held(key, job.user) if heard else []  # what users say may end something, what others say cannot
        return await asyncio.to_thread(changes, fresh, job.before, held, key, self._readings)

    async def _held(self, key: SessionKey, user: str) -> list[MemoryPoint]:
        """What is in force in the session and in its user's others, oldest first."""
        own = [one for one in await self._store.facts.of(key) if one.in_force]
        others = await self._store.facts.of_user(key.tenant, user, MOST_OF_USER) if user else []
        return sorted((*own, *(one for one in others if one.session != key)), key=lambda one: one.point.time)
