"""Holds the settings in force and reads them again on SIGHUP; wrong ones change nothing."""

from __future__ import annotations

import asyncio
import signal
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


class SettingsHolder:
    """The settings in force; `tell` hears of each reload. Ask for `current` once a request."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], tell: Callable[[Reloaded | Refused], None]) -> None:
        self._settings = settings
        self._environ = environ
        self._tell = tell

    def current(self) -> Settings:
        """The settings in force now."""
        return self._settings

    def reload(self) -> None:
        """Read the file, the environment and the command line's words again."""
        old = self._settings
        try:
            new = load(old.origin, self._environ, old.overrides)
        except ConfigError as error:
            self._tell(Refused(error))
            return
        differing = [name for name in Keys.__struct_fields__ if getattr(old, name) != getattr(new, name)]
        self._settings = msgspec.structs.replace(new, **{name: getattr(old, name) for name in FIXED})
        self._tell(Reloaded(tuple(name for name in differing if name not in FIXED), tuple(name for name in differing if name in FIXED)))

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Reload on SIGHUP, where the system has such a signal."""
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, self.reload)
