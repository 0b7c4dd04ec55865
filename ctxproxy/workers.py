"""Several worker processes on one address: started, watched, started again, told to read the settings again, told to stop.

The supervisor holds the address and serves nothing; it runs no threads and no event loop, so that it can be forked at any time. It knows nothing
of what a worker does.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

log = logging.getLogger("ctxproxy")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Before a worker is started again; doubled each time that it ended soon."""
SOON_S = 60.0
STOP_WITHIN_S = 60.0
"""A worker gives running answers about 20 s and background work 10 s; one that takes longer hangs."""
BACKLOG = 1024
OWN_SOCKETS = sys.platform.startswith("linux")
"""There the kernel spreads connections evenly over sockets that are bound to one address (socket(7), SO_REUSEPORT), and a dead worker gets none.
Sharing one socket, twenty connections that come together may all go to the worker that wakes first. Elsewhere they share one."""
NOT_HERE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""As with IPv6 where it is switched off."""
STOPS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Seat:
    """A worker's place among the others."""

    number: int
    """From 0; worker 0 does what only one may do."""
    started: float
    """When the program was started, which may be long before this worker."""
    address: Sequence[socket.socket]
    """What `reserve` gave."""
    figures: Path
    """A folder that the workers' metrics are kept in."""
    lifeline: int
    """A descriptor that comes to its end with the supervisor."""
    tell_ready: Callable[[], None]


Run = Callable[[Seat], int]
"""What a worker does: its exit status once it has been told to stop, by SIGTERM or by the end of its lifeline."""


