"""The optional extras: a test of one is skipped where it is not installed, but not where CTXPROXY_TEST_SERVICES is `required`, as in `.ci/run`."""

from __future__ import annotations

import importlib
import os

import pytest


def needs(extra: str, module: str) -> None:
    """Go on only where the extra's module can be imported."""
    try:
        importlib.import_module(module)
    except ImportError:
        if os.environ.get("CTXPROXY_TEST_SERVICES") == "required":
            raise
        pytest.skip(f"{module} is not installed: scripts/bootstrap dev {extra}")
