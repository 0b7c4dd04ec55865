"""The supervisor of worker processes, with functions in the workers' place: who is started when, and what an end means."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxproxy import workers
from ctxproxy.workers import Seat, Supervisor

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork()")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(workers, "FIRST_PAUSE_S", 0.0)
    yield
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "signals are given back"


def until_told(seat: Seat) -> int:
    """A worker that serves until SIGTERM."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    seat.tell_ready()
    signal.sigwait([signal.SIGTERM])
    return 0


def supervised(tmp_path: Path, run: Callable[[Seat], int], ready: Callable[[], None], count: int = 3) -> int:
    """The exit status of a supervisor in a process of its own: it waits for its children, and this one has others."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 99
    try:
        status = Supervisor(workers=count, address=(), figures=tmp_path, run=run, on_ready=ready, on_hangup=lambda: None).serve()
    finally:
        sys.stderr.flush()
        os._exit(status)


def stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_all_are_started_and_stop_when_told(tmp_path: Path) -> None:
    def run(seat: Seat) -> int:
        (tmp_path / f"{seat.number}").touch()
        return until_told(seat)

    assert supervised(tmp_path, run, stop) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "1", "2"]


def test_where_the_first_cannot_start_the_others_are_not_tried(tmp_path: Path) -> None:
    def run(seat: Seat) -> int:
        (tmp_path / f"{seat.number}").touch()
        return 4

    assert supervised(tmp_path, run, stop) == 4
    assert [file.name for file in tmp_path.iterdir()] == ["0"]


def test_one_that_ends_is_started_again_until_it_serves(tmp_path: Path) -> None:
    def run(seat: Seat) -> int:
        lives = len(list(tmp_path.glob(f"{seat.number}-*")))
        (tmp_path / f"{seat.number}-{lives}").touch()
        if seat.number == 1 and lives < 3:
            if lives == 0:
                seat.tell_ready()  # it has begun well, then fails
            os.kill(os.getpid(), signal.SIGKILL)
        if seat.number == 1:
            os.kill(os.getppid(), signal.SIGTERM)
        return until_told(seat)

    assert supervised(tmp_path, run, lambda: None, count=2) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0-0", "1-0", "1-1", "1-2", "1-3"]


def test_one_that_does_not_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "STOP_WITHIN_S", 0.0)

    def run(seat: Seat) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        seat.tell_ready()
        while True:
            signal.pause()

    assert supervised(tmp_path, run, stop, count=1) == 0


def test_a_hangup_is_passed_on(tmp_path: Path) -> None:
    def run(seat: Seat) -> int:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        seat.tell_ready()
        signal.sigwait([signal.SIGHUP])
        (tmp_path / f"{seat.number}").touch()
        os.kill(os.getppid(), signal.SIGTERM)
        return until_told(seat)

    assert supervised(tmp_path, run, lambda: os.kill(os.getpid(), signal.SIGHUP), count=1) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["0"]


def test_an_address_that_comes_twice_is_taken_once_and_one_that_is_not_here_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = (socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("2001:db8::1", 0, 0, 0))
    told = [here, elsewhere, here]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(family, socket.SOCK_STREAM, 6, "", address) for family, address in told])
    (reserved,) = workers.reserve("somewhere.test", 0)
    assert reserved.getsockname()[0] == "127.0.0.1"
    reserved.close()
    told = [elsewhere]
    with pytest.raises(OSError, match=r"assign|family"):
        workers.reserve("somewhere.test", 0)
