"""A session as a stream of lines: never more of it in memory than a page of its log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ctxproxy.core.portable import end_line, extra_line, message_line, record_line, session_line
from ctxproxy.core.records import Session, StoredMessage
from ctxproxy.proxy.state import State

PAGE_MESSAGES = 64


async def export_lines(state: State, session: Session) -> AsyncIterator[bytes]:
    """The file of a session in pieces of whole lines; raises StoreUnavailable."""
    count = 0
    async for lines in _pieces(state, session):
        count += len(lines)
        yield _joined(lines)
    yield _joined([end_line(count)])


async def _pieces(state: State, session: Session) -> AsyncIterator[list[bytes]]:
    yield [session_line(session)]
    after: int | None = 0
    while after is not None:
        page = await state.store.log(session.key, after, PAGE_MESSAGES)
        yield await asyncio.to_thread(_message_lines, page.messages)
        after = page.following
    for checkpoint in reversed(await state.store.all_checkpoints(session.key)):  # oldest first, so that they stand in the same order again
        yield [record_line(checkpoint)]
    yield [record_line(summary) for summary in await state.store.summaries(session.key, None)]
    yield [record_line(pin) for pin in await state.store.pins(session.key)]
    for section in state.sections:
        async for value in section.lines(session):
            yield [extra_line(section.kind, value)]


def _message_lines(rows: tuple[StoredMessage, ...]) -> list[bytes]:
    return [message_line(row) for row in rows]


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
