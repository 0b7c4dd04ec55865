"""The search index is written behind the answers; what is not in it yet is found all the same, in the request's own history.

Nothing of the messages is held while they wait: they are read from the store when their time has come.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from ctxproxy.core.messages import ROOT, Message, Tip
from ctxproxy.core.records import Session, SessionKey, Span, StoredMessage, Summary
from ctxproxy.core.sessions import Reconciled
from ctxproxy.core.text_index import Postings
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.proxy.cut_pieces import Cut, WaitingSummary, cut_all, newest_of, pieces_of_rows, pieces_of_summary, with_waiting
from ctxproxy.proxy.erasing import forgotten_meanwhile
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
AT_ONCE_BYTES = 32_768
"""Of messages that are cut and written in one go: a few dozen milliseconds of a thread and of the store's writer, no answer waits longer."""
CUT_BYTES = 1_000_000
"""Of messages that were cut for a search and wait still, over all sessions: what they were cut into takes six to ten times as much, of Chinese 24."""
KNOWN_SESSIONS = 10_000
"""Of how many sessions is remembered that their whole history is in the index or waits for it."""


@dataclass(slots=True)
class _Stretch:
    """Messages that wait: those of the log behind `after` up to `tip`; so many messages of users stand before them."""

    after: Tip
    tip: Tip
    turn: int


@dataclass(slots=True)
class _Waiting:
    """What waits of one session."""

    stretches: list[_Stretch] = field(default_factory=list)
    summaries: dict[Tip, WaitingSummary] = field(default_factory=dict)

    def add(self, span: Span, turn: int) -> None:
        last = self.stretches[-1] if self.stretches else None
        if last and last.tip == span.after:
            last.tip = span.tip
        else:
            self.stretches.append(_Stretch(span.after, span.tip, turn))

    def written(self, stretch: _Stretch, rows: Sequence[StoredMessage]) -> None:
        """The first messages of a stretch wait no more; without any, none of it does: the log does not have it."""
        stretch.after = rows[-1].tip if rows else stretch.tip
        stretch.turn += sum(row.role == "user" for row in rows)
        if stretch.after == stretch.tip and stretch in self.stretches:
            self.stretches.remove(stretch)

    def places(self, tips: Sequence[Tip]) -> set[int]:
        """Which of a history's messages wait."""
        at = {tip: place for place, tip in enumerate(tips)}
        ends = [(0 if one.after == ROOT else at.get(one.after, len(tips)) + 1, at.get(one.tip, -1) + 1) for one in self.stretches]
        return {place for start, end in ends for place in range(start, end)}


