"""The composition root: from settings to a running server. The only module that knows every adapter by name."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from aiohttp import web

from ctxproxy.admin.api import add_admin
from ctxproxy.config.checks import missing_package
from ctxproxy.config.schema import Listen, Retrieval, Settings
from ctxproxy.core import windows
from ctxproxy.embedders.open import open_embedder
from ctxproxy.errors import ConfigError
from ctxproxy.ports import Tokenizer, Upstream
from ctxproxy.ports.embedding import Embedder
from ctxproxy.proxy.app import add_forwarding, make_app
from ctxproxy.proxy.catching_up import catch_up
from ctxproxy.proxy.claims import Claims
from ctxproxy.proxy.counting import Counts, Identities, Readings
from ctxproxy.proxy.distilling import Distiller
from ctxproxy.proxy.erasing import Eraser
from ctxproxy.proxy.fact_desk import FactDesk
from ctxproxy.proxy.foresight import Foresight
from ctxproxy.proxy.gauges import Gauges
from ctxproxy.proxy.health import Health
from ctxproxy.proxy.index_desk import IndexDesk
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.memory_files import MemoryFiles
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.note_search import NoteSearch
from ctxproxy.proxy.notes import Notes
from ctxproxy.proxy.outcome_log import OutcomeLog
from ctxproxy.proxy.reading import Bodies
from ctxproxy.proxy.retention import EVERY_S, Sweeper
from ctxproxy.proxy.sections import sections_of
from ctxproxy.proxy.state import State
from ctxproxy.proxy.summary_desk import SummaryDesk
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.proxy.timers import Timers
from ctxproxy.proxy.vector_desk import VectorDesk
from ctxproxy.proxy.window_book import WindowBook
from ctxproxy.store.open import open_store
from ctxproxy.store.sqlite_file import SetAside
from ctxproxy.tokenizers import open as tokenizers
from ctxproxy.upstream.open import open_upstream
from ctxproxy.workers import Seat, listeners

log = logging.getLogger("ctxproxy")
BY_MEANING = ("dense", "hybrid")
"""The kinds of retrieval that compare meanings."""
KEY_FILE = "tenant.key"
SECRET_BYTES = 32
MEGABYTE = 1_048_576
COUNTS_BYTES = IDENTITIES_BYTES = READINGS_BYTES = 32 * MEGABYTE
"""Memory for remembered token counts and for remembered identities: about 130,000 messages each."""
CLOSE_WITHIN_S = 5.0
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""glibc's malloc.h."""
KEEP_BYTES = 1 << 30
LINE_BYTES = 65_536
"""The longest header line that is taken; aiohttp's own limit of 8,190 is too short for some gateways' tokens."""


def tenant_secret(data_dir: Path) -> bytes:
    """The key of the tenants' digests: made at first start, readable by the owner only; raises ConfigError."""
    path = data_dir / KEY_FILE
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _write_new(path, secrets.token_bytes(SECRET_BYTES))
        secret = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"data_dir: {path} cannot be written or read: {error.strerror}") from None
    if len(secret) < SECRET_BYTES:
        raise ConfigError(f"data_dir: {path} is damaged: it must hold {SECRET_BYTES} bytes; without it the sessions of earlier runs cannot be found")
    return secret


