"""The default store: one SQLite file in WAL mode, one writer thread, a few reading connections.

Several processes may share the file. What `apply` has answered outlives the process.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from ctxproxy.core.dues import DueOf
from ctxproxy.core.effects import AppendMessages, CountUse, Effect, Forget, MoveTip, OpenSession, PutWindow
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import Checkpoint, Located, LogPage, Page, Pin, Session, SessionKey, Span, StoredMessage, Summary, Totals, WindowBelief
from ctxproxy.store.cached import Histories, Since
from ctxproxy.store.lineage import furthest
from ctxproxy.store.pages import Place, cursor_of, page_size, place_of
from ctxproxy.store.queries import named_queries
from ctxproxy.store.rows import (
    Row,
    checkpoint_of,
    due_of,
    key_values,
    located_of,
    message_of,
    pack,
    pin_of,
    plain,
    session_of,
    summary_of,
    tips_value,
    totals_of,
    window_of,
)
from ctxproxy.store.sqlite_carryover import SqliteCarryover
from ctxproxy.store.sqlite_chunks import SqliteChunks
from ctxproxy.store.sqlite_direct import SqliteDirect
from ctxproxy.store.sqlite_facts import SqliteFacts
from ctxproxy.store.sqlite_file import OnDamage
from ctxproxy.store.sqlite_readers import SqliteReaders
from ctxproxy.store.sqlite_retention import SqliteRetention
from ctxproxy.store.sqlite_sharing import SqliteGrants, SqliteGraphs, SqliteRatings
from ctxproxy.store.sqlite_writer import SqliteWriter, Work

KNOWN_CHUNKS = (16, 256, 4096)
"""How many tips from the end `known` asks for at a time: nearly always all but the last few are stored."""

LONG_HISTORY = 500
"""Messages from which on making the values would hold the loop up for milliseconds."""


QUICK = (OpenSession, AppendMessages, CountUse, MoveTip, PutWindow)
"""What a turn of a conversation writes."""
QUICK_BYTES, QUICK_MESSAGES = 32_768, 32
"""What is written at once, without a thread: a millisecond at most. A message takes 30 microseconds, however small it is."""


class SqliteStore:
    """`ports.Store` in a file; made by `open`."""

    def __init__(self, writer: SqliteWriter, readers: SqliteReaders, direct: SqliteDirect, histories: Histories) -> None:
        self._writer = writer
        self._readers = readers
        self._direct = direct
        self._histories = histories
        self._closing = False
        self._queries = named_queries("reads.sql")
        self.carryover = SqliteCarryover(writer, readers)
        self.retention = SqliteRetention(writer, readers, self._histories.drop)
        self.facts = SqliteFacts(writer, readers)
        self.grants = SqliteGrants(writer, readers)
        self.ratings = SqliteRatings(writer, readers)
        self.graphs = SqliteGraphs(writer, readers)
        self.chunks = SqliteChunks(writer, readers)

    @classmethod
    async def open(cls, path: Path, on_damage: OnDamage, cache_bytes: int = 0) -> SqliteStore:
        """The store in the file at `path`, made if need be.

        In at most `cache_bytes` of memory it remembers histories.
        A damaged file is renamed and a fresh one made; `on_damage` is told, from the writer's thread. Raises ConfigError if
        the path cannot be our database, StoreUnavailable if it cannot be opened now.
        """
        writer = SqliteWriter(path, on_damage)
        readers = SqliteReaders(path, writer)
        await writer.start()
        try:
            await readers.open()
        except BaseException:
            await writer.close()
            raise
        direct = SqliteDirect(path)
        direct.open()
        return cls(writer, readers, direct, Histories(cache_bytes))

    async def session(self, key: SessionKey) -> Session | None:
        rows = await self._small("session", **key_values(key))
        return session_of(rows[0]) if rows else None

    async def known(self, key: SessionKey, tips: Sequence[Tip]) -> int:
        end = len(tips)
        for size in (*KNOWN_CHUNKS, end):
            start = max(0, end - size)
            ask = self._small if size == KNOWN_CHUNKS[0] else self._rows
            rows = await ask("last_known", **key_values(key), tips=tips_value(tips[start:end]))
            if rows[0][0] is not None:
                return start + int(rows[0][0]) + 1
            end = start
            if not end:
                break
        return 0

    async def history(self, key: SessionKey, tip: Tip) -> list[StoredMessage]:
        return await self._histories.of(key, tip, lambda known: self._since(key, tip, known))

    async def _since(self, key: SessionKey, tip: Tip, known: Tip) -> Since | None:
        rows = await self._rows("history", **key_values(key), tip=plain(tip), known=known)
        if not rows:
            return None
        found = rows if rows[0][0] is not None else []
        return Since(rows[0][-1], _messages(found) if len(found) < LONG_HISTORY else await asyncio.to_thread(_messages, found))

    async def span(self, key: SessionKey, span: Span, max_bytes: int) -> list[StoredMessage]:
        found = [message_of(row) for row in await self._rows("span", **key_values(key), tip=plain(span.tip), after=span.after, most=max_bytes)]
        return found if found and found[0].parent == span.after else []

    async def heard(self, key: SessionKey, tip: Tip, limit: int) -> list[StoredMessage]:
        rows = await self._rows("heard", **key_values(key), tip=plain(tip), role=pack("user"), limit=limit)
        return [message_of(row) for row in reversed(rows)]

    async def log(self, key: SessionKey, after: int, limit: int) -> LogPage:
        rows = await self._rows("log", **key_values(key), after=after, limit=limit + 1)
        found = tuple(message_of(row) for row in rows[:limit])
        return LogPage(found, rows[limit - 1][-1] if len(rows) > limit else None)

    async def leaves(self, key: SessionKey) -> list[Tip]:
        return [row[0] for row in await self._rows("leaves", **key_values(key))]

    async def checkpoints(self, key: SessionKey, tips: Sequence[Tip], most: int | None) -> list[Checkpoint]:
        places = await self._rows("checkpoint_places", **key_values(key))
        ids = furthest(tips, places, most)
        rows = await self._rows("checkpoints_by_id", ids=json.dumps(ids)) if ids else []
        return [checkpoint_of(row) for row in rows]

    async def all_checkpoints(self, key: SessionKey) -> list[Checkpoint]:
        return [checkpoint_of(row) for row in await self._rows("checkpoints", **key_values(key))]

    async def summaries(self, key: SessionKey, tips: Collection[Tip] | None) -> list[Summary]:
        if tips is None:
            rows = await self._rows("summaries", **key_values(key))
        else:
            rows = await self._rows("summaries_at", **key_values(key), tips=tips_value(tips))
        return [summary_of(row) for row in rows]

    async def pins(self, key: SessionKey) -> list[Pin]:
        return [pin_of(row) for row in await self._small("pins", **key_values(key))]

    async def dues(self, limit: int) -> list[DueOf]:
        return [due_of(row) for row in await self._rows("dues", limit=limit)]

    async def windows(self) -> list[WindowBelief]:
        return [window_of(row) for row in await self._rows("windows")]

    async def locate(self, tip_prefix: str) -> list[Located]:
        first = tip_prefix.lower()
        if not re.fullmatch(r"[0-9a-f]+", first):
            return []
        rows = await self._rows("locate", first=first, beyond=first + "g")  # "g" stands behind every hex digit
        return [located_of(row) for row in rows]

    async def sessions(self, limit: int, cursor: str | None, query: str, tag: str = "") -> Page:
        size, below = page_size(limit), place_of(cursor)
        rows = await self._rows("page", last_used=below.last_used, id=below.serial, query=pack(query), tag=pack(tag), limit=size + 1)
        found = [session_of(row) for row in rows[:size]]
        more = len(rows) > size
        return Page(tuple(found), cursor_of(Place(found[-1].last_used, rows[size - 1][-1])) if more else None)

    async def find(self, name: str) -> list[Session]:
        return [session_of(row) for row in await self._rows("find", name=pack(name))]

    async def tenants(self, prefix: str) -> list[str]:
        return [row[0] for row in await self._rows("tenants", first=plain(prefix), beyond=plain(prefix) + "g")]

    async def of_user(self, tenant: str, user: str, limit: int) -> list[Session]:
        return [session_of(row) for row in await self._rows("of_user", tenant=plain(tenant), user=pack(user), limit=limit)]

    async def totals(self) -> Totals:
        return totals_of((await self._rows("totals"))[0])

    async def apply(self, effects: Sequence[Effect]) -> bool:
        if self._writer.is_idle and _is_quick(effects):
            outcome = self._direct.write(lambda writer: writer.carry_out(effects))
            if outcome is not None:
                if self._direct.is_due():
                    self._writer.fold()
                return outcome
        forgets = [effect for effect in effects if isinstance(effect, Forget)]
        try:
            return await self._submitted(lambda writer: writer.carry_out(effects), erases=any(one.erase for one in forgets))
        finally:
            for one in forgets:
                self._histories.drop(one.key)

    async def erase(self, key: SessionKey) -> bool:
        try:
            return await self._submitted(lambda writer: writer.erase(key), erases=True)
        finally:
            self._histories.drop(key)

    async def ping(self) -> None:
        await self._rows("ping")

    async def close(self) -> None:
        self._closing = True
        self._direct.close()
        await self._readers.close()
        await self._writer.close()

    async def _submitted(self, work: Work, *, erases: bool) -> bool:
        """What the writer gives; where it has mended something, small work is done at once again."""
        outcome = await self._writer.submit(work, erases=erases)
        if not self._direct.is_open and not self._closing:
            self._direct.open()
        return outcome

    async def _small(self, query_name: str, /, **values: object) -> list[Row]:
        """The rows of a query that takes some microseconds."""
        rows = self._direct.rows(self._queries[query_name], values)
        return await self._rows(query_name, **values) if rows is None else rows

    async def _rows(self, query_name: str, /, **values: object) -> list[Row]:
        return await self._readers.rows(self._queries[query_name], values)


def _messages(rows: Sequence[Row]) -> list[StoredMessage]:
    return [message_of(row) for row in reversed(rows)]


def _is_quick(effects: Sequence[Effect]) -> bool:
    """Whether effects take no longer than the way to the writer's thread and back."""
    size = count = 0
    for effect in effects:
        if not isinstance(effect, QUICK):
            return False
        if isinstance(effect, AppendMessages):
            count += len(effect.messages)
            size += sum(len(message.raw) for message in effect.messages)
    return size <= QUICK_BYTES and count <= QUICK_MESSAGES