def reserve(host: str, port: int) -> list[socket.socket]:
    """Sockets bound to all addresses of a host; with port 0 all take the port that the first is given. Raises OSError, also where another
    program listens. An address that this machine has not, though the host's name has it, is left out if another is left."""
    found: list[socket.socket] = []
    missing: OSError | None = None
    told = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, address in dict.fromkeys((family, address) for family, _, _, _, address in told):
        taken = found[0].getsockname()[1] if found else port
        try:
            alone = socket.create_server((str(address[0]), taken, *address[2:]), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno not in NOT_HERE:
                raise
            missing = error
            continue
        found.append(_shareable(alone) if OWN_SOCKETS else alone)
    if missing is not None and not found:
        raise missing
    return found


def listeners(reserved: Sequence[socket.socket]) -> list[socket.socket]:
    """What a worker listens on."""
    return [_bound(one.family, one.getsockname()) for one in reserved] if OWN_SOCKETS else list(reserved)


def _shareable(alone: socket.socket) -> socket.socket:
    """The same address in a form that workers can take as well."""
    family, address = alone.family, alone.getsockname()
    alone.close()
    return _bound(family, address)


def _bound(family: int, address: Any) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind(address)
    return made


@dataclass(slots=True)
class _Chair:
    """One worker's place as the supervisor sees it."""

    pid: int = 0
    begun: float = 0.0
    next_pause_s: float = FIRST_PAUSE_S
    due: float | None = None
    """When it is to be started; None while it runs."""


@dataclass(slots=True)
class Supervisor:
    """Runs `workers` of them until SIGTERM or SIGINT. The first is started alone: what keeps it from serving would keep the others too."""

    workers: int
    address: Sequence[socket.socket]
    figures: Path
    run: Run
    on_ready: Callable[[], None]
    """Called once all serve."""
    on_hangup: Callable[[], None]
    """Called at each SIGHUP, before the workers get it."""
    _chairs: list[_Chair] = field(default_factory=list)
    _ready: int = 0
    _stop_by: float | None = None
    _status: int = 0

    def serve(self) -> int:
        """The exit status: 0 after a stop that was asked for; that of a worker which ended before all were serving."""
        started, lifeline, ready = time.time(), os.pipe(), os.pipe()
        self._chairs = [_Chair(due=time.monotonic())]
        with _signals() as signals:
            while any(chair.pid or chair.due is not None for chair in self._chairs):
                self._start_due(started, lifeline, ready, signals)
                came = _wait((signals.reading, ready[0]), self._pause_s())
                for number in map(int, os.read(ready[0], 4096).split()) if ready[0] in came else ():
                    self._is_ready(number)
                for number in signals.taken() if signals.reading in came else ():
                    self._hear(number)
                self._reap()
                self._give_up()
        for descriptor in (*lifeline, *ready):
            os.close(descriptor)
        return self._status

    def _start_due(self, started: float, lifeline: tuple[int, int], ready: tuple[int, int], signals: _Signals) -> None:
        for number, chair in enumerate(self._chairs):
            if chair.due is None or chair.due > time.monotonic():
                continue
            chair.due, chair.begun = None, time.monotonic()
            seat = Seat(number, started, self.address, self.figures, lifeline[0], partial(_tell, ready[1], number))
            try:
                chair.pid = _forked(self.run, seat, signals, (lifeline[1], ready[0]))
            except OSError as error:  # no memory, or too many processes
                log.warning("worker %d could not be started: %s", number, error.strerror)
                self._ended(number, chair, 1)

    def _pause_s(self) -> float | None:
        """Until something is due."""
        times = [chair.due for chair in self._chairs if chair.due is not None] + ([self._stop_by] if self._stop_by is not None else [])
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _is_ready(self, number: int) -> None:
        self._ready += 1
        if self._ready == 1 and self._stop_by is None:
            self._chairs += [_Chair(due=time.monotonic()) for _ in range(self.workers - 1)]
        if self._ready == self.workers:
            self.on_ready()
        elif self._ready > self.workers:
            log.info("worker %d serves again", number)

    def _hear(self, number: int) -> None:
        if number in STOPS:
            self._stop()
        elif number == signal.SIGHUP:
            self.on_hangup()
            self._send(signal.SIGHUP)

    def _stop(self) -> None:
        if self._stop_by is None:
            log.info("stopping %d workers", sum(1 for chair in self._chairs if chair.pid))
            self._stop_by = time.monotonic() + STOP_WITHIN_S
        for chair in self._chairs:
            chair.due = None
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for chair in self._chairs:
            if chair.pid:
                os.kill(chair.pid, number)

    def _reap(self) -> None:
        for number, chair in enumerate(self._chairs):
            if not chair.pid:
                continue
            pid, status = os.waitpid(chair.pid, os.WNOHANG)
            if pid:
                chair.pid = 0
                self._ended(number, chair, os.waitstatus_to_exitcode(status))

    def _ended(self, number: int, chair: _Chair, status: int) -> None:
        if self._stop_by is not None:
            return
        if self._ready < self.workers:
            self._status = max(status, 1)
            self._stop()
            return
        pause_s = FIRST_PAUSE_S if time.monotonic() - chair.begun >= SOON_S else chair.next_pause_s
        chair.due, chair.next_pause_s = time.monotonic() + pause_s, min(2 * pause_s, LONGEST_PAUSE_S)
        why = f"signal {-status}" if status < 0 else f"status {status}"
        log.warning("worker %s ended with %s; it is started again in %s s", number, why, f"{pause_s:g}")

    def _give_up(self) -> None:
        """End what does not stop by itself."""
        if self._stop_by is not None and time.monotonic() >= self._stop_by:
            self._stop_by = time.monotonic() + STOP_WITHIN_S
            log.warning("workers that do not stop are killed")
            self._send(signal.SIGKILL)


def _tell(ready: int, number: int) -> None:
    os.write(ready, b"%d " % number)


def _forked(run: Run, seat: Seat, signals: _Signals, not_theirs: Sequence[int]) -> int:
    """The process id of a new worker. Signals wait meanwhile, so that none is taken for the supervisor's in the worker."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signals.numbers)
    try:
        if pid := os.fork():
            return pid
        status = 1
        try:
            signals.give_back()
            for descriptor in not_theirs:
                os.close(descriptor)
            for number in (signal.SIGHUP, signal.SIGINT):  # until they can be heeded: by default they end a process
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.numbers)
            status = run(seat)
        except BaseException:  # noqa: BLE001 - nothing of the supervisor's may run on in a worker
            traceback.print_exc()
        finally:
            logging.shutdown()
            sys.stderr.flush()
            os._exit(status)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.numbers)


class _Signals:
    """The signals that came, as bytes in a pipe."""

    numbers = (*STOPS, signal.SIGHUP, signal.SIGCHLD)

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        for descriptor in (self.reading, self._writing):
            os.set_blocking(descriptor, False)
        self._before = {number: signal.signal(number, lambda *_: None) for number in self.numbers}
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    def taken(self) -> list[int]:
        """Those that came since."""
        return list(os.read(self.reading, 4096))

    def give_back(self) -> None:
        """Leave signals as they were."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.reading)
        os.close(self._writing)


@contextlib.contextmanager
def _signals() -> Iterator[_Signals]:
    signals = _Signals()
    try:
        yield signals
    finally:
        signals.give_back()


def _wait(descriptors: Sequence[int], timeout_s: float | None) -> list[int]:
    return select.select(descriptors, (), (), timeout_s)[0]
