"""What each effect does to what is kept of a session in dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from ctxproxy.core.dues import Due, DueKind, kind_of
from ctxproxy.core.effects import (
    AppendMessages,
    Choose,
    CountUse,
    DropDue,
    DropPin,
    Forget,
    MadeOf,
    MoveTip,
    PutCheckpoint,
    PutDue,
    PutPin,
    PutSummary,
    SessionEffect,
)
from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.records import Checkpoint, Pin, Session, StoredMessage, Summary
from ctxproxy.store.lineage import descendants
from ctxproxy.store.memory_carryover import KeptCarryover
from ctxproxy.store.memory_facts import KeptPoints
from ctxproxy.store.memory_sharing import KeptSharing
from ctxproxy.store.pages import Place


@dataclass(slots=True)
class Kept:
    """All that is kept of one session; dicts stand in the order of writing."""

    serial: int
    session: Session
    messages: dict[Tip, StoredMessage] = field(default_factory=dict)
    parents: set[Tip] = field(default_factory=set)
    checkpoints: dict[tuple[Tip, str], Checkpoint] = field(default_factory=dict)
    summaries: dict[Tip, Summary] = field(default_factory=dict)
    dues: dict[tuple[DueKind, Tip], Due] = field(default_factory=dict)
    pins: dict[int, Pin] = field(default_factory=dict)
    carryover: KeptCarryover = field(default_factory=KeptCarryover)
    points: KeptPoints = field(default_factory=KeptPoints)
    sharing: KeptSharing = field(default_factory=KeptSharing)
    late: Collection[Tip] = ()
    """Within a list of effects: nothing made of a history up to one of these is kept, a message of it was forgotten meanwhile."""
    is_unpinned: bool = False
    """Within a list of effects: no checkpoint is kept, a pin has gone meanwhile."""

    def copy(self) -> Kept:
        kept = (self.messages.copy(), self.parents.copy(), self.checkpoints.copy(), self.summaries.copy(), self.dues.copy(), self.pins.copy())
        beside = (self.carryover.copy(), self.points.copy(), self.sharing.copy())
        return Kept(self.serial, self.session, *kept, *beside)

    @property
    def told(self) -> Session:
        """The session as a store gives it."""
        tip = self.session.tip
        decided = bool(self.checkpoints or self.summaries or self.pins)
        return replace(self.session, has_decisions=decided, is_leaf=tip in self.messages and tip not in self.parents)

    @property
    def branches(self) -> frozenset[Tip]:
        """The newest message of each, but for those that were forgotten or erased."""
        ends = self.messages.keys() - self.parents - self.session.forgotten
        return frozenset(tip for tip in ends if self.messages[tip].raw)

    @property
    def place(self) -> Place:
        return Place(self.session.last_used, self.serial)


def change(kept: Kept, effect: SessionEffect) -> bool:
    """Carry an effect out; False if a tip was not moved."""
    match effect:
        case MoveTip():
            return _move_tip(kept, effect)
        case Choose():
            kept.session = _chosen(kept.session, effect)
        case AppendMessages():
            _append(kept, effect.messages)
        case CountUse():
            _count(kept, effect)
        case MadeOf():
            _compare(kept, effect)
        case PutCheckpoint() | PutSummary() | PutDue():
            _decide(kept, effect)
        case DropDue(kind=kind, tip=tip):
            kept.dues.pop((kind, tip), None)
        case PutPin(pin=pin):
            kept.pins[pin.number] = pin
        case DropPin(number=number):
            kept.pins.pop(number, None)
            kept.checkpoints.clear()
        case Forget():
            _forget(kept, effect)
        case _:
            assert_never(effect)
    return True


def _compare(kept: Kept, effect: MadeOf) -> None:
    new = kept.session.forgotten - effect.forgotten
    kept.late = descendants(((m.tip, m.parent) for m in kept.messages.values()), *new)
    kept.is_unpinned = not {pin.text for pin in kept.pins.values()}.issuperset(effect.pins)


def _decide(kept: Kept, effect: PutCheckpoint | PutSummary | PutDue) -> None:
    match effect:
        case PutCheckpoint(checkpoint=made) if not kept.is_unpinned and made.tip not in kept.late:
            kept.checkpoints.pop((made.tip, made.variant), None)
            kept.checkpoints[made.tip, made.variant] = made
        case PutSummary(summary=made) if made.tip not in kept.late:
            old = kept.summaries.get(made.tip)
            if old is None or old.kind != "llm" or made.kind == "llm":
                kept.summaries[made.tip] = made
        case PutDue(due=made) if made.tip not in kept.late:
            kept.dues.pop((kind_of(made), made.tip), None)
            kept.dues[kind_of(made), made.tip] = made


def _chosen(session: Session, effect: Choose) -> Session:
    return replace(
        session,
        kept=session.kept if effect.kept is None else effect.kept,
        cleared=session.cleared if effect.cleared is None else effect.cleared,
        overrides=session.overrides if effect.overrides is None else dict(effect.overrides),
        tag=session.tag if effect.tag is None else effect.tag,
    )


def _move_tip(kept: Kept, effect: MoveTip) -> bool:
    if effect.expected not in (None, kept.session.tip):
        return False
    kept.session = replace(kept.session, tip=effect.to)
    return True


def _append(kept: Kept, messages: Sequence[StoredMessage]) -> None:
    for message in messages:
        old = kept.messages.get(message.tip)
        if old is None and (message.parent == ROOT or message.parent in kept.messages):
            kept.messages[message.tip] = message
            kept.parents.add(message.parent)
            turns = kept.session.turns + (message.role == "user")
            kept.session = replace(kept.session, messages=kept.session.messages + 1, turns=turns)
        elif old is not None and old.partial and not message.partial:
            kept.messages[message.tip] = replace(message, parent=old.parent)


def _count(kept: Kept, use: CountUse) -> None:
    session = kept.session
    kept.session = replace(
        session,
        requests=session.requests + use.requests,
        tokens_in=session.tokens_in + use.tokens_in,
        tokens_sent=session.tokens_sent + use.tokens_sent,
        compactions=session.compactions + use.compactions,
        spent=session.spent + use.spent,
    )


def _forget(kept: Kept, effect: Forget) -> None:
    kept.session = replace(kept.session, forgotten=kept.session.forgotten | {effect.tip})
    kept.carryover.digest = None
    message = kept.messages.get(effect.tip)
    if message is None:
        return
    if effect.erase:
        kept.messages[effect.tip] = replace(message, raw=b"", partial=False)
    if not (kept.checkpoints or kept.summaries or kept.dues or kept.points.by_number):
        return
    after = descendants(((m.tip, m.parent) for m in kept.messages.values()), effect.tip)
    apart = (kept.messages.keys() | {ROOT}) - after
    kept.checkpoints = {at: one for at, one in kept.checkpoints.items() if at[0] in apart}
    kept.summaries = {tip: one for tip, one in kept.summaries.items() if tip in apart}
    kept.dues = {at: one for at, one in kept.dues.items() if at[1] in apart}
    kept.points.forget(effect.tip, after)
