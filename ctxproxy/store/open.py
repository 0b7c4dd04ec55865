"""From `store.url` to a store."""

from __future__ import annotations

from pathlib import Path

from ctxproxy.errors import ConfigError
from ctxproxy.ports import Store
from ctxproxy.store.memory import MemoryStore
from ctxproxy.store.sqlite import SqliteStore
from ctxproxy.store.sqlite_file import OnDamage, prepare, schema_version

SQLITE = "sqlite:///"
POSSIBLE = "possible are memory:// and sqlite:///path (four slashes for an absolute path)"


async def open_store(url: str, *, on_damage: OnDamage, cache_bytes: int = 0) -> Store:
    """The store of a URL; raises ConfigError if it names none, StoreUnavailable if it cannot be opened now.

    Three slashes lead to a path from the working directory, four to an absolute one, as in SQLAlchemy's URLs. `on_damage` is
    called, from another thread, when a damaged file was renamed and a fresh one made. In at most `cache_bytes` of memory a store in
    a file remembers histories.
    """
    if url == "memory://":
        return MemoryStore()
    return await SqliteStore.open(_sqlite_path(url), on_damage, cache_bytes)


def migrate(url: str, on_damage: OnDamage) -> tuple[int, int] | None:
    """Bring the store of a URL to the newest schema: the version that it had (0 if it was not there), and the one it has; None for one in memory.

    Raises ConfigError and StoreUnavailable as `open_store` does.
    """
    if url == "memory://":
        return None
    path = _sqlite_path(url)
    before = schema_version(path)
    prepare(path, on_damage).close()
    return before, schema_version(path)


def _sqlite_path(url: str) -> Path:
    if not url.startswith(SQLITE):
        raise ConfigError(f"store.url: {_complaint(url)}; {POSSIBLE}", param="store.url")
    path = url.removeprefix(SQLITE)
    if not path or path.startswith(":memory:"):
        raise ConfigError(f"store.url: {url} names no file; {POSSIBLE}", param="store.url")
    if "?" in path or "#" in path or "\0" in path:
        raise ConfigError(f"store.url: the path of {url!r} must not hold '?', '#' or NUL; {POSSIBLE}", param="store.url")
    return Path(path).absolute()


def _complaint(url: str) -> str:
    """Without the rest of the URL: it may hold a password."""
    scheme = url.partition(":")[0]
    if scheme in ("postgres", "postgresql"):
        return "PostgreSQL is not available in this version"
    if scheme == "sqlite":
        return "sqlite takes three slashes before its path"
    return f"there is no store for {scheme[:20]!r}"