class IndexDesk:
    """Cuts messages into pieces in a thread and has the store index them, one session's in order; an `erasing.Part`."""

    def __init__(
        self, store: Store, metrics: Metrics, tasks: Tasks, lull: Lull, is_wanted: Callable[[], bool], written: Callable[[SessionKey], None]
    ) -> None:
        """`written` is told whenever pieces of a session have come into the index."""
        self._store = store
        self._written = written
        self._is_wanted = is_wanted
        self._metrics = metrics
        self._tasks = tasks
        self._lull = lull
        self._waiting: dict[SessionKey, _Waiting] = {}
        self._work: asyncio.Task[None] | None = None
        self._complete: OrderedDict[SessionKey, Tip] = OrderedDict()
        """The history up to this message is in the index, or waits for it."""
        self._cut: OrderedDict[tuple[SessionKey, Tip], tuple[int, Cut]] = OrderedDict()
        """What waits and was cut for a search already, with the messages' bytes."""
        self._cut_bytes = 0
        self._writing = asyncio.Lock()
        """Held while a piece is written."""

    def note(self, key: SessionKey, span: Span, turn: int) -> None:
        """Have stored messages indexed, before which so many messages of users stand; returns at once."""
        if not self._is_wanted():
            return
        self._waiting.setdefault(key, _Waiting()).add(span, turn)
        if span.after == self._complete.get(key, ROOT):
            self._cover(key, span.tip)
        self._begin()

    def note_summary(self, key: SessionKey, summary: Summary) -> None:
        """Have a summary indexed, in parts that count below 0: they are no part of what was said."""
        if self._is_wanted():
            self._waiting.setdefault(key, _Waiting()).summaries[summary.tip] = WaitingSummary(summary)
            self._begin()

    async def catch_up(self, key: SessionKey) -> None:
        """Note all of a session that is neither in the index nor waits, of every branch; returns when it waits. Raises StoreUnavailable."""
        async with self._lull.piece():
            indexed = await self._store.chunks.indexed(key)
            for leaf in await self._store.leaves(key):
                if leaf not in indexed:
                    rows = await self._store.history(key, leaf)
                    self._note_missing(key, [row.tip for row in rows], rows, indexed)
            for summary in await self._store.summaries(key, None):
                self.note_summary(key, summary)

    async def postings(self, key: SessionKey, terms: Sequence[str], asked: Reconciled) -> Postings:
        """Where terms stand in a session; what a request's history holds that was never indexed is now. Raises StoreUnavailable."""
        last = len(asked.tips) - 1
        stored = min(asked.fresh_from, last)
        tip = asked.tips[stored - 1] if stored else ROOT
        if self._complete.get(key, ROOT) != tip:
            await self._complete_to(key, asked, stored)
            self._cover(key, tip)
        waiting = self._waiting.get(key, _Waiting())
        places = {*waiting.places(asked.tips), *range(stored, last)} - {last}
        summaries = list(waiting.summaries.values())
        found = await self._store.chunks.postings(key, terms)
        if not (places or summaries):
            return found
        newest = newest_of([(asked.tips[place], asked.history[place]) for place in sorted(places, reverse=True)])
        known = {tip: held[1] for tip, _ in newest if (held := self._cut.get((key, tip)))}
        missing = [(tip, message) for tip, message in newest if tip not in known]
        gone = self._outgrown(sum(len(message.raw) for _, message in missing))

        def searched() -> tuple[list[Cut], Postings]:
            made = cut_all(missing, gone)
            waits = [*(one.held for one in summaries), *(one.held for one in known.values()), *(one.held for one in made)]
            return made, with_waiting(found, waits, terms)

        made, postings = await asyncio.to_thread(searched)
        await self._hold(key, missing, made)
        return postings

    async def _hold(self, key: SessionKey, messages: Sequence[tuple[Tip, Message]], cut: Sequence[Cut]) -> None:
        """Keep the pieces of messages until they are written, as far as there is room."""
        for (tip, message), pieces in zip(messages, cut, strict=True):
            self._taken(key, tip)  # another request may have been quicker
            self._cut[key, tip] = len(message.raw), pieces
            self._cut_bytes += len(message.raw)
        if self._cut_bytes > CUT_BYTES:  # another request took the room meanwhile
            await asyncio.to_thread(cut_all, (), self._outgrown(0))

    def _outgrown(self, more_bytes: int) -> list[Cut]:
        """What has to go for so much more, the oldest first."""
        gone: list[Cut] = []
        while self._cut and self._cut_bytes + more_bytes > CUT_BYTES:
            size, cut = self._cut.popitem(last=False)[1]
            self._cut_bytes -= size
            gone.append(cut)
        return gone

    def _taken(self, key: SessionKey, tip: Tip) -> Cut | None:
        """What a message was cut into, which is needed no longer; None if it was not."""
        size, cut = self._cut.pop((key, tip), (0, None))
        self._cut_bytes -= size
        return cut

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Index nothing more of these sessions; what is just being written is waited for."""
        for key in keys:
            self._waiting.pop(key, None)
            self._complete.pop(key, None)
        for key, tip in [at for at in self._cut if at[0] in keys]:
            self._taken(key, tip)
        async with self._writing:
            return

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        """Let go of summaries of these messages; each piece looks for itself which messages were forgotten before and while it was written."""
        waiting = self._waiting.get(key, _Waiting())
        for tip in tips:
            waiting.summaries.pop(tip, None)
            self._taken(key, tip)
        async with self._writing:
            return

    async def _complete_to(self, key: SessionKey, asked: Reconciled, stored: int) -> None:
        """Note what of the first `stored` messages is neither in the index nor waits."""
        indexed = await self._store.chunks.indexed(key)
        self._note_missing(key, asked.tips[:stored], asked.history, indexed)

    def _note_missing(self, key: SessionKey, tips: Sequence[Tip], history: Sequence[Message | StoredMessage], indexed: Collection[Tip]) -> None:
        waiting = self._waiting.get(key, _Waiting()).places(tips)
        turn = 0
        for place, tip in enumerate(tips):
            if tip not in indexed and place not in waiting:
                self.note(key, Span(tips[place - 1] if place else ROOT, tip), turn)
            turn += history[place].role == "user"

    def _cover(self, key: SessionKey, tip: Tip) -> None:
        self._complete[key] = tip
        self._complete.move_to_end(key)
        if len(self._complete) > KNOWN_SESSIONS:
            self._complete.popitem(last=False)

    def _begin(self) -> None:
        if self._work is None:
            self._work = self._tasks.start(self._write_all(), "index")

    async def _write_all(self) -> None:
        """Write all that waits, one session's in order, the sessions by turns."""
        try:
            while self._waiting:
                async with self._lull.piece(), self._writing:
                    if self._waiting:
                        await self._write_one(*next(iter(self._waiting.items())))
        finally:
            self._work = None

    async def _write_one(self, key: SessionKey, waiting: _Waiting) -> None:
        """A piece of what waits for a session, which then waits behind the others; what fails is indexed when the session is next searched."""
        is_left = False
        try:
            is_left = await self._write_piece(key, waiting)
        except StoreUnavailable as error:
            self._metrics.store_errors.inc()
            log.warning("session %s could not be indexed: %s", key.id, error.message)
            self._complete.pop(key, None)
        except Exception as error:
            log.exception("indexing a session failed: %s", type(error).__name__)
            self._complete.pop(key, None)
        finally:
            if self._waiting.get(key) is waiting:
                del self._waiting[key]
                if is_left:
                    self._waiting[key] = waiting

    async def _write_piece(self, key: SessionKey, waiting: _Waiting) -> bool:
        """Whether more waits behind it."""
        session = await self._store.session(key)
        if session is None:
            return False
        if waiting.stretches:
            await self._write_rows(session, waiting, waiting.stretches[0])
        else:
            await self._write_summaries(session, waiting)
        return bool(waiting.stretches or waiting.summaries)

    async def _write_rows(self, session: Session, waiting: _Waiting, stretch: _Stretch) -> None:
        rows = await self._store.span(session.key, Span(stretch.after, stretch.tip), AT_ONCE_BYTES)
        if any(row.raw and row.tip not in session.forgotten for row in rows):
            cut = {row.tip: self._taken(session.key, row.tip) for row in rows}
            made = await asyncio.to_thread(pieces_of_rows, rows, cut, stretch.turn, session.forgotten)
            await self._store.chunks.add(session.key, made)
            await forgotten_meanwhile(self._store, session.key, rows[-1].tip, session.forgotten)
            self._written(session.key)
        waiting.written(stretch, rows)

    async def _write_summaries(self, session: Session, waiting: _Waiting) -> None:
        """Those that are there still: what they tell of may have been erased since."""
        batch = dict(waiting.summaries)
        there = {one.tip for one in await self._store.summaries(session.key, list(batch))}
        made = await asyncio.to_thread(lambda: [piece for tip, one in batch.items() if tip in there for piece in pieces_of_summary(one.summary)])
        await self._store.chunks.add(session.key, made)
        self._written(session.key)
        waiting.summaries = {tip: one for tip, one in waiting.summaries.items() if batch.get(tip) is not one}
