"""Memory points in dictionaries: the same contract as in a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.points import MAX_POINTS, MAX_USER_SESSIONS, MemoryPoint, Point, PointChanges, Unread, heir
from ctxproxy.core.records import Session, SessionKey, Span, StoredMessage


@dataclass(slots=True)
class KeptPoints:
    """The points of one session by number."""

    by_number: dict[int, MemoryPoint] = field(default_factory=dict)
    read_to: Tip = ROOT
    """The last written of the messages that were read."""

    def copy(self) -> KeptPoints:
        return KeptPoints(self.by_number.copy(), self.read_to)

    def put(self, key: SessionKey, user: str, changes: PointChanges) -> None:
        """Carry changes out but for what is taken back, which may be of other sessions, too."""
        numbers = [self._put_one(key, user, point) for point in changes.new]
        for number, at in changes.replaced:
            by, old = numbers[at], self.by_number.get(number)
            if by is not None and old is not None and old.in_force:
                self.by_number[number] = replace(old, superseded_by=by)

    def _put_one(self, key: SessionKey, user: str, point: Point) -> int | None:
        same = [one for one in self.by_number.values() if (one.point.kind, one.point.key) == (point.kind, point.key)]
        in_force = [one for one in same if one.in_force]
        if point.kind == "anchor" and in_force:
            for one in in_force:
                seen = replace(one.point, time=point.time, weight=max(one.point.weight, point.weight))
                self.by_number[one.number] = replace(one, point=seen)
            return None
        if any((one.point.tip, one.point.value) == (point.tip, point.value) for one in same):
            return None
        number = max(self.by_number, default=0) + 1
        newer = [one for one in in_force if one.point.time > point.time and one.point.source == "rules"]
        late = max(newer, key=lambda one: (one.point.time, one.number)).number if newer else None
        self.by_number[number] = MemoryPoint(number, point, key, user, late)
        self.by_number |= {one.number: replace(one, superseded_by=number) for one in in_force if one not in newer}
        return number

    def take_back(self, number: int) -> None:
        """End a point."""
        one = self.by_number.get(number)
        if one is not None and one.superseded_by is None:
            self.by_number[number] = replace(one, taken_back=True)

    def prune(self) -> None:
        """Keep the MAX_POINTS weightiest, those in force first, then the newest."""
        ranked = sorted(self.by_number.values(), key=lambda one: (one.in_force, one.point.weight, one.point.time, one.number), reverse=True)
        self._remove({one.number for one in ranked[MAX_POINTS:]})

    def drop(self, number: int) -> bool:
        """Delete a point with all that it took the place of; False if it is not there."""
        if number not in self.by_number:
            return False
        gone = {number}
        while more := {one.number for one in self.by_number.values() if one.superseded_by in gone} - gone:
            gone |= more
        self._remove(gone)
        return True

    def forget(self, tip: Tip, covering: Collection[Tip]) -> None:
        """Delete what a message told, and what summaries over it told; what that took the place of holds again, unless something newer does."""
        points = self.by_number.values()
        self._remove({one.number for one in points if one.point.tip == tip or (one.point.source == "summary" and one.point.tip in covering)})

    def _remove(self, numbers: Collection[int]) -> None:
        left = {n: one for n, one in self.by_number.items() if n not in numbers}
        gone = {n: one.superseded_by for n, one in self.by_number.items() if n not in left}
        heirs = {n: heir(one.superseded_by, gone) for n, one in left.items()}
        self.by_number = {n: replace(one, superseded_by=by if (by := heirs[n]) in left else None) for n, one in left.items()}


class MemoryFacts:
    """`ports.Facts` over what the store keeps of each session; all functions raise StoreUnavailable once it is closed."""

    def __init__(
        self,
        of: Callable[[SessionKey], KeptPoints | None],
        everyone: Callable[[], Iterable[tuple[Session, KeptPoints]]],
        messages: Callable[[SessionKey], dict[Tip, StoredMessage]],
    ) -> None:
        """`messages` gives those of a session in the order of writing."""
        self._of = of
        self._everyone = everyone
        self._messages = messages

    async def put(self, key: SessionKey, user: str, changes: PointChanges, read_to: Tip = ROOT) -> bool:
        kept = self._of(key)
        if kept is None:
            return False
        kept.read_to = next((tip for tip in reversed(self._messages(key)) if tip in (read_to, kept.read_to)), kept.read_to)
        kept.put(key, user, changes)
        for session, number in changes.taken_back:
            if there := self._of(session):
                there.take_back(number)
        kept.prune()
        return True

    async def unread(self, limit: int) -> list[Unread]:
        waiting = [(s, span) for s, kept in self._everyone() if (span := self._behind(s, kept.read_to))]
        waiting.sort(key=lambda one: one[0].last_used)
        return [Unread(s.key, s.user, span) for s, span in reversed(waiting)][:limit]

    def _behind(self, session: Session, read_to: Tip) -> Span | None:
        """What of the conversation was written after a message."""
        messages = self._messages(session.key)
        old = set(takewhile(lambda tip: tip != read_to, messages)) | {read_to} if read_to else {ROOT}
        after = session.tip
        while after in messages and after not in old:
            after = messages[after].parent
        return None if after == session.tip else Span(after, session.tip)

    async def take(self, key: SessionKey, points: Sequence[MemoryPoint]) -> bool:
        kept = self._of(key)
        if kept is not None:
            kept.by_number = {one.number: replace(one, session=key) for one in points}
            kept.read_to = next(reversed(self._messages(key)), ROOT)
        return kept is not None

    async def of(self, key: SessionKey) -> list[MemoryPoint]:
        kept = self._of(key)
        return [kept.by_number[number] for number in sorted(kept.by_number)] if kept else []

    async def of_user(self, tenant: str, user: str, limit: int) -> list[MemoryPoint]:
        theirs = [(s.last_used, at, kept) for at, (s, kept) in enumerate(self._everyone()) if (s.key.tenant, s.user) == (tenant, user)]
        latest = sorted(theirs, key=lambda one: one[:2], reverse=True)[:MAX_USER_SESSIONS]
        found = [(at, one) for _, at, kept in latest for one in kept.by_number.values() if one.in_force and one.user == user]
        found.sort(key=lambda pair: (pair[1].point.kind != "anchor", pair[1].point.time, pair[0], pair[1].number), reverse=True)
        return [one for _, one in found[:limit]]

    async def drop(self, key: SessionKey, number: int) -> bool:
        kept = self._of(key)
        return kept is not None and kept.drop(number)

    async def tenants(self, user: str) -> list[str]:
        return sorted({session.key.tenant for session, _ in self._everyone() if session.user == user})
