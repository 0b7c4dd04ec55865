"""The benches run: their figures are for a quiet machine, but what they call has to be there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.shared_dir import PROJECT

RUNS = {
    "request_path": ["--messages", "4", "--turns", "1", "--chars", "40"],
    "histories": ["20", "5"],
    "planning": ["--messages", "40", "--kinds", "chat", "--presets", "trim,adaptive", "--most-ms", "10000"],
}


@pytest.mark.parametrize("name", RUNS)
def test_a_bench_runs(name: str) -> None:
    done = subprocess.run([sys.executable, "-m", f"bench.{name}", *RUNS[name]], cwd=PROJECT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
