"""Takes an exported session in: the whole file is checked first, and lies in a nameless temporary file meanwhile; then it is written in pieces."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from ctxproxy.core import headers
from ctxproxy.core.effects import AppendMessages, Choose, CountUse, Effect, Forget, MoveTip, OpenSession, PutCheckpoint, PutPin, PutSummary
from ctxproxy.core.portable import Extra, Item, Reader, named
from ctxproxy.core.records import Checkpoint, Pin, Session, StoredMessage, Summary
from ctxproxy.errors import BadRequest, BodyTooLarge, Conflict, NotFound
from ctxproxy.proxy.retention import DAY_S
from ctxproxy.proxy.state import State

MEGABYTE = 1_048_576
BODIES = 16
"""A file may be as large as so many requests (`listen.max_body_mb`), a line as large as two: base64 takes more room."""
PIECE_BYTES = 1 * MEGABYTE
"""Lines that are checked or written at once."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The session as it is now."""

    session: Session
    messages: int
    known_tenant: bool
    """Whether the tenant had sessions before: of another installation's no client here can reach the session."""


async def import_session(state: State, content: AsyncIterator[bytes], *, name: str | None, tenant: str | None) -> Imported:
    """Take a file in, under another name or tenant where they are given; raises BadRequest naming the line, BodyTooLarge, Conflict, NotFound."""
    settings = state.settings()
    body_bytes = int(settings.listen.max_body_mb * MEGABYTE)
    with tempfile.TemporaryFile(dir=Path(settings.data_dir)) as file:
        session, messages = await _checked(state, content, file, body_bytes)
        session = await _placed(state, session, name, tenant)
        known = bool(await state.store.tenants(session.key.tenant))
        if await state.store.session(session.key) is not None:
            raise Conflict(f"there is a session {session.key.id} already; give another name with ?as=NAME, or delete it first", param="as")
        await asyncio.to_thread(file.seek, 0)
        try:
            await _written(state, session, file)
        except BaseException:
            await asyncio.shield(state.eraser.session(session.key))
            raise
    found = await state.store.session(session.key)
    return Imported(found or session, messages, known)


async def _checked(state: State, content: AsyncIterator[bytes], file: IO[bytes], body_bytes: int) -> tuple[Session, int]:
    """Read all of a file, and put what is sound in the temporary one."""
    reader, session = _reader(state), None
    async for lines in _lines(content, body_bytes):
        items = await asyncio.to_thread(_taken, reader, lines)
        session = next((item for item in items if isinstance(item, Session)), session)
        await asyncio.to_thread(file.writelines, [line + b"\n" for line in lines])
    reader.finish()
    assert session is not None  # the reader demands it
    return session, reader.messages


def _reader(state: State) -> Reader:
    return Reader({section.kind: section.check for section in state.sections})


def _taken(reader: Reader, lines: Iterable[bytes]) -> list[Item]:
    return [item for line in lines if (item := reader.take(line)) is not None]


async def _lines(content: AsyncIterator[bytes], body_bytes: int) -> AsyncIterator[list[bytes]]:
    """Whole lines, some at a time; blank ones at the end are none."""
    size, rest, ready, ready_bytes = 0, bytearray(), list[bytes](), 0
    async for chunk in content:
        size += len(chunk)
        if size > BODIES * body_bytes:
            raise BodyTooLarge(f"the file is larger than {BODIES} × listen.max_body_mb ({BODIES * body_bytes} bytes); raise it to import this one")
        rest += chunk
        *whole, tail = rest.split(b"\n")
        if len(tail) > 2 * body_bytes:
            raise BodyTooLarge(f"a line is longer than 2 × listen.max_body_mb ({2 * body_bytes} bytes); raise it to import this file")
        rest = bytearray(tail)
        ready += map(bytes, whole)
        ready_bytes += len(chunk)
        if ready_bytes >= PIECE_BYTES:
            yield ready
            ready, ready_bytes = [], 0
    yield [*ready, *([bytes(rest)] if rest.strip() else [])]


async def _placed(state: State, session: Session, name: str | None, tenant: str | None) -> Session:
    """The session under its name and tenant here, and with a time of use that no sweep takes for long ago."""
    own = headers.session_name([session.key.name if name is None else name], "as" if name is not None else "line 1: name")
    if own is None:
        raise BadRequest("as must not be empty", param="as")
    session = named(session, session.key.tenant if tenant is None else await _tenant(state, tenant), own)
    days, now = state.settings().sessions.retention_days, state.clock()
    return replace(session, last_used=now) if days is not None and session.last_used < now - days * DAY_S else session


async def _tenant(state: State, given: str) -> str:
    found = await state.store.tenants(given) if given else []
    if not found:
        raise NotFound(f"no session here has a tenant that begins with {given!r}; GET sessions shows them", param="tenant")
    if len(found) > 1:
        raise Conflict(f"{given!r} is the beginning of {len(found)} tenants; give all 32 hex digits", param="tenant")
    return found[0]


async def _written(state: State, session: Session, file: IO[bytes]) -> None:
    """Write what was checked: the log first, then what was forgotten of it, then what was made of the rest."""
    reader, forgotten = _reader(state), False
    sections, key = {section.kind: section for section in state.sections}, session.key
    await state.store.apply(_opened(session))
    while lines := await asyncio.to_thread(file.readlines, PIECE_BYTES):
        items = await asyncio.to_thread(_taken, reader, lines)
        others = [item for item in items if not isinstance(item, Session | StoredMessage)]
        await state.store.apply([AppendMessages(key, tuple(item for item in items if isinstance(item, StoredMessage)))])
        if others and not forgotten:
            await state.store.apply(_forgotten(session))
            forgotten = True
        await state.store.apply([_kept(session, item) for item in others if not isinstance(item, Extra)])
        for item in others:
            if isinstance(item, Extra):
                await sections[item.kind].put(session, item.value)
    await state.store.apply([*([] if forgotten else _forgotten(session)), *_closed(session)])


def _opened(session: Session) -> list[Effect]:
    as_there = (session.manner, session.frame, session.system, session.model, session.profile, session.fixed_tokens, session.recall, session.user)
    counts = CountUse(session.key, session.requests, session.tokens_in, session.tokens_sent, session.compactions, session.spent)
    chosen = Choose(session.key, session.kept, session.cleared, session.overrides, session.tag)
    return [OpenSession(session.key, session.created, *as_there), chosen, counts]


def _forgotten(session: Session) -> list[Effect]:
    return [Forget(session.key, tip) for tip in sorted(session.forgotten)]


def _closed(session: Session) -> list[Effect]:
    return [OpenSession(session.key, session.last_used), MoveTip(session.key, None, session.tip)]


def _kept(session: Session, item: Checkpoint | Summary | Pin) -> Effect:
    match item:
        case Checkpoint():
            return PutCheckpoint(session.key, item)
        case Summary():
            return PutSummary(session.key, item)
        case Pin():
            return PutPin(session.key, item)
