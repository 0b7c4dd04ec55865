"""What each effect does to the tables, inside a transaction that the caller holds.

An effect on a session that is not there does nothing: after an erase nothing may bring it back in parts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from operator import add, attrgetter
from typing import assert_never

from ctxproxy.core.effects import (
    AppendMessages,
    Choose,
    CountUse,
    DropDue,
    DropPin,
    Effect,
    Forget,
    MadeOf,
    MoveTip,
    OpenSession,
    PutCheckpoint,
    PutDue,
    PutPin,
    PutSummary,
    PutWindow,
    SessionEffect,
)
from ctxproxy.core.messages import ROOT, Tip
from ctxproxy.core.records import SessionKey, Spent, StoredMessage
from ctxproxy.store.lineage import descendants
from ctxproxy.store.queries import named_queries, placed
from ctxproxy.store.rows import (
    Row,
    Values,
    checkpoint_values,
    choice_values,
    due_values,
    key_values,
    message_values,
    opening_values,
    pack,
    summary_values,
    unpack,
    window_values,
)
from ctxproxy.store.sqlite_points import forget_points

SPENT = tuple(one.name for one in fields(Spent))
COUNTERS = ("requests", "tokens_in", "tokens_sent", "compactions")
USED = (*COUNTERS, *SPENT)
"""The columns that a `CountUse` adds to."""
UNUSED = (0,) * len(USED)
_counted, _spent = attrgetter(*COUNTERS), attrgetter(*SPENT)


class Refused(Exception):
    """A required MoveTip found another tip, or an OpenSession not the session that it goes on with: nothing of its list may stay."""


@dataclass(slots=True)
class _Session:
    """A session's row, and what a list of effects changes of it: written once, at the list's end."""

    id: int
    tip: Tip
    stored: int
    """Messages that it has."""
    messages: int = 0
    turns: int = 0
    used: Sequence[float] = UNUSED
    is_changed: bool = False
    late: Collection[Tip] = ()
    """Nothing made of a history up to one of these is kept: a message of it was forgotten meanwhile."""
    is_unpinned: bool = False
    """No checkpoint is kept: a pin has gone meanwhile."""

    def changes(self) -> Values:
        return {"session": self.id, "tip": self.tip, "messages": self.messages, "turns": self.turns, **dict(zip(USED, self.used, strict=True))}


class EffectWriter:
    """Carries effects out on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._queries = {name: placed(query) for name, query in named_queries("writes.sql").items()}

    def carry_out(self, effects: Sequence[Effect]) -> bool:
        """Do all; False if a MoveTip found another tip, Refused where nothing of the list may stay: then the caller undoes it."""
        sessions: dict[SessionKey, _Session | None] = {}
        outcomes = [self._one(effect, sessions) for effect in effects]
        for session in sessions.values():
            if session is not None and session.is_changed:
                self._run("change_session", **session.changes())
        return all(outcomes)

    def erase(self, key: SessionKey) -> bool:
        """Delete a session's rows and the bodies that no other session shares; False if it was not there."""
        session = self.session_id(key)
        if session is None:
            return False
        self.drop_preloads(session)
        self._run("drop_bodies", session=session)
        self._run("drop_session", session=session)
        self.note_erasure()
        return True

    def drop_preloads(self, session: int) -> None:
        """Drop what other sessions began with that tells of this one."""
        self._run("drop_preloads", session=session)

    def note_erasure(self) -> None:
        """Note that traces of something erased may still be in free space."""
        self._run("note_erasure")

    def erasure_due(self) -> bool:
        """Whether traces of something erased may still be in free space."""
        return bool(self._row("erasure_due")[0])

    def merge_terms(self) -> None:
        """Have the full-text index rewritten without what was deleted: until then it only marks it so (sqlite.org/fts5.html)."""
        self._run("merge_terms")

    def erasures_done(self) -> None:
        """Note that no trace is left."""
        self._run("erasures_done")

    def _one(self, effect: Effect, sessions: dict[SessionKey, _Session | None]) -> bool:
        """`sessions` are those whose row was looked up for this list."""
        if isinstance(effect, OpenSession):
            if effect.made is not None and not self._run("is_there", **key_values(effect.key), made=effect.made).fetchone():
                raise Refused
            opened = _Session(*self._run("open_session", **opening_values(effect)).fetchone())
            sessions[effect.key] = sessions.get(effect.key) or opened
            return True
        if isinstance(effect, PutWindow):
            self._run("put_window", **window_values(effect.belief))
            return True
        if effect.key not in sessions:
            row = self._session_row(effect.key)
            sessions[effect.key] = _Session(*row) if row else None
        session = sessions[effect.key]
        if session is None:
            return not isinstance(effect, MoveTip) or _not_moved(effect)
        return self._change(session, effect)

    def _change(self, row: _Session, effect: SessionEffect) -> bool:
        session = row.id
        match effect:
            case MoveTip(expected=expected, to=to):
                if expected is not None and expected != row.tip:
                    return _not_moved(effect)
                row.tip, row.is_changed = to, True
            case Choose():
                self._run("choose", session=session, **choice_values(effect))
            case AppendMessages(messages=messages):
                new = self._append(row, messages)
                row.stored += len(new)
                row.messages += len(new)
                row.turns += sum([message.role == "user" for message in new])
                row.is_changed = row.is_changed or bool(new)
            case CountUse(spent=spent):
                row.used = list(map(add, row.used, (*_counted(effect), *_spent(spent))))
                row.is_changed = True
            case MadeOf():
                self._compare(row, effect)
            case PutCheckpoint() | PutSummary() | PutDue():
                self._decide(row, effect)
            case DropDue(kind=kind, tip=tip):
                self._run("drop_due", session=session, kind=kind, tip=tip)
            case PutPin(pin=pin):
                self._run("put_pin", session=session, number=pin.number, text=pack(pin.text), created=pin.created)
            case DropPin(number=number):
                self._run("drop_pin", session=session, number=number)
                self._run("drop_all_checkpoints", session=session)
            case Forget():
                self._forget(session, effect)
            case _:
                assert_never(effect)
        return True

    def _compare(self, row: _Session, effect: MadeOf) -> None:
        new = {tip for (tip,) in self._run("forgotten", session=row.id)} - effect.forgotten
        row.late = descendants(self._run("family", session=row.id), *new) if new else ()
        row.is_unpinned = not {unpack(text) for (text,) in self._run("pinned", session=row.id)}.issuperset(effect.pins)

    def _decide(self, row: _Session, effect: PutCheckpoint | PutSummary | PutDue) -> None:
        match effect:
            case PutCheckpoint(checkpoint=made) if not row.is_unpinned and made.tip not in row.late:
                self._run("put_checkpoint", session=row.id, **checkpoint_values(made))
            case PutSummary(summary=made) if made.tip not in row.late:
                self._run("put_summary", session=row.id, **summary_values(made))
            case PutDue(due=made) if made.tip not in row.late:
                self._run("put_due", session=row.id, **due_values(made))

    def _append(self, row: _Session, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
        """The messages that are new: only below a stored parent, so that what is stored stays closed towards the root, which `known` relies on."""
        session, stored, no_leaves = row.id, {ROOT}, {ROOT}
        new: dict[Tip, StoredMessage] = {}
        for at, message in enumerate(messages):
            is_new = message.tip not in new and (message.parent in new or not row.stored)  # below what was not there a moment ago
            if not is_new and (old := self._message(session, message.tip)):
                self._replace(session, old, message)
            elif message.parent in stored or self._message(session, message.parent):
                has_child = at + 1 < len(messages) and messages[at + 1].parent == message.tip
                self._insert(session, message, leaf=not has_child)
                if message.parent not in no_leaves:
                    self._run("no_leaf", session=session, tip=message.parent)
                no_leaves |= {message.parent, message.tip} if has_child else {message.parent}
                new[message.tip] = message
            else:
                continue
            stored = {ROOT, message.tip}
        return list(new.values())

    def _insert(self, session: int, message: StoredMessage, *, leaf: bool) -> None:
        values = message_values(message)
        body = self._put_body(message, values)
        self._run("insert_message", session=session, leaf=leaf, body=body, **values)

    def _replace(self, session: int, old: Row, message: StoredMessage) -> None:
        at, body, partial = old
        if partial and not message.partial:
            values = message_values(message)
            self._put_body(message, values)
            self._run("replace_message", id=at, **values)
            self._run("raise_revision", session=session)
            self._run("drop_body", body=body)

    def _put_body(self, message: StoredMessage, values: Values) -> int | None:
        """The number of a body's row where it was not there yet."""
        if not message.raw:
            return None
        done = self._run("put_body", digest=values["digest"], raw=message.raw)
        return done.lastrowid if done.rowcount == 1 else None

    def _forget(self, session: int, effect: Forget) -> None:
        self._run("forget", session=session, tip=effect.tip)
        self._run("drop_digest", session=session)
        self.drop_preloads(session)
        self._run("drop_chunks", session=session, tip=effect.tip)
        message = self._message(session, effect.tip)
        if message is None:
            return
        self._drop_decisions(session, effect.tip)
        if effect.erase:
            self._run("make_tombstone", id=message[0])
            self._run("raise_revision", session=session)
            self._run("drop_body", body=message[1])
            self.note_erasure()

    def _drop_decisions(self, session: int, tip: str) -> None:
        """Drop what may hold text of the message: its memory points, checkpoints, summaries and dues of any history that it is part of."""
        decided = {row[0] for row in self._run("decided_tips", session=session)}
        covers: set[str] = set()
        if decided:
            family = self._run("family", session=session).fetchall()
            covers = decided - ({ROOT, *(child for child, _ in family)} - descendants(family, tip))
        forget_points(self.connection, session, tip, covers)
        for covering in covers:
            self._run("drop_checkpoints", session=session, tip=covering)
            self._run("drop_summaries", session=session, tip=covering)
            self._run("drop_dues", session=session, tip=covering)

    def session_id(self, key: SessionKey) -> int | None:
        """The number of a session's row; None if it is not there."""
        row = self._session_row(key)
        return None if row is None else int(row[0])

    def _session_row(self, key: SessionKey) -> Row | None:
        row: Row | None = self._run("session_row", **key_values(key)).fetchone()
        return row

    def _message(self, session: int, tip: str) -> Row | None:
        row: Row | None = self._run("message", session=session, tip=tip).fetchone()
        return row

    def _row(self, name: str) -> Row:
        row: Row = self._run(name).fetchone()
        return row

    def _run(self, query_name: str, /, **values: object) -> sqlite3.Cursor:
        query = self._queries[query_name]
        return self.connection.execute(query.text, query.in_order(values))


def _not_moved(effect: MoveTip) -> bool:
    if effect.required:
        raise Refused
    return False
