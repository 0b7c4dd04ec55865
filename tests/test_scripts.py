"""The scripts that a user runs first: what they say when something is missing, and that they do nothing twice."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a blank in its name that holds what `scripts/bootstrap` reads."""
    folder = tmp_path / "a checkout"
    (folder / "scripts").mkdir(parents=True)
    for name in ("scripts/bootstrap", "scripts/serve", "requirements.lock", "requirements-dev.lock", "requirements-fast.lock", "pyproject.toml"):
        shutil.copy(PROJECT / name, folder / name)
    return folder


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


def run(checkout: Path, *words: str, path: Path) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run([str(checkout / words[0]), *words[1:]], cwd=path, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def fakes(tmp_path: Path) -> Path:
    """A folder to stand before PATH."""
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


def test_too_old_a_python_is_told_before_anything_is_made(checkout: Path, fakes: Path) -> None:
    for name in PYTHONS:
        program(fakes / name, '[ "$1" = --version ] && echo "Python 3.9.2" || exit 1')
    done = run(checkout, "scripts/serve", path=fakes)
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert "found Python 3.9.2" in done.stderr
    assert not (checkout / ".venv").exists()


def make_venv(checkout: Path, log: Path) -> None:
    """A .venv whose python notes its arguments, one call a line."""
    program(checkout / ".venv" / "bin" / "python", f'echo "$@" >>"{log}"; [ "$1" = -P ] && echo "$MALLOC_TRIM_THRESHOLD_ $PWD"; exit 0')


def installs(log: Path) -> list[str]:
    return [line for line in log.read_text(encoding="utf-8").splitlines() if " install " in line]


def locks_of(log: Path) -> list[str]:
    """The locks of each installation."""
    return [line.partition("--require-hashes ")[2] for line in installs(log) if "--require-hashes" in line]


def test_what_is_locked_is_installed_once_by_its_hashes(checkout: Path, fakes: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    make_venv(checkout, log)
    assert run(checkout, "scripts/bootstrap", path=fakes).returncode == 0
    first = installs(log)
    assert first[0].endswith("--require-hashes -r requirements.lock")
    assert run(checkout, "scripts/bootstrap", path=fakes).returncode == 0
    assert installs(log) == first


def test_a_changed_lock_is_installed_again(checkout: Path, fakes: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    make_venv(checkout, log)
    run(checkout, "scripts/bootstrap", path=fakes)
    before = len(installs(log))
    with (checkout / "requirements.lock").open("a", encoding="utf-8") as lock:
        lock.write("# changed\n")
    run(checkout, "scripts/bootstrap", path=fakes)
    assert len(installs(log)) == 2 * before


def test_what_the_tests_need_is_enough_to_serve_but_not_the_other_way_round(checkout: Path, fakes: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    make_venv(checkout, log)
    for kind in ((), ("dev",), (), ("dev",)):
        assert run(checkout, "scripts/bootstrap", *kind, path=fakes).returncode == 0
    assert locks_of(log) == ["-r requirements.lock", "-r requirements-dev.lock"]


def test_an_extra_is_installed_beside_what_is_there_and_stays(checkout: Path, fakes: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    make_venv(checkout, log)
    for kinds in (("fast",), (), ("fast",), ("dev",), ("dev", "fast")):
        assert run(checkout, "scripts/bootstrap", *kinds, path=fakes).returncode == 0
    assert locks_of(log) == ["-r requirements-fast.lock -r requirements.lock", "-r requirements-dev.lock -r requirements-fast.lock"]


def test_an_unknown_extra_is_refused_with_the_known_ones(checkout: Path, fakes: Path) -> None:
    done = run(checkout, "scripts/bootstrap", "slow", path=fakes)
    assert (done.returncode, done.stderr.strip()) == (2, "scripts/bootstrap: unknown argument 'slow'; known are dev fast")


def test_an_installation_that_failed_is_tried_again(checkout: Path, fakes: Path, tmp_path: Path) -> None:
    program(checkout / ".venv" / "bin" / "python", 'case "$*" in *install*) exit 1;; esac')
    assert run(checkout, "scripts/bootstrap", path=fakes).returncode != 0
    log = tmp_path / "log"
    make_venv(checkout, log)
    assert run(checkout, "scripts/bootstrap", path=fakes).returncode == 0
    assert installs(log)


def test_the_proxy_is_served_from_where_one_stands_with_mallocs_thresholds_raised(checkout: Path, fakes: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    make_venv(checkout, log)
    done = run(checkout, "scripts/serve", "--port", "0", path=fakes)
    assert done.stdout.split() == ["1073741824", str(fakes)]
    assert log.read_text(encoding="utf-8").splitlines()[-1] == "-P -m ctxproxy serve --port 0"
