"""What needs the extra `semantic` is tested with it, in a venv of its own: the other tests must not depend on whether it is there."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.acceptance.installed import CACHE, installed, run
from tests.shared_dir import PROJECT

LOCK = PROJECT / "requirements-semantic.lock"


def _install(folder: Path) -> None:
    """A venv with what the lock names, that finds this one's packages beside its own."""
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = str(folder / "bin" / "python")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "-qq", "--no-compile", "--no-deps", "--require-hashes", "-r", str(LOCK))
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "beside.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")


@pytest.mark.timeout(600)
def test_what_needs_the_extra_works_with_it() -> None:
    folder = installed(CACHE / "semantic", LOCK.read_text(encoding="utf-8"), _install)
    words = (str(folder / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/semantic")
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " skipped" not in done.stdout
