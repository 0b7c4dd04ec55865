"""A store that lives as long as the process: the same contract as the others, nothing on disk."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from ctxproxy.core.effects import (
    AppendMessages,
    Choose,
    CountUse,
    DropPin,
    Effect,
    Forget,
    MoveTip,
    OpenSession,
    PutCheckpoint,
    PutPin,
    PutSummary,
    PutWindow,
)
from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.records import NOTHING_SPENT, Checkpoint, Located, Page, Pin, Session, SessionKey, StoredMessage, Summary, Totals, WindowBelief
from ctxproxy.errors import StoreUnavailable
from ctxproxy.store.lineage import descendants
from ctxproxy.store.memory_retention import MemoryRetention
from ctxproxy.store.pages import Place, cursor_of, page_size, place_of


@dataclass(slots=True)
class _Kept:
    """All that is kept of one session; dicts stand in the order of writing."""

    serial: int
    session: Session
    messages: dict[Tip, StoredMessage] = field(default_factory=dict)
    parents: set[Tip] = field(default_factory=set)
    checkpoints: dict[tuple[Tip, str], Checkpoint] = field(default_factory=dict)
    summaries: dict[Tip, Summary] = field(default_factory=dict)
    pins: dict[int, Pin] = field(default_factory=dict)

    def copy(self) -> _Kept:
        kept = (self.messages.copy(), self.parents.copy(), self.checkpoints.copy(), self.summaries.copy(), self.pins.copy())
        return _Kept(self.serial, self.session, *kept)

    @property
    def place(self) -> Place:
        return Place(self.session.last_used, self.serial)


class MemoryStore:
    """`ports.Store` in dictionaries, bounded only by what it is given."""

    def __init__(self) -> None:
        self._kept: dict[SessionKey, _Kept] = {}
        self._windows: dict[tuple[str, str], WindowBelief] = {}
        self._serial = 0
        self._closed = False
        self.retention = MemoryRetention(lambda: [kept.session for kept in self._everyone() if not kept.pins], self.erase)

    async def session(self, key: SessionKey) -> Session | None:
        kept = self._of(key)
        return kept.session if kept else None

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

    async def leaves(self, key: SessionKey) -> list[Tip]:
        kept = self._of(key)
        return [tip for tip in reversed(kept.messages) if tip not in kept.parents] if kept else []

    async def checkpoints(self, key: SessionKey, tips: Collection[Tip]) -> list[Checkpoint]:
        wanted = frozenset(tips)
        return [checkpoint for checkpoint in await self.all_checkpoints(key) if checkpoint.tip in wanted]

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

    async def windows(self) -> list[WindowBelief]:
        self._check_open()
        return [self._windows[name] for name in sorted(self._windows)]

    async def locate(self, tip_prefix: str) -> list[Located]:
        self._check_open()
        prefix = tip_prefix.lower()
        found = [(tip, kept) for kept in self._kept.values() for tip in kept.messages if prefix and tip.startswith(prefix)]
        found.sort(key=lambda pair: (pair[0], pair[1].serial))
        return [Located(kept.session.key, kept.messages[tip]) for tip, kept in found[:10]]

    async def sessions(self, limit: int, cursor: str | None, query: str) -> Page:
        self._check_open()
        below = place_of(cursor)
        found = [kept for kept in self._kept.values() if kept.place < below and query in kept.session.key.name]
        found.sort(key=lambda kept: kept.place, reverse=True)
        page = found[: page_size(limit)]
        return Page(tuple(kept.session for kept in page), cursor_of(page[-1].place) if len(found) > len(page) else None)

    async def find(self, name: str) -> list[Session]:
        self._check_open()
        return [kept.session for kept in self._kept.values() if kept.session.key.name == name]

    async def of_user(self, tenant: str, user: str, limit: int) -> list[Session]:
        found = [kept for kept in self._everyone() if (kept.session.key.tenant, kept.session.user) == (tenant, user)]
        return [kept.session for kept in sorted(found, key=lambda kept: kept.place, reverse=True)[:limit]]

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
        if any(isinstance(effect, MoveTip) and effect.required for effect in effects):
            return self._all_or_nothing(effects)
        outcomes = [self._carry_out(effect) for effect in effects]
        return all(outcomes)

    async def erase(self, key: SessionKey) -> bool:
        self._check_open()
        return self._kept.pop(key, None) is not None

    async def ping(self) -> None:
        self._check_open()

    async def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")

    def _everyone(self) -> list[_Kept]:
        self._check_open()
        return list(self._kept.values())

    def _of(self, key: SessionKey) -> _Kept | None:
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
            return _change(kept, effect)
        else:  # erased in the meantime: nothing may bring it back in parts
            return not isinstance(effect, MoveTip)
        return True

    def _open(self, effect: OpenSession) -> None:
        kept = self._kept.get(effect.key)
        if kept is None:
            self._serial += 1
            kept = self._kept[effect.key] = _Kept(self._serial, Session(effect.key, created=effect.now, recall=effect.recall))
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


_Change = Choose | AppendMessages | MoveTip | CountUse | PutCheckpoint | PutSummary | PutPin | DropPin | Forget


def _change(kept: _Kept, effect: _Change) -> bool:
    match effect:
        case MoveTip():
            return _move_tip(kept, effect)
        case Choose():
            kept.session = _chosen(kept.session, effect)
        case AppendMessages():
            _append(kept, effect.messages)
        case CountUse():
            _count(kept, effect)
        case PutCheckpoint(checkpoint=checkpoint):
            kept.checkpoints.pop((checkpoint.tip, checkpoint.variant), None)
            kept.checkpoints[checkpoint.tip, checkpoint.variant] = checkpoint
        case PutSummary(summary=summary):
            old = kept.summaries.get(summary.tip)
            if old is None or old.kind != "llm" or summary.kind == "llm":
                kept.summaries[summary.tip] = summary
        case PutPin(pin=pin):
            kept.pins[pin.number] = pin
        case DropPin(number=number):
            kept.pins.pop(number, None)
        case Forget():
            _forget(kept, effect)
        case _:
            assert_never(effect)
    return True


def _chosen(session: Session, effect: Choose) -> Session:
    return replace(
        session,
        kept=session.kept if effect.kept is None else effect.kept,
        cleared=session.cleared if effect.cleared is None else effect.cleared,
        overrides=session.overrides if effect.overrides is None else dict(effect.overrides),
        tag=session.tag if effect.tag is None else effect.tag,
    )


def _move_tip(kept: _Kept, effect: MoveTip) -> bool:
    if effect.expected not in (None, kept.session.tip):
        return False
    kept.session = replace(kept.session, tip=effect.to)
    return True


def _append(kept: _Kept, messages: Sequence[StoredMessage]) -> None:
    for message in messages:
        old = kept.messages.get(message.tip)
        if old is None and (message.parent == ROOT or message.parent in kept.messages):
            kept.messages[message.tip] = message
            kept.parents.add(message.parent)
            turns = kept.session.turns + (message.role == "user")
            kept.session = replace(kept.session, messages=kept.session.messages + 1, turns=turns)
        elif old is not None and old.partial and not message.partial:
            kept.messages[message.tip] = replace(message, parent=old.parent)


def _count(kept: _Kept, use: CountUse) -> None:
    session = kept.session
    kept.session = replace(
        session,
        requests=session.requests + use.requests,
        tokens_in=session.tokens_in + use.tokens_in,
        tokens_sent=session.tokens_sent + use.tokens_sent,
        compactions=session.compactions + use.compactions,
        spent=session.spent + use.spent,
    )


def _forget(kept: _Kept, effect: Forget) -> None:
    kept.session = replace(kept.session, forgotten=kept.session.forgotten | {effect.tip})
    message = kept.messages.get(effect.tip)
    if message is None:
        return
    if effect.erase:
        kept.messages[effect.tip] = replace(message, raw=b"", partial=False)
    after = descendants(((m.tip, m.parent) for m in kept.messages.values()), effect.tip)
    apart = (kept.messages.keys() | {ROOT}) - after
    kept.checkpoints = {at: one for at, one in kept.checkpoints.items() if at[0] in apart}
    kept.summaries = {tip: one for tip, one in kept.summaries.items() if tip in apart}
