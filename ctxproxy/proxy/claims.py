"""Work that one of several processes on a machine is to do alone."""

from __future__ import annotations

import sys

if sys.platform != "win32":
    import fcntl


def claimed(descriptor: int) -> bool:
    """Whether this process is alone with an open file or folder from now on, until it closes it; True where there are no locks."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
