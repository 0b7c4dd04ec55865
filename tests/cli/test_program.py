"""The command line as a program of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ctxproxy import __version__

PROJECT = Path(__file__).resolve().parent.parent.parent
PROGRAM = [sys.executable, "-m", "ctxproxy"]


def test_the_module_is_the_command() -> None:
    done = subprocess.run([*PROGRAM, "--version"], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == f"ctxproxy {__version__}\n"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    with subprocess.Popen([*PROGRAM, "check"], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_checking_a_configuration_loads_neither_server_nor_store() -> None:
    code = "import sys, ctxproxy.cli.main as m; m.main(['check']); print([n for n in ('aiohttp', 'aiosqlite', 'tiktoken') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
