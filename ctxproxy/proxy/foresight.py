"""Compactions that are worked out in a lull, before the requests that need them: kept in memory, for the newest sessions."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeAlias

from ctxproxy.core import foresight
from ctxproxy.core.messages import Tip
from ctxproxy.core.plan import plan
from ctxproxy.core.planned import Plan
from ctxproxy.core.records import Foreseen, SessionKey, Summary
from ctxproxy.core.situation import Situation
from ctxproxy.ports import Store
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.tasks import Tasks

LEAST_TOKENS = 50_000
"""Of a history: shorter ones are compacted in some 20 ms, and one turn takes more of their budgets (measured at 4,000 tokens: a prompt that was
compacted a turn before costs 4 % more, for it has to be compacted sooner again).
"""
MAX_BYTES = 16 << 20
"""Of all that is kept: a decision takes 1 KB for each four messages, and its texts."""
ENTRY_BYTES = 250
"""What an entry of a decision takes beside its text, about."""
TIP_BYTES = 100
"""What the name of a message takes that an entry stands for, or that was left out."""
MOST_IN_VAIN = 4096
"""Sessions of which is remembered that nothing could be foreseen."""
MOST_AT_WORK = 32
"""Sessions that wait for a lull, with their histories in memory; further ones are not foreseen."""

_Name: TypeAlias = tuple[SessionKey, str]
Told: TypeAlias = Callable[[], Awaitable[Summary | None]]
"""Waits for a summary that is being written; None if it could not be had."""


class Foresight:
    """Has the next compaction of a session worked out; what is not ready in time, or holds no longer, the request works out itself."""

    def __init__(self, store: Store, tasks: Tasks, lull: Lull) -> None:
        self._store = store
        self._tasks = tasks
        self._lull = lull
        self._made: OrderedDict[_Name, Foreseen] = OrderedDict()
        self._left = MAX_BYTES
        self._at_work: dict[SessionKey, object] = {}
        self._in_vain: OrderedDict[_Name, int] = OrderedDict()
        """The tokens of histories of which nothing could be foreseen."""

    def of(self, key: SessionKey | None, variant: str) -> Foreseen | None:
        """What was foreseen for a session, if anything."""
        return self._made.get((key, variant)) if key is not None and self._made else None

    def begin(self, key: SessionKey, s: Situation, planned: Plan, summary: Told) -> None:
        """Work out the session's next compaction in a lull, if it is due soon and not foreseen yet: when the prompt will be too long, or as soon
        as the `summary` is there that this plan was made without.
        """
        if key in self._at_work or len(self._at_work) >= MOST_AT_WORK or sum(s.counts) < LEAST_TOKENS:
            return
        if not planned.wants and (not foresight.is_due_soon(s, planned) or self._is_known(key, s)):
            return
        own = self._at_work[key] = object()
        self._tasks.start(self._look(key, own, s, summary if planned.wants else None), "foresight")

    def _is_known(self, key: SessionKey, s: Situation) -> bool:
        """Whether what is foreseen holds, or little has come since nothing could be foreseen."""
        known, tried = self.of(key, s.variant), self._in_vain.get((key, s.variant))
        if tried is not None and 0 <= sum(s.counts) - tried <= foresight.NEWER_SHARE * s.budget.limit:
            return True
        return known is not None and foresight.is_in_force(s, known)

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Let go of what was foreseen for these sessions, also of what is just being worked out."""
        for key in keys:
            self._at_work.pop(key, None)
        for name in [name for name in (*self._made, *self._in_vain) if name[0] in keys]:
            self._let_go(name)

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> None:
        """Let go of what was foreseen for a session: it may tell of these messages."""
        await self.erase([key])

    async def _look(self, key: SessionKey, own: object, s: Situation, summary: Told | None) -> None:
        try:
            ready = await summary() if summary else None
            if summary and ready is None:
                return
            async with nullcontext() if ready else self._lull.piece():  # with the summary the very next request would have to work it out
                if not await self._is_as_it_was(key, s):
                    return
                told = replace(s, summaries=[*s.summaries, ready]) if ready else s
                made = await asyncio.to_thread(foresight.foresee, told, plan)
            if self._at_work.get(key) is own:  # else it was erased meanwhile
                self._keep((key, s.variant), made, sum(s.counts))
        finally:
            if self._at_work.get(key) is own:
                del self._at_work[key]

    async def _is_as_it_was(self, key: SessionKey, s: Situation) -> bool:
        """Whether nothing was forgotten since a request read what it was made from: an answer may take minutes."""
        session = await self._store.session(key)
        return session is not None and session.forgotten == s.forgotten

    def _keep(self, name: _Name, made: Foreseen | None, tokens: int) -> None:
        self._let_go(name)
        if made is None:
            self._in_vain[name] = tokens
            if len(self._in_vain) > MOST_IN_VAIN:
                self._in_vain.popitem(last=False)
            return
        self._made[name] = made
        self._left -= _size_of(made)
        while self._left < 0:
            self._let_go(next(iter(self._made)))

    def _let_go(self, name: _Name) -> None:
        self._in_vain.pop(name, None)
        made = self._made.pop(name, None)
        self._left += _size_of(made) if made is not None else 0


def _size_of(made: Foreseen) -> int:
    entries, left = made.decision.entries, made.decision.left
    tips = sum(len(entry.covers) for entry in entries) + sum(len(one.tips) for one in left)
    return sum(ENTRY_BYTES + len(entry.raw or b"") for entry in entries) + TIP_BYTES * tips
