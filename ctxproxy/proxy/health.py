"""What is known of the store's health between requests: whether the last write failed, and who depends on what is stored."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from ctxproxy.core.records import SessionKey

BELIEVED_S = 30.0
"""How long a failed write counts against readiness: without it no request would come that could show that writing works again."""
MOST_SESSIONS = 100_000


class Health:
    """Kept in memory; a restart begins anew."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failed_at: float | None = None
        self._reason = ""
        self._thin: OrderedDict[SessionKey, None] = OrderedDict()

    def wrote(self) -> None:
        """A write has worked."""
        self._failed_at = None

    def failed(self, reason: str) -> None:
        """A write has failed."""
        self._failed_at, self._reason = self._clock(), reason

    @property
    def trouble(self) -> str:
        """Why the last write failed, if it did and that was not long ago; else ""."""
        recent = self._failed_at is not None and self._clock() - self._failed_at < BELIEVED_S
        return self._reason if recent else ""

    def depends(self, key: SessionKey) -> None:
        """A client of this session sends only what is new."""
        self._thin[key] = None
        self._thin.move_to_end(key)
        if len(self._thin) > MOST_SESSIONS:
            self._thin.popitem(last=False)

    def is_dependent(self, key: SessionKey | None) -> bool:
        """Whether a session's client was seen to send only what is new."""
        return key is not None and key in self._thin
