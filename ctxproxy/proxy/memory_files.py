"""The memory files under `data_dir`: `memory/<tenant>/<session or user>/YYYY-MM-DD.md`, one for each day on which something left a prompt.

Nobody but the owner may read them. Several processes may write: whoever writes into a folder holds its lock, and a section is one write.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from ctxproxy.core.distilling import Item, Source, items_in
from ctxproxy.core.distilling import rendered as distilled_text
from ctxproxy.core.distilling import without as distilled_without
from ctxproxy.core.memory_notes import Note, folder_of, mark, notes_in, opening, rendered, safe_name, without
from ctxproxy.core.messages import Tip
from ctxproxy.core.records import SessionKey
from ctxproxy.proxy.claims import claimed

if sys.platform != "win32":
    import fcntl

FOLDER = "memory"
DISTILLED, DIARY, ROUND = "MEMORY.md", "DIARY.md", "last-round"
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
TRIES = 3
"""How often a folder is made that an erasing takes away before anything is in it."""
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """A section of a daily file."""

    day: str
    """`YYYY-MM-DD`."""
    note: Note


class MemoryFiles:
    """The files of one `data_dir`; every method works in a thread and raises OSError."""

    def __init__(self, data_dir: Path) -> None:
        self._root = data_dir / FOLDER

    async def add(self, tenant: str, user: str, day: str, note: Note) -> bool:
        """Append a section to the day's file; False where any day's file has one of this session and tip already."""
        return await asyncio.to_thread(self._add, self._folder(tenant, folder_of(note.session, user)), day, note)

    async def entries(self, key: SessionKey, user: str) -> list[Entry]:
        """What a session may know: the sections of its own folder and, where it has a user, of all the user's sessions; oldest first."""
        names = {safe_name(key.name), folder_of(key.name, user)}
        return await asyncio.to_thread(_entries, [self._folder(key.tenant, name) for name in sorted(names)])

    async def of_user(self, tenant: str, user: str) -> list[Entry]:
        """The sections of a user's folder, oldest first."""
        return await asyncio.to_thread(_entries, [self._folder(tenant, folder_of("", user))])

    async def erase(self, keys: Collection[SessionKey]) -> int:
        """Take every section of these sessions out, in whichever folder of their tenants it is; how many files that changed."""
        return await asyncio.to_thread(self._taken_out, {key.tenant for key in keys}, lambda tenant, note: SessionKey(tenant, note.session) in keys)

    async def forget(self, key: SessionKey, tips: Collection[Tip]) -> int:
        """The same for the sections of a session that reach up to one of these messages."""
        wanted = frozenset(tips)
        return await asyncio.to_thread(self._taken_out, {key.tenant}, lambda _, note: note.session == key.name and note.tip in wanted)

    async def distilled(self, tenant: str, session: str, user: str) -> str:
        """The text of `MEMORY.md`; "" where there is none."""
        return await asyncio.to_thread(_if_there, self._folder(tenant, folder_of(session, user)) / DISTILLED)

    async def put_distilled(self, tenant: str, folder: str, items: Sequence[Item], read: Collection[str], told: str) -> int:
        """Write `MEMORY.md` without the items whose sections are gone by now, and a line of the diary; how many items it has."""
        return await asyncio.to_thread(_put_distilled, self._folder(tenant, folder), items, read, told)

    async def folders(self) -> list[tuple[str, str]]:
        """Tenant and name of every folder."""
        return await asyncio.to_thread(lambda: [(tenant.name, one.name) for tenant in _folders(self._root) for one in _folders(tenant)])

    async def in_folder(self, tenant: str, folder: str) -> tuple[list[Entry], str]:
        """The sections of a folder, oldest first, and its `MEMORY.md`."""
        path = self._folder(tenant, folder)
        return await asyncio.to_thread(lambda: (_entries([path]), _if_there(path / DISTILLED)))

    async def last_round(self) -> date | None:
        """The day whose notes were distilled last, in all folders; None if none was."""
        return await asyncio.to_thread(_day_in, self._root / ROUND)

    async def note_round(self, day: date) -> None:
        """Keep that a day's notes were distilled; without any folder there is nothing to keep it in."""
        await asyncio.to_thread(lambda: _replace(self._root / ROUND, f"{day}\n") if self._root.is_dir() else None)

    @contextlib.contextmanager
    def distilling(self) -> Iterator[bool]:
        """Whether nobody else makes a `MEMORY.md` here, among all processes; nobody begins to meanwhile."""
        if sys.platform == "win32" or not self._root.is_dir():
            yield True
            return
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW)
        try:
            yield claimed(descriptor)
        finally:
            os.close(descriptor)

    async def tenants_with(self, user: str) -> list[str]:
        """The tenants that have a folder for a user of this name."""
        return await asyncio.to_thread(lambda: [tenant.name for tenant in _folders(self._root) if (tenant / folder_of("", user)).is_dir()])

    def _folder(self, tenant: str, name: str) -> Path:
        return self._root / tenant / name

    def _add(self, folder: Path, day: str, note: Note) -> bool:
        for attempt in range(TRIES):
            try:
                with _locked(_made(folder)):
                    if _is_there(folder, note.session, note.tip):
                        return False
                    _append(folder / f"{day}.md", opening(day), rendered(note))
                    return True
            except FileNotFoundError:
                if attempt == TRIES - 1:
                    raise
        return False

    def _taken_out(self, tenants: Collection[str], unwanted: Callable[[str, Note], bool]) -> int:
        changed = 0
        for tenant in tenants:
            of_it = partial(unwanted, tenant)
            for folder in _folders(self._root / tenant):
                with contextlib.suppress(FileNotFoundError), _locked(folder):
                    changed += sum(_take_out(file, of_it) for file in _days(folder)) + _take_items_out(folder / DISTILLED, of_it)
                    _drop_if_empty(folder)
        return changed


