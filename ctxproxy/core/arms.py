"""A/B arms: which variant of an experiment a session gets (001-74). A session keeps its arm over restarts and on every replica."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ctxproxy.core.records import SessionKey

_POINTS = 1 << 64


def arm_of(experiment: str, key: SessionKey, arms: Sequence[tuple[str, float]]) -> str:
    """The name of a session's arm among `(name, share in percent)`; "" for a session beyond all shares.

    Arms lie side by side in their order, so one that is added behind the others, or grows into the free rest, moves no session
    from one arm to another. Another experiment's name draws anew.
    """
    point = _point(experiment, key)
    reach = 0.0
    for name, share in arms:
        reach += share
        if point < reach:
            return name
    return ""


def _point(experiment: str, key: SessionKey) -> float:
    """Where a session lies between 0 and 100: spread evenly, and not to be guessed from its name, since the tenant is a keyed digest."""
    subject = "\n".join((experiment, key.tenant, key.name)).encode("utf-8", "surrogatepass")
    return 100 * int.from_bytes(hashlib.blake2b(subject, digest_size=8).digest(), "big") / _POINTS
