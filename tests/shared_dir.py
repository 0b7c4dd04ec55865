"""Where the shared material is: beside the project, or where SHARED_DIR says; tests that need it skip where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("SHARED_DIR", PROJECT.parent / "shared"))


def shared(relative: str) -> Path:
    """The path of a shared file or folder; skips the test if there is none."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"no shared material here: {relative} (set SHARED_DIR)")
    return path
