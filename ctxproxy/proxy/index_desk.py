"""The search index is written behind the answers; what is not in it yet is found all the same, from memory."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

from ctxproxy.core.chunks import Chunk, Indexed, parts_of
from ctxproxy.core.memo import Memo
from ctxproxy.core.messages import Message, Tip
from ctxproxy.core.records import SessionKey, Summary
from ctxproxy.core.retrieval import chunks_at, merged
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.text_index import Postings, TextIndex
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
AT_ONCE = 64
"""Pieces that are written in one go: about 20 ms of the store's writer, so that no answer's settling waits longer behind them."""
KNOWN_SESSIONS = 10_000
"""Of how many sessions is remembered that their whole history is in the index or waits for it."""


class IndexDesk:
    """Cuts messages into pieces in a thread and has the store index them; an `erasing.Part`."""

    def __init__(self, store: Store, memo: Memo, metrics: Metrics, tasks: Tasks) -> None:
        self._store = store
        self._memo = memo
        self._metrics = metrics
        self._tasks = tasks
        self._waiting: dict[SessionKey, dict[tuple[Tip, int], Indexed]] = {}
        self._work: dict[SessionKey, asyncio.Task[None]] = {}
        self._complete: OrderedDict[SessionKey, None] = OrderedDict()
        self._thread = asyncio.Semaphore(1)
        """One at a time: the threads are there for requests."""

    async def note(self, key: SessionKey, messages: Mapping[Tip, tuple[Message, int, float]]) -> None:
        """Have messages indexed, each given with its turn and when it was said; returns when they can be found."""
        async with self._thread:
            made = await asyncio.to_thread(self._indexed, messages)
        self._add(key, made)

    def note_summary(self, key: SessionKey, summary: Summary) -> None:
        """Have a summary indexed, in parts that count below 0: they are no part of what was said."""
        parts = [Chunk(summary.tip, -1 - n, text, "summary") for n, text in enumerate(parts_of(summary.text))]
        self._add(key, [Indexed(part, terms_of(part.text), 0, summary.created) for part in parts])

    async def postings(self, key: SessionKey, terms: Sequence[str], history: Sequence[Message], tips: Sequence[Tip], now: float) -> Postings:
        """Where terms stand in a session; what its history holds that was never indexed is now. Raises StoreUnavailable."""
        if key not in self._complete:
            await self._complete_from(key, history, tips, now)
        self._complete[key] = None
        self._complete.move_to_end(key)
        if len(self._complete) > KNOWN_SESSIONS:
            self._complete.popitem(last=False)
        stored = await self._store.chunks.postings(key, terms)
        waiting = self._waiting.get(key)
        return await asyncio.to_thread(_with_waiting, stored, list(waiting.values()), terms) if waiting else stored

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Index nothing more of these sessions; what is just being written is waited for."""
        for key in keys:
            self._waiting.pop(key, None)
            self._complete.pop(key, None)
        if work := [self._work[key] for key in keys if key in self._work]:
            await asyncio.wait(work)

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        """Let go of what waits of these messages; the store takes out what it has."""
        waiting = self._waiting.get(key, {})
        for place in [place for place in waiting if place[0] in tips]:
            del waiting[place]

    async def _complete_from(self, key: SessionKey, history: Sequence[Message], tips: Sequence[Tip], now: float) -> None:
        held = await self._store.chunks.indexed(key) | {tip for tip, _ in self._waiting.get(key, {})}
        turns = accumulate(message.role == "user" for message in history)
        missing = {tip: (message, turn, now) for tip, message, turn in zip(tips[:-1], history, turns, strict=False) if tip not in held}
        if missing:
            await self.note(key, missing)

    def _indexed(self, messages: Mapping[Tip, tuple[Message, int, float]]) -> list[Indexed]:
        return [
            Indexed(chunk, terms_of(chunk.text), turn, created)
            for tip, (message, turn, created) in messages.items()
            for chunk in chunks_at(message, tip, self._memo)
        ]

    def _add(self, key: SessionKey, made: Sequence[Indexed]) -> None:
        if not made:
            return
        self._waiting.setdefault(key, {}).update({(one.chunk.tip, one.chunk.part): one for one in made})
        if key not in self._work:
            self._work[key] = self._tasks.start(self._write(key), "index")

    async def _write(self, key: SessionKey) -> None:
        """Hand all that waits for a session to the store; where it does not answer, that is indexed when the session is next searched."""
        try:
            while batch := list(self._waiting.get(key, {}).items())[:AT_ONCE]:
                await self._store.chunks.add(key, [one for _, one in batch])
                waiting = self._waiting.get(key, {})
                for place, one in batch:
                    if waiting.get(place) is one:
                        del waiting[place]
        except StoreUnavailable as error:
            self._complete.pop(key, None)
            self._metrics.store_errors.inc()
            log.warning("session %s could not be indexed: %s", key.id, error.message)
        finally:
            self._waiting.pop(key, None)
            del self._work[key]


def _with_waiting(stored: Postings, waiting: Sequence[Indexed], terms: Sequence[str]) -> Postings:
    index = TextIndex()
    for one in waiting:
        index.add((one.chunk.tip, one.chunk.part), one.terms)
    return merged(stored, index.postings(terms))
