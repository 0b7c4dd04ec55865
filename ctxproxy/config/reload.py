"""Holds the settings in force and reads them again on SIGHUP; wrong ones change nothing."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from ctxproxy.config.load import load
from ctxproxy.config.schema import Keys, Settings
from ctxproxy.errors import ConfigError

FIXED = ("listen", "store", "data_dir")
"""Sections that are looked at only when the program starts."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """New settings are in force; `changed` names the sections that differ, `needs_restart` those that stay as they were."""

    changed: tuple[str, ...]
    needs_restart: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The old settings stay in force; `error` says what is wrong with the new ones."""

    error: ConfigError


class Holder:
    """The settings in force. Ask for `current()` once a request."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    def current(self) -> Settings:
        """The settings in force now."""
        return self._settings

    def reload(self) -> Reloaded | Refused:
        """Read the file, the environment and the command line's words again."""
        old = self._settings
        try:
            new = load(old.origin, self._environ, old.overrides)
        except ConfigError as error:
            return Refused(error)
        differing = [name for name in Keys.__struct_fields__ if getattr(old, name) != getattr(new, name)]
        self._settings = msgspec.structs.replace(new, **{name: getattr(old, name) for name in FIXED})
        return Reloaded(tuple(name for name in differing if name not in FIXED), tuple(name for name in differing if name in FIXED))

    def on_hangup(self, loop: asyncio.AbstractEventLoop, tell: Callable[[Reloaded | Refused], None]) -> None:
        """Reload on each SIGHUP, where the system has such a signal, and tell what came of it."""
        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGHUP, lambda: tell(self.reload()))
