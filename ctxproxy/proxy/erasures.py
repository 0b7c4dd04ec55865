"""What was erased while requests were answered: a new session's first request finds nothing in the store that would tell it so."""

from __future__ import annotations

from collections import OrderedDict

from ctxproxy.core.records import SessionKey

KNOWN_SESSIONS = 10_000


class Erasures:
    """Numbers each erasing, and knows the last one of a session."""

    def __init__(self) -> None:
        self.count = 0
        """Erasings up to now."""
        self._last: OrderedDict[SessionKey, int] = OrderedDict()

    def is_erased_since(self, key: SessionKey, count: int) -> bool:
        """Whether a session was erased when there had been so many already."""
        return self._last.get(key, 0) > count

    def note(self, key: SessionKey) -> None:
        """Note that a session is erased."""
        self.count += 1
        self._last[key] = self.count
        self._last.move_to_end(key)
        if len(self._last) > KNOWN_SESSIONS:
            self._last.popitem(last=False)
