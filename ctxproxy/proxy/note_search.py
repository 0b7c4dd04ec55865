"""Memory files are read again when they have changed, by whomever, and kept in memory in the form in which they are searched."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ctxproxy.core.memory_notes import folder_of, safe_name
from ctxproxy.core.messages import Tip
from ctxproxy.core.note_search import FoundNote, NoteIndex, pieces_of
from ctxproxy.core.records import SessionKey
from ctxproxy.proxy.memory_files import DAY, DISTILLED, FOLDER, NO_FOLLOW

SEARCHED_BYTES = 256_000
"""Of a folder: `MEMORY.md` first, then the newest days; months of notes, read in a third of a second the first time."""
HELD_BYTES = 16_000_000
"""Of all folders together, as they lie on disk; those not asked for longest give way."""


class _Stamp(NamedTuple):
    """Tells whether a file is still the one that was read."""

    inode: int
    size: int
    changed_ns: int


@dataclass(slots=True)
class _Folder:
    index: NoteIndex = field(default_factory=NoteIndex)
    stamps: dict[str, _Stamp] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(stamp.size for stamp in self.stamps.values())


class NoteSearch:
    """Searches what a session may know of the memory files of one `data_dir`; an `erasing.Part`."""

    def __init__(self, data_dir: Path) -> None:
        self._root = data_dir / FOLDER
        self._held: OrderedDict[Path, _Folder] = OrderedDict()
        self._lock = threading.Lock()

    async def found(self, key: SessionKey, user: str, terms: Mapping[str, float]) -> list[FoundNote]:
        """What holds any of the terms in the files of the session's own folder and in its user's, as they are now. Raises OSError."""
        names = sorted({safe_name(key.name), folder_of(key.name, user)})
        return await asyncio.to_thread(self._found, [self._root / key.tenant / name for name in names], terms)

    async def erase(self, keys: Collection[SessionKey]) -> None:
        """Let go of what was read of these sessions' tenants: their files are about to change."""
        tenants = {key.tenant for key in keys}
        with self._lock:
            for path in [path for path in self._held if path.parent.name in tenants]:
                del self._held[path]

    async def forget(self, key: SessionKey, _tips: Collection[Tip]) -> None:
        """The same."""
        await self.erase([key])

    def _found(self, folders: list[Path], terms: Mapping[str, float]) -> list[FoundNote]:
        with self._lock:
            found = [one for path in folders for one in self._folder(path).index.found(terms)]
            while len(self._held) > len(folders) and sum(held.size for held in self._held.values()) > HELD_BYTES:
                self._held.popitem(last=False)
            return found

    def _folder(self, path: Path) -> _Folder:
        """A folder as it is now; what has not changed is not read again."""
        now = _stamps(path)
        held = self._held.pop(path, None) or _Folder()
        for gone in held.stamps.keys() - now.keys():
            held.index.put(gone, ())
        for name, stamp in now.items():
            if held.stamps.get(name) != stamp:
                day = "" if name == DISTILLED else name.removesuffix(".md")
                held.index.put(name, pieces_of(name, day, _text(path / name)))
        held.stamps = now
        if now:
            self._held[path] = held
        return held


def _stamps(folder: Path) -> dict[str, _Stamp]:
    """The files to search, `MEMORY.md` and the newest of the days, as many as are not too much together."""
    found: dict[str, _Stamp] = {}
    if not folder.is_dir() or folder.is_symlink():
        return found
    room = SEARCHED_BYTES
    names = [name for name in os.listdir(folder) if name == DISTILLED or DAY.fullmatch(name.removesuffix(".md"))]
    for name in sorted(names, reverse=True):  # capitals stand behind digits
        with contextlib.suppress(FileNotFoundError):
            state = os.lstat(folder / name)
            if not stat.S_ISREG(state.st_mode) or not name.endswith(".md"):
                continue
            if state.st_size <= room:
                room -= state.st_size
                found[name] = _Stamp(state.st_ino, state.st_size, state.st_mtime_ns)
    return found


def _text(file: Path) -> str:
    """What a file holds; "" if it is gone by now."""
    with contextlib.suppress(FileNotFoundError), os.fdopen(os.open(file, os.O_RDONLY | NO_FOLLOW), "rb") as opened:
        return opened.read().decode("utf-8", "replace")
    return ""
