"""The stores: `open_store` makes the one that a URL names."""

from __future__ import annotations

from ctxproxy.store.memory import MemoryStore
from ctxproxy.store.open import open_store
from ctxproxy.store.sqlite import SqliteStore
from ctxproxy.store.sqlite_file import SetAside

__all__ = ["MemoryStore", "SetAside", "SqliteStore", "open_store"]
