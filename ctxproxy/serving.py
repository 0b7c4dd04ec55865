"""`serve`: one process, or a supervisor with several workers; signals, and what the log tells of both."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from ctxproxy import __version__, wiring, workers
from ctxproxy.config.reload import Holder, Refused, Reloaded
from ctxproxy.config.schema import Settings, without_password
from ctxproxy.errors import ConfigError, CtxproxyError
from ctxproxy.proxy import logs, metrics
from ctxproxy.proxy.garbage import LOOK_S, FullRounds
from ctxproxy.proxy.timers import Timers
from ctxproxy.tokenizers import open as tokenizers
from ctxproxy.workers import Seat

log = logging.getLogger("ctxproxy")
SWITCH_S = 0.0001
"""For so long a thread that works may keep the others waiting. Python's 5 ms are met at each of the loop's calls that give way, some thirty in a
request: with a long prompt being planned beside it, a request took 100 ms in place of 30."""


def serve(settings: Settings, holder: Holder) -> int:
    """Run until SIGINT or SIGTERM, then give the exit status; SIGHUP reads the file again. Raises CtxproxyError where the start fails."""
    wiring.keep_large_blocks()
    sys.setswitchinterval(SWITCH_S)
    logs.set_up(settings.log.level, settings.log.format)
    for note in settings.notes:
        log.warning("a key of the configuration has no counterpart here: %s", note)
    if settings.listen.workers > 1:
        return _supervise(settings, holder)
    asyncio.run(_serve(settings, holder, None))
    return 0


def _supervise(settings: Settings, holder: Holder) -> int:
    if not hasattr(os, "fork"):
        raise ConfigError("listen.workers: more than one worker needs a system with fork()", param="listen.workers")
    try:
        address = workers.reserve(settings.listen.host, settings.listen.port)
    except OSError as error:
        raise wiring.cannot_listen(settings.listen, error) from None
    tokenizers.tokenizer_for("")  # here, so that the workers share its memory and begin at once
    gc.freeze()
    figures = Path(tempfile.mkdtemp(prefix="ctxproxy-metrics-"))
    url = wiring.url_of(address[0].getsockname())
    try:
        return workers.Supervisor(
            workers=settings.listen.workers,
            address=address,
            figures=figures,
            run=lambda seat: _work(settings, holder, seat),
            on_ready=lambda: _told_start(settings, url),
            on_hangup=lambda: _told_reload(holder.reload(), holder),
        ).serve()
    finally:
        shutil.rmtree(figures, ignore_errors=True)


def _work(settings: Settings, holder: Holder, seat: Seat) -> int:
    """What a worker does, in its own process."""
    metrics.share(seat.figures, seat.number)
    try:
        asyncio.run(_serve(settings, holder, seat))
    except CtxproxyError as error:
        print(f"ctxproxy: {error.message}", file=sys.stderr)
        return 1
    return 0


async def _serve(settings: Settings, holder: Holder, seat: Seat | None) -> None:
    loop = asyncio.get_running_loop()
    holder.on_hangup(loop, lambda outcome: _told_reload(outcome, holder) if seat is None else _set_up_log(outcome, holder))
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if seat is not None:
        loop.add_reader(seat.lifeline, _let_go, loop, seat, stop)
    async with wiring.running_server(holder.current, seat) as (state, url):
        rounds, timers = FullRounds(state.lull), Timers(state.tasks)
        rounds.begin()
        timers.start("garbage", rounds.look, lambda: LOOK_S)
        if seat is None:
            _told_start(settings, url)
        else:
            seat.tell_ready()
        await stop.wait()
        timers.close()
        if seat is None:
            log.info("stopping")


def _let_go(loop: asyncio.AbstractEventLoop, seat: Seat, stop: asyncio.Event) -> None:
    """The supervisor is gone, whatever ended it."""
    loop.remove_reader(seat.lifeline)
    stop.set()


def _told_start(settings: Settings, url: str) -> None:
    upstream, library, count = without_password(settings.upstream.base_url), tokenizers.library(), settings.listen.workers
    of = f", {count} workers" if count > 1 else ""
    log.info("ctxproxy %s listens on %s, upstream %s, tokens counted by %s%s", __version__, url, upstream, library, of)


def _told_reload(outcome: Reloaded | Refused, holder: Holder) -> None:
    if isinstance(outcome, Refused):
        log.error("the changed configuration is wrong, the old one stays in force: %s", outcome.error.message)
        return
    _set_up_log(outcome, holder)
    restart = f"; only after a restart: {', '.join(outcome.needs_restart)}" if outcome.needs_restart else ""
    log.info("configuration read again, changed: %s%s", ", ".join(outcome.changed) or "nothing", restart)


def _set_up_log(outcome: Reloaded | Refused, holder: Holder) -> None:
    if isinstance(outcome, Reloaded):
        logs.set_up(holder.current().log.level, holder.current().log.format)