def _made(folder: Path) -> Path:
    for path in (folder.parents[1], folder.parent, folder):
        path.mkdir(mode=0o700, parents=path == folder.parents[1], exist_ok=True)
    return folder


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Alone in a folder, among all processes."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _append(file: Path, head: str, text: str) -> None:
    """Write at the end of a file, all or nothing; a new one begins with `head`."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_FOLLOW, 0o600)
    try:
        before = os.fstat(descriptor).st_size
        raw = (text if before else head + text).encode("utf-8", "replace")
        try:
            if os.write(descriptor, raw) < len(raw):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir() and not path.is_symlink()) if parent.is_dir() else []


def _days(folder: Path) -> list[Path]:
    """The daily files of a folder, oldest first."""
    return sorted(file for file in folder.glob("*.md") if DAY.fullmatch(file.stem)) if folder.is_dir() else []


def _is_there(folder: Path, session: str, tip: str) -> bool:
    line = mark(session, tip)
    return any(line in _text(file).splitlines() for file in reversed(_days(folder)))


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace")


def _entries(folders: Sequence[Path]) -> list[Entry]:
    found = [Entry(file.stem, note) for folder in folders for file in _days(folder) for note in notes_in(_text(file))]
    return sorted(found, key=lambda entry: entry.day)


def _take_out(file: Path, unwanted: Callable[[Note], bool]) -> bool:
    text = _text(file)
    if not any(map(unwanted, notes_in(text))):
        return False
    _rewrite(file, without(text, unwanted))
    return True


def _rewrite(file: Path, text: str) -> None:
    """Put a text in a file's place at once, "" removes it; what the old file held is overwritten, so that it is not left in free space."""
    with file.open("r+b") as old:
        if text:
            _replace(file, text)
        else:
            file.unlink()
        old.write(bytes(os.fstat(old.fileno()).st_size))
        old.flush()
        os.fsync(old.fileno())


def _replace(file: Path, text: str) -> None:
    """Put a text in a file's place at once."""
    beside = file.with_suffix(".new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_FOLLOW, 0o600), "wb") as new:
        new.write(text.encode("utf-8", "replace"))
        new.flush()
        os.fsync(new.fileno())
    beside.replace(file)


def _drop_if_empty(folder: Path) -> None:
    """A diary alone tells nothing."""
    if not _days(folder) and not (folder / DISTILLED).exists():
        (folder / DIARY).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()


def _if_there(file: Path) -> str:
    return _text(file) if file.is_file() else ""


def _day_in(file: Path) -> date | None:
    with contextlib.suppress(ValueError):
        return date.fromisoformat(_if_there(file).strip())
    return None


def _put_distilled(folder: Path, items: Sequence[Item], read: Collection[str], told: str) -> int:
    with _locked(folder):
        there = {Source(entry.note.session, entry.note.tip) for entry in _entries([folder])}
        before = {source for item in items_in(_if_there(folder / DISTILLED)) for source in item.sources}
        left = [item for item in items if there.union(before).issuperset(item.sources)]
        if left:
            _replace(folder / DISTILLED, distilled_text(left, read))
            _append(folder / DIARY, "# Diary\n", f"\n- {told}, {len(left)} items now\n")
        return len(left)


def _take_items_out(file: Path, unwanted: Callable[[Note], bool]) -> int:
    """Take the items that come from unwanted sections out of `MEMORY.md`; whether that changed it."""
    text = _if_there(file)
    if not any(unwanted(_bare(source)) for item in items_in(text) for source in item.sources):
        return 0
    _rewrite(file, distilled_without(text, lambda source: unwanted(_bare(source))))
    return 1


def _bare(source: Source) -> Note:
    return Note(source.session, source.tip, "", "")
