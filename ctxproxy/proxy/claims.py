"""What only one at a time should do, among all processes that share a `data_dir`: whoever does it holds the lock of a small file.

A lock ends with its process, whatever ended that. Where there are no such locks, or the disk is full, everybody may: it is done twice, not never.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

FOLDER = "locks"
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
LOOK_AGAIN_S = 0.2


def claimed(descriptor: int) -> bool:
    """Whether this process is alone with an open file or folder from now on, until it closes it; True where there are no locks."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Claims:
    """The locks of one `data_dir`, each known by a name."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER

    @contextlib.contextmanager
    def tried(self, name: str) -> Iterator[bool]:
        """Hold a name's lock meanwhile if nobody else does; gives whether nobody else did."""
        path = self._folder / hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        try:
            lock = self._locked(path)
        except OSError:
            yield True
            return
        if lock is None:
            yield False
            return
        try:
            yield True
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(lock)

    @contextlib.asynccontextmanager
    async def held(self, name: str) -> AsyncIterator[None]:
        """Wait until nobody else holds a name's lock, and hold it meanwhile."""
        while True:
            with self.tried(name) as free:
                if free:
                    yield
                    return
            await asyncio.sleep(LOOK_AGAIN_S)

    def is_free(self, name: str) -> bool:
        """Whether nobody holds a name's lock now."""
        with self.tried(name) as free:
            return free

    def _locked(self, path: Path) -> int | None:
        """The descriptor that holds the lock; None where another does. Raises OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        while True:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o600)
            try:
                free = claimed(lock)
                if free and _is_at(path, lock):
                    return lock
            except OSError:
                os.close(lock)
                raise
            os.close(lock)
            if not free:
                return None  # else whoever held it has taken the file away meanwhile


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