def _write_new(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; another process that is quicker wins."""
    beside = path.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):
        os.link(beside, path)
    beside.unlink()


def store_url(settings: Settings) -> str:
    """The store's URL with a relative path led to `data_dir`, where all that is kept lies together."""
    prefix, slashes, path = settings.store.url.partition(":///")
    if prefix != "sqlite" or not slashes or not path or path.startswith("/"):
        return settings.store.url
    return f"sqlite:///{(Path(settings.data_dir) / path).as_posix()}"


class _Upstreams:
    """One upstream a base URL, opened when first used."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._open: dict[str, Upstream] = {}

    def __call__(self, base_url: str) -> Upstream:
        if base_url not in self._open:
            connect_timeout_s = self._settings().upstream.connect_timeout_s
            self._open[base_url] = open_upstream(base_url, count_tokens=_count_for_demo, connect_timeout_s=connect_timeout_s)
        return self._open[base_url]

    async def close(self) -> None:
        for upstream in self._open.values():
            await upstream.close()


def _count_for_demo(text: str) -> int:
    return tokenizers.open_tokenizer("o200k_base").count(text)


class _Tokenizers:
    """The tokenizer of each model; whether getting it may take long."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None], Tokenizer] = {}

    def get(self, model: str, settings: Settings) -> Tokenizer:
        key = self._key(model, settings)
        if key not in self._known:
            self._known[key] = tokenizers.tokenizer_for(*key)
        return self._known[key]

    def loaded(self, model: str, settings: Settings) -> bool:
        return self._key(model, settings) in self._known

    def _key(self, model: str, settings: Settings) -> tuple[str, str | None]:
        entry = windows.rule_for(settings.models, model)
        return model, entry.encoding if entry else None


@contextlib.asynccontextmanager
async def running_state(settings: Callable[[], Settings], seat: Seat | None = None) -> AsyncIterator[State]:
    """The shell's parts, opened and closed in order; with a seat, those of one worker among several."""
    first = settings()
    secret, upstreams = tenant_secret(Path(first.data_dir)), _Upstreams(settings)
    embedder = await _embedder(first.retrieval, upstreams)
    store = await open_store(store_url(first), on_damage=_told_damage, cache_bytes=int(first.store.cache_mb * MEGABYTE))
    known, tasks, metrics = _Tokenizers(), Tasks(), Metrics(seat.figures if seat else None)
    readings, lull, claims = Readings(READINGS_BYTES), Lull(), Claims(Path(first.data_dir))
    facts, foresight = FactDesk(store, readings, metrics, tasks, lull), Foresight(store, tasks, lull)
    vectors = VectorDesk(store, metrics, tasks, lull, embedder, first.retrieval.cache_mb * MEGABYTE, lambda: settings().retrieval.kind in BY_MEANING)
    index = IndexDesk(store, metrics, tasks, lull, lambda: settings().retrieval.kind != "off", vectors.begin)
    bodies, desk = Bodies(int(first.sessions.cache_mb * MEGABYTE)), SummaryDesk(store, upstreams, metrics, tasks, facts, index, claims)
    files, note_search, book = MemoryFiles(Path(first.data_dir)), NoteSearch(Path(first.data_dir)), WindowBook(store)
    state = State(
        settings=settings,
        secret=secret,
        store=store,
        upstream=upstreams,
        tokenizer=known.get,
        windows=book,
        gauges=Gauges(known.get, known.loaded, lambda model: tokenizers.encoding_for(model) is not None, book),
        summaries=desk,
        foresight=foresight,
        bodies=bodies,
        counts=Counts(COUNTS_BYTES),
        identities=Identities(IDENTITIES_BYTES),
        readings=readings,
        tasks=tasks,
        claims=claims,
        lull=lull,
        health=Health(time.time),
        metrics=metrics,
        notes=Notes(files, store, desk, metrics, tasks, claims, time.time),
        eraser=Eraser(store, [files, note_search, facts, index, vectors, bodies, foresight]),
        facts=facts,
        index=index,
        vectors=vectors,
        note_search=note_search,
        outcomes=OutcomeLog(Path(first.data_dir), tasks),
        sections=sections_of(store, files),
        started=seat.started if seat else time.time(),
    )
    await state.windows.refresh()
    await asyncio.to_thread(known.get, "", first)  # before the first request, which would wait for it; "" has both encodings
    tasks.start(catch_up(state), "catching up")
    timers = Timers(tasks)
    if seat is None or seat.number == 0:
        _start_rounds(state, timers)
        log.info("retrieval is %s, by %s", first.retrieval.kind, vectors.means(first.retrieval.kind))
    try:
        yield state
    finally:
        timers.close()
        lull.open()
        await tasks.close(CLOSE_WITHIN_S)
        await upstreams.close()
        await store.close()


def _start_rounds(state: State, timers: Timers) -> None:
    """What is done once and from time to time, in one worker of several."""
    sweeper, distiller = Sweeper(state), Distiller(state)
    state.tasks.start(sweeper.sweep(), "retention")
    state.tasks.start(distiller.make_up(), "distilling")
    timers.start("retention", sweeper.sweep, lambda: EVERY_S)
    timers.start("distilling", distiller.daily, distiller.wait_s)


async def _embedder(retrieval: Retrieval, upstreams: Callable[[str], Upstream]) -> Embedder | None:
    """The embedder that is wanted, None if words have to do; raises ConfigError where they were not to."""
    which: Literal["wordllama", "upstream"] = "upstream" if retrieval.embedder == "upstream" else "wordllama"
    if retrieval.kind not in BY_MEANING or missing_package(which):
        return None
    try:
        return await asyncio.to_thread(open_embedder, which, retrieval.embedding_model or "", upstreams)
    except ConfigError as error:
        if retrieval.kind == "dense" or retrieval.embedder != "auto":
            raise
        log.warning("retrieval goes by words alone: %s", error.message)
        return None


def application(state: State) -> web.Application:
    """The whole application: proxy, admin API, forwarding."""
    app = make_app(state)
    add_admin(app, state)
    add_forwarding(app, state)
    return app


@contextlib.asynccontextmanager
async def running_server(settings: Callable[[], Settings], seat: Seat | None = None) -> AsyncIterator[tuple[State, str]]:
    """A listening server; gives its state and its base URL. A worker's listens on what it was given."""
    async with running_state(settings, seat) as state:
        runner = web.AppRunner(
            application(state),
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            max_line_size=LINE_BYTES,
            max_field_size=LINE_BYTES,
            shutdown_timeout=CLOSE_WITHIN_S,
        )
        await runner.setup()
        try:
            for site in _sites(runner, settings().listen, seat):
                await _started(site, settings().listen)
            yield state, url_of(runner.addresses[0])
        finally:
            await runner.cleanup()


def _sites(runner: web.AppRunner, listen: Listen, seat: Seat | None) -> list[web.BaseSite]:
    if seat is not None:
        return [web.SockSite(runner, listener) for listener in listeners(seat.address)]
    return [web.TCPSite(runner, listen.host, listen.port)]


async def _started(site: web.BaseSite, listen: Listen) -> None:
    try:
        await site.start()
    except OSError as error:
        raise cannot_listen(listen, error) from None


def cannot_listen(listen: Listen, error: OSError) -> ConfigError:
    """Why the start ends where the address cannot be had."""
    return ConfigError(f"listen: cannot listen on {listen.host}:{listen.port}: {error.strerror}")


def url_of(address: Sequence[Any]) -> str:
    """The base URL of a listening socket's address."""
    host, port = address[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _told_damage(found: SetAside) -> None:
    log.error("the store's file was damaged (%s); it was set aside as %s, and a fresh one made", found.reason, found.path.name)


def keep_large_blocks() -> None:
    """Let malloc keep freed blocks: giving every large body back to the kernel costs more than copying it (shared/perf/limits.md, finding 1).

    Does nothing where the C library has no `mallopt`; `scripts/serve` sets the same through the environment.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        for option, value in ((M_MMAP_THRESHOLD, KEEP_BYTES), (M_TRIM_THRESHOLD, KEEP_BYTES)):
            libc.mallopt(option, value)
