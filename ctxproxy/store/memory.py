"""A store that lives as long as the process: the same contract as the others, nothing on disk."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import accumulate, islice

from ctxproxy.core.dues import DueOf
from ctxproxy.core.effects import (
    Effect,
    Forget,
    MadeOf,
    MoveTip,
    OpenSession,
    PutWindow,
)
from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.records import (
    NOTHING_SPENT,
    Checkpoint,
    Located,
    LogPage,
    Page,
    Pin,
    Session,
    SessionKey,
    Span,
    StoredMessage,
    Summary,
    Totals,
    WindowBelief,
)
from ctxproxy.errors import StoreUnavailable
from ctxproxy.store.lineage import furthest
from ctxproxy.store.memory_carryover import MemoryCarryover
from ctxproxy.store.memory_chunks import MemoryChunks, Sources
from ctxproxy.store.memory_effects import Kept, change
from ctxproxy.store.memory_facts import MemoryFacts
from ctxproxy.store.memory_retention import MemoryRetention
from ctxproxy.store.memory_sharing import MemoryGrants, MemoryGraphs, MemoryRatings
from ctxproxy.store.pages import cursor_of, page_size, place_of


class MemoryStore:
    """`ports.Store` in dictionaries, bounded only by what it is given."""

    def __init__(self) -> None:
        self._kept: dict[SessionKey, Kept] = {}
        self._windows: dict[tuple[str, str], WindowBelief] = {}
        self._serial = 0
        self._closed = False
        self.carryover = MemoryCarryover(lambda key: kept.carryover if (kept := self._of(key)) else None, self._open, self._told_of)
        self.facts = MemoryFacts(
            lambda key: kept.points if (kept := self._of(key)) else None,
            lambda: ((k.session, k.points) for k in self._everyone()),
            lambda key: kept.messages if (kept := self._of(key)) else {},
        )
        sharing = (lambda key: kept.sharing if (kept := self._of(key)) else None, lambda: (k.sharing for k in self._everyone()))
        self.grants = MemoryGrants(*sharing)
        self.ratings = MemoryRatings(*sharing)
        self.graphs = MemoryGraphs(self._check_open)
        self.chunks = MemoryChunks(self._session, self._sources)
        self.retention = MemoryRetention(lambda: [kept.session for kept in self._everyone() if not kept.pins], self.erase)

    async def session(self, key: SessionKey) -> Session | None:
        return self._session(key)

    async def known(self, key: SessionKey, tips: Sequence[Tip]) -> int:
        kept = self._of(key)
        if kept is None:
            return 0
        return next((at + 1 for at in range(len(tips) - 1, -1, -1) if tips[at] in kept.messages), 0)

    async def history(self, key: SessionKey, tip: Tip) -> list[StoredMessage]:
        kept, found = self._of(key), []
        message = kept.messages.get(tip) if kept else None
        while kept and message:
            found.append(message)
            message = kept.messages.get(message.parent)
        return found[::-1]

    async def span(self, key: SessionKey, span: Span, max_bytes: int) -> list[StoredMessage]:
        way = await self.history(key, span.tip)
        start = next((at + 1 for at, row in enumerate(way) if row.tip == span.after), 0 if span.after == ROOT else len(way))
        totals = accumulate(len(row.raw) for row in way[start:])
        return [row for at, (row, total) in enumerate(zip(way[start:], totals, strict=True)) if total <= max_bytes or at == 0]

    async def heard(self, key: SessionKey, tip: Tip, limit: int) -> list[StoredMessage]:
        said = [row for row in await self.history(key, tip) if row.role == "user"]
        return said[max(len(said) - limit, 0) :]

    async def log(self, key: SessionKey, after: int, limit: int) -> LogPage:
        kept = self._of(key)
        found = tuple(islice(kept.messages.values(), after, after + limit)) if kept else ()
        end = after + len(found)
        return LogPage(found, end if kept and end < len(kept.messages) else None)

    async def leaves(self, key: SessionKey) -> list[Tip]:
        kept = self._of(key)
        return [tip for tip in reversed(kept.messages) if tip not in kept.parents] if kept else []

    async def checkpoints(self, key: SessionKey, tips: Sequence[Tip], most: int | None) -> list[Checkpoint]:
        found = await self.all_checkpoints(key)
        wanted = frozenset(furthest(tips, [(at, one.tip, one.variant) for at, one in enumerate(found)], most))
        return [one for at, one in enumerate(found) if at in wanted]

    async def all_checkpoints(self, key: SessionKey) -> list[Checkpoint]:
        kept = self._of(key)
        found = reversed(kept.checkpoints.values()) if kept else ()
        return sorted(found, key=lambda checkpoint: -checkpoint.created)

    async def summaries(self, key: SessionKey, tips: Collection[Tip] | None) -> list[Summary]:
        kept = self._of(key)
        wanted = None if tips is None else frozenset(tips)
        return [s for s in kept.summaries.values() if wanted is None or s.tip in wanted] if kept else []

    async def pins(self, key: SessionKey) -> list[Pin]:
        kept = self._of(key)
        return [kept.pins[number] for number in sorted(kept.pins)] if kept else []

    async def dues(self, limit: int) -> list[DueOf]:
        return [DueOf(kept.session.key, due) for kept in self._everyone() for due in kept.dues.values()][:limit]

    async def windows(self) -> list[WindowBelief]:
        self._check_open()
        return [self._windows[name] for name in sorted(self._windows)]

    async def locate(self, tip_prefix: str) -> list[Located]:
        self._check_open()
        prefix = tip_prefix.lower()
        found = [(tip, kept) for kept in self._kept.values() for tip in kept.messages if prefix and tip.startswith(prefix)]
        found.sort(key=lambda pair: (pair[0], pair[1].serial))
        return [Located(kept.session.key, kept.messages[tip]) for tip, kept in found[:10]]

    async def sessions(self, limit: int, cursor: str | None, query: str, tag: str = "") -> Page:
        self._check_open()
        below = place_of(cursor)
        found = [kept for kept in self._kept.values() if kept.place < below and query in kept.session.key.name and tag in ("", kept.session.tag)]
        found.sort(key=lambda kept: kept.place, reverse=True)
        page = found[: page_size(limit)]
        return Page(tuple(kept.told for kept in page), cursor_of(page[-1].place) if len(found) > len(page) else None)

    async def find(self, name: str) -> list[Session]:
        self._check_open()
        return [kept.told for kept in self._kept.values() if kept.session.key.name == name]

    async def tenants(self, prefix: str) -> list[str]:
        return sorted({tenant for kept in self._everyone() if (tenant := kept.session.key.tenant).startswith(prefix)})[:10]

    async def of_user(self, tenant: str, user: str, limit: int) -> list[Session]:
        found = [kept for kept in self._everyone() if (kept.session.key.tenant, kept.session.user) == (tenant, user)]
        return [kept.told for kept in sorted(found, key=lambda kept: kept.place, reverse=True)[:limit]]

    async def totals(self) -> Totals:
        self._check_open()
        sessions = [kept.session for kept in self._kept.values()]
        return Totals(
            sessions=len(sessions),
            messages=sum(len(kept.messages) for kept in self._kept.values()),
            requests=sum(session.requests for session in sessions),
            tokens_in=sum(session.tokens_in for session in sessions),
            tokens_sent=sum(session.tokens_sent for session in sessions),
            compactions=sum(session.compactions for session in sessions),
            spent=sum((session.spent for session in sessions), NOTHING_SPENT),
        )

    async def apply(self, effects: Sequence[Effect]) -> bool:
        self._check_open()
        if any(isinstance(effect, OpenSession) and self._is_gone(effect) for effect in effects):
            return False
        done = self._applied(effects)
        for kept in [self._kept.get(effect.key) for effect in effects if isinstance(effect, MadeOf)]:
            if kept:
                kept.late, kept.is_unpinned = (), False
        return done

    def _applied(self, effects: Sequence[Effect]) -> bool:
        if any(isinstance(effect, MoveTip) and effect.required for effect in effects):
            return self._all_or_nothing(effects)
        outcomes = [self._carry_out(effect) for effect in effects]
        for effect in effects:
            if isinstance(effect, Forget):
                self.chunks.forget(effect.key, effect.tip)
        return all(outcomes)

    async def erase(self, key: SessionKey) -> bool:
        self._told_of(key)
        for kept in self._everyone():
            kept.sharing.forget_receiver(key)
        self.chunks.erase(key)
        return self._kept.pop(key, None) is not None

    async def ping(self) -> None:
        self._check_open()

    async def close(self) -> None:
        self._closed = True

    def _session(self, key: SessionKey) -> Session | None:
        kept = self._of(key)
        return kept.told if kept else None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")

    def _told_of(self, key: SessionKey) -> None:
        """Nothing tells of a session any more in which something is erased."""
        for kept in self._everyone():
            kept.carryover.forget(key)

    def _everyone(self) -> list[Kept]:
        self._check_open()
        return list(self._kept.values())

    def _of(self, key: SessionKey) -> Kept | None:
        self._check_open()
        return self._kept.get(key)

    def _all_or_nothing(self, effects: Sequence[Effect]) -> bool:
        touched = {effect.key for effect in effects if not isinstance(effect, PutWindow)}
        kept, windows, serial = self._kept.copy(), self._windows.copy(), self._serial
        self._kept.update({key: kept[key].copy() for key in touched & kept.keys()})
        outcomes = []
        for effect in effects:
            outcomes.append(self._carry_out(effect))
            if not outcomes[-1] and isinstance(effect, MoveTip) and effect.required:
                self._kept, self._windows, self._serial = kept, windows, serial
                break
        return all(outcomes)

    def _carry_out(self, effect: Effect) -> bool:
        if isinstance(effect, OpenSession):
            self._open(effect)
        elif isinstance(effect, PutWindow):
            self._windows[effect.belief.upstream, effect.belief.model] = effect.belief
        elif kept := self._kept.get(effect.key):
            if isinstance(effect, Forget):
                self._told_of(effect.key)
            return change(kept, effect)
        else:  # erased in the meantime: nothing may bring it back in parts
            return not isinstance(effect, MoveTip)
        return True

    def _sources(self, sessions: int) -> list[Sources]:
        used_last = sorted(self._everyone(), key=lambda kept: kept.place, reverse=True)[:sessions]
        return [Sources(kept.session.key, kept.branches, frozenset(kept.summaries)) for kept in used_last]

    def _is_gone(self, effect: OpenSession) -> bool:
        """Whether the session that it goes on with is not there any more."""
        kept = self._kept.get(effect.key)
        return effect.made is not None and (kept is None or kept.session.created != effect.made)

    def _open(self, effect: OpenSession) -> None:
        kept = self._kept.get(effect.key)
        if kept is None:
            self._serial += 1
            kept = self._kept[effect.key] = Kept(self._serial, Session(effect.key, created=effect.now, recall=effect.recall))
        if effect.model is not None:
            kept.session = replace(kept.session, model=effect.model, profile=effect.profile, fixed_tokens=effect.fixed_tokens)
        kept.session = replace(
            kept.session,
            last_used=effect.now,
            manner=kept.session.manner if effect.manner == "unknown" else effect.manner,
            frame=effect.frame or kept.session.frame,
            system=kept.session.system if effect.system is None else effect.system,
            user=effect.user or kept.session.user,
        )
