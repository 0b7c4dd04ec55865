"""The search index is written behind the answers; what is not in it yet is found all the same, from memory."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ctxproxy.core.chunks import Chunk, Indexed, chunks_of, parts_of
from ctxproxy.core.messages import ROOT, Message, Tip
from ctxproxy.core.records import SessionKey, Summary
from ctxproxy.core.retrieval import merged
from ctxproxy.core.search_terms import terms_of
from ctxproxy.core.text_index import Posting, Postings
from ctxproxy.core.wire import from_log
from ctxproxy.errors import StoreUnavailable
from ctxproxy.ports import Store
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.tasks import Tasks

log = logging.getLogger("ctxproxy")
AT_ONCE_BYTES = 32_768
"""Of messages that are cut and written in one go: a few dozen milliseconds of a thread and of the store's writer, no answer waits longer."""
SEARCHED_BYTES = 4_000_000
"""Of messages that wait for the index, the newest, that are searched in memory."""
KNOWN_SESSIONS = 10_000
"""Of how many sessions is remembered that their whole history is in the index or waits for it."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message to index, as it stands in the log: its turn (1 is the first), and when it was said."""

    raw: bytes
    turn: int
    created: float


@dataclass(slots=True)
class _Covered:
    """Of a session: the tip of a history all of which is in the index or waits for it, and what was noted since."""

    tip: Tip
    since: set[Tip]

    def holds(self, tips: Sequence[Tip]) -> bool:
        """Whether all of a history is covered; what another process has stored meanwhile is not."""
        for tip in reversed(tips):
            if tip == self.tip:
                return True
            if tip not in self.since:
                return False
        return True


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
        self._waiting: dict[SessionKey, dict[Tip, Said | Summary]] = {}
        self._work: dict[SessionKey, asyncio.Task[None]] = {}
        self._complete: OrderedDict[SessionKey, _Covered] = OrderedDict()
        self._writing = asyncio.Lock()
        """Held while a piece is written."""

    def note(self, key: SessionKey, messages: Mapping[Tip, Said]) -> None:
        """Have messages indexed; returns at once, and they can be found from now on."""
        if messages and self._is_wanted():
            self._let_go(key, messages)
            self._waiting.setdefault(key, {}).update(messages)
            self._lull.hold(sum(map(_size_of, messages.values())))
            if covered := self._complete.get(key):
                covered.since.update(messages)
            self._begin(key)

    def note_summary(self, key: SessionKey, summary: Summary) -> None:
        """Have a summary indexed, in parts that count below 0: they are no part of what was said."""
        if self._is_wanted():
            name = f"summary {summary.tip}"
            self._let_go(key, [name])
            self._waiting.setdefault(key, {})[name] = summary
            self._lull.hold(_size_of(summary))
            self._begin(key)

    async def postings(self, key: SessionKey, terms: Sequence[str], history: Sequence[Message], tips: Sequence[Tip], now: float) -> Postings:
        """Where terms stand in a session; what its history holds that was never indexed is now. Raises StoreUnavailable."""
        covered = self._complete.get(key)
        if covered is None or not covered.holds(tips[:-1]):
            await self._complete_from(key, history, tips, now)
        self._complete[key] = _Covered(tips[-2] if len(tips) > 1 else ROOT, set())
        self._complete.move_to_end(key)
        if len(self._complete) > KNOWN_SESSIONS:
            self._complete.popitem(last=False)
        waiting = dict(self._waiting.get(key, {}))
        stored = await self._store.chunks.postings(key, terms)
        return await asyncio.to_thread(_with_waiting, stored, waiting, terms) if waiting else stored

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Index nothing more of these sessions; what is just being written is waited for."""
        for key in keys:
            self._let_go(key)
            self._complete.pop(key, None)
        async with self._writing:
            return

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        """Let go of what waits of these messages; what is just being written is waited for, and the store takes out what it has."""
        self._let_go(key, [name for tip in tips for name in (tip, f"summary {tip}")])
        async with self._writing:
            return

    async def _complete_from(self, key: SessionKey, history: Sequence[Message], tips: Sequence[Tip], now: float) -> None:
        held = await self._store.chunks.indexed(key) | self._waiting.get(key, {}).keys()
        turns = accumulate(message.role == "user" for message in history)
        self.note(key, {tip: Said(m.raw, turn, now) for tip, m, turn in zip(tips[:-1], history, turns, strict=False) if m.raw and tip not in held})

    def _begin(self, key: SessionKey) -> None:
        if key not in self._work:
            self._work[key] = self._tasks.start(self._write(key), "index")

    def _let_go(self, key: SessionKey, names: Iterable[Tip] | None = None) -> int:
        """What waits of a session waits no more (None: all of it); its bytes."""
        waiting = self._waiting.get(key, {})
        gone = [waiting.pop(name) for name in (tuple(waiting) if names is None else names) if name in waiting]
        if not waiting:
            self._waiting.pop(key, None)
        size = sum(map(_size_of, gone))
        self._lull.hold(-size)
        return size

    async def _write_piece(self, key: SessionKey) -> None:
        waiting = self._waiting.get(key, {})
        batch = _batch(waiting)
        made = await asyncio.to_thread(_indexed, await self._standing(key, batch))
        await self._store.chunks.add(key, made)
        self._written(key)
        self._let_go(key, [name for name, one in batch.items() if waiting.get(name) is one])

    async def _write(self, key: SessionKey) -> None:
        """Hand all that waits for a session to the store; where it does not answer, that is indexed when the session is next searched."""
        try:
            while key in self._waiting:
                async with self._lull.piece(), self._writing:
                    await self._write_piece(key)
        except StoreUnavailable as error:
            self._metrics.store_errors.inc()
            log.warning("session %s could not be indexed: %s", key.id, error.message)
        finally:
            if self._let_go(key):
                self._complete.pop(key, None)
            del self._work[key]

    async def _standing(self, key: SessionKey, batch: Mapping[Tip, Said | Summary]) -> dict[Tip, Said | Summary]:
        """What of it is there still: another process may have erased the session, also if it was begun anew since, or what a summary tells of."""
        session = await self._store.session(key)
        if session is None:
            return {}
        summaries = [one.tip for one in batch.values() if isinstance(one, Summary)]
        kept = {one.tip for one in await self._store.summaries(key, summaries)} if summaries else set()
        old = [name for name, one in batch.items() if isinstance(one, Said) and one.created < session.created]  # as in a fork
        gone = {name for name in old if not await self._store.known(key, [name])}
        return {name: one for name, one in batch.items() if (one.tip in kept if isinstance(one, Summary) else name not in gone)}


def _batch(waiting: Mapping[Tip, Said | Summary]) -> dict[Tip, Said | Summary]:
    """The first of what waits, up to `AT_ONCE_BYTES`, one at least."""
    batch: dict[Tip, Said | Summary] = {}
    size = 0
    for name, one in waiting.items():
        size += _size_of(one)
        if batch and size > AT_ONCE_BYTES:
            break
        batch[name] = one
    return batch


def _size_of(one: Said | Summary) -> int:
    return len(one.raw) if isinstance(one, Said) else len(one.text)


def _indexed(batch: Mapping[Tip, Said | Summary]) -> list[Indexed]:
    return [indexed for name, one in batch.items() for indexed in _pieces(name, one)]


def _pieces(name: Tip, one: Said | Summary) -> Iterator[Indexed]:
    if isinstance(one, Said):
        message = from_log(one.raw)
        yield from (Indexed(chunk, terms_of(chunk.text), one.turn, one.created) for chunk in chunks_of(message, name))
    else:
        parts = (Chunk(one.tip, -1 - n, text, "summary") for n, text in enumerate(parts_of(one.text)))
        yield from (Indexed(part, terms_of(part.text), 0, one.created) for part in parts)


def _with_waiting(stored: Postings, waiting: Mapping[Tip, Said | Summary], terms: Sequence[str]) -> Postings:
    """The store's postings with those of what waits, as much of it as can be read in the time of a request."""
    by_term: dict[str, list[Posting]] = {term: [] for term in terms}
    size = pieces = length = 0
    for name, one in reversed(list(waiting.items())):
        size += len(one.raw) if isinstance(one, Said) else 0
        if size > SEARCHED_BYTES:
            break
        for chunk, held, *_ in _pieces(name, one):
            pieces += 1
            length += (own := sum(held.values()))
            for term in by_term.keys() & held.keys():
                by_term[term].append(Posting((chunk.tip, chunk.part), own, held[term]))
    found = {term: postings for term, postings in by_term.items() if postings}
    return merged(stored, Postings(found, pieces, length / max(pieces, 1)))
