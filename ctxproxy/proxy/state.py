"""What the shell's parts share: the adapters, the settings in force, and what is remembered in memory. Built once, in `wiring`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from ctxproxy.config.schema import Settings
from ctxproxy.core.records import SessionKey
from ctxproxy.ports import Store, Tokenizer, Upstream
from ctxproxy.proxy.claims import Claims
from ctxproxy.proxy.counting import Counts, Identities, Readings
from ctxproxy.proxy.erasing import Eraser
from ctxproxy.proxy.fact_desk import FactDesk
from ctxproxy.proxy.foresight import Foresight
from ctxproxy.proxy.gauges import Gauges
from ctxproxy.proxy.health import Health
from ctxproxy.proxy.index_desk import IndexDesk
from ctxproxy.proxy.lull import Lull
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.note_search import NoteSearch
from ctxproxy.proxy.notes import Notes
from ctxproxy.proxy.outcome_log import OutcomeLog
from ctxproxy.proxy.reading import Bodies
from ctxproxy.proxy.recall_offer import RecallOffers
from ctxproxy.proxy.sections import Section
from ctxproxy.proxy.summary_desk import SummaryDesk
from ctxproxy.proxy.tasks import Tasks
from ctxproxy.proxy.vector_desk import VectorDesk
from ctxproxy.proxy.window_book import WindowBook


@dataclass(slots=True)
class State:
    """One a program; `settings` gives what is in force now (a reload changes it between requests, never within one)."""

    settings: Callable[[], Settings]
    secret: bytes
    store: Store
    upstream: Callable[[str], Upstream]
    """The upstream for a base URL; the same object for the same URL."""
    tokenizer: Callable[[str, Settings], Tokenizer]
    """The tokenizer for a model; loading one may take a second: call it in a thread, or let `gauges` do that."""
    windows: WindowBook
    gauges: Gauges
    summaries: SummaryDesk
    foresight: Foresight
    bodies: Bodies
    counts: Counts
    identities: Identities
    readings: Readings
    tasks: Tasks
    claims: Claims
    lull: Lull
    health: Health
    metrics: Metrics
    notes: Notes
    eraser: Eraser
    facts: FactDesk
    index: IndexDesk
    vectors: VectorDesk
    note_search: NoteSearch
    outcomes: OutcomeLog
    sections: Sequence[Section]
    """What an exported session holds beside its log."""
    recall: RecallOffers = field(default_factory=RecallOffers)
    clock: Callable[[], float] = field(default=time.time)
    distilling: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while `MEMORY.md` of some folder is made."""
    turns: WeakValueDictionary[SessionKey, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """Held while what is to be kept of a request is put behind that of others of its session that were quicker."""
    started: float = field(default_factory=time.time)
    """When the program was started: what was last used before is met for the first time since a restart."""
