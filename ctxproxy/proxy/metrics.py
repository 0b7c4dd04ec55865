"""Counters and histograms in Prometheus' form; labels hold no text of a conversation and no credential."""

from __future__ import annotations

import os
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess, values

from ctxproxy.core.records import Spent
from ctxproxy.proxy.pending import Observed, Registry, Sum

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


def share(folder: Path, number: int) -> None:
    """Have all metrics that this process makes from now on kept in files of the folder, under the number of a worker.

    A worker that is started again goes on with the figures of the one before: a counter never falls.
    """
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]  # the library has no types there


class Metrics:
    """One registry a program, so that tests and several apps in a process do not share numbers; of several workers, a folder that they share."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self.registry = Registry()
        self.requests = Counter("ctxproxy_requests", "Chat completion requests by outcome", ["outcome"], registry=self.registry)
        self.upstream_calls = Counter("ctxproxy_upstream_calls", "Calls to the upstream", ["purpose", "status"], registry=self.registry)
        self.tokens_in = self._often(Counter("ctxproxy_tokens_in", "Logical prompt tokens of all requests", registry=self.registry))
        self.tokens_sent = self._often(Counter("ctxproxy_tokens_sent", "Prompt tokens sent", registry=self.registry))
        self.stage_edits = Counter("ctxproxy_stage_edits", "Edits by stage", ["stage"], registry=self.registry)
        self.compactions = Counter("ctxproxy_compactions", "New decisions to shorten a prompt", registry=self.registry)
        self.last_gain = Gauge(
            "ctxproxy_last_compaction_gain_tokens",
            "Tokens that the newest of them saved",
            registry=self.registry,
            multiprocess_mode="mostrecent",
        )
        self.overflows = Counter("ctxproxy_overflows", "Context overflows by result", ["result"], registry=self.registry)
        self.summaries = Counter("ctxproxy_summaries", "Summaries by result", ["result"], registry=self.registry)
        self.cost = Counter("ctxproxy_cost", "Costs in prompt tokens that are not cached, by our model of the cache", ["of"], registry=self.registry)
        self.tokens_cached = Counter("ctxproxy_tokens_cached", "Prompt tokens that the upstream had cached", ["source"], registry=self.registry)
        self.tokens_reported = self._often(Counter("ctxproxy_tokens_reported", "Prompt tokens as the upstream reported them", registry=self.registry))
        self.memory_points = Counter("ctxproxy_memory_points", "Memory points by source, and what failed", ["result"], registry=self.registry)
        self.recalls = Counter("ctxproxy_recalls", "Calls of the recall tool by result", ["result"], registry=self.registry)
        self.expired = Counter("ctxproxy_sessions_expired", "Sessions erased because they were not used for long", registry=self.registry)
        self.memory_notes = Counter("ctxproxy_memory_notes", "Sections for memory files by result", ["result"], registry=self.registry)
        self.failed_open = Counter("ctxproxy_failed_open", "Requests passed on untouched after a fault of ours", registry=self.registry)
        self.store_errors = Counter("ctxproxy_store_errors", "Store calls that failed", registry=self.registry)
        self.embedding_failures = Counter("ctxproxy_embedding_failures", "Vectors that could not be had", registry=self.registry)
        self.max_steps = Counter("ctxproxy_max_steps", "Requests whose turn had come to its most steps", registry=self.registry)
        self.arm_requests = Counter(
            "ctxproxy_arm_requests", "Chat completion requests of an experiment's arm by outcome", ["arm", "outcome"], registry=self.registry
        )
        self.arm_tokens_in = Counter("ctxproxy_arm_tokens_in", "Logical prompt tokens of an arm's requests", ["arm"], registry=self.registry)
        self.arm_tokens_sent = Counter("ctxproxy_arm_tokens_sent", "Prompt tokens sent for an arm", ["arm"], registry=self.registry)
        self.arm_compactions = Counter("ctxproxy_arm_compactions", "New decisions made for an arm", ["arm"], registry=self.registry)
        self.arm_overflows = Counter("ctxproxy_arm_overflows", "Context overflows of an arm by result", ["arm", "result"], registry=self.registry)
        planning = Histogram("ctxproxy_planning_seconds", "Time from the whole body to the upstream call", buckets=SECONDS, registry=self.registry)
        self.planning: Histogram | Observed = planning if folder else self.registry.observed(planning)

        self.answered = self._often(self.requests.labels("answered"))  # looked up once: a label costs more than what is added
        self.called_well = self._often(self.upstream_calls.labels("chat", "200"))
        self._costs = [self._often(self.cost.labels(of)) for of in ("all", "sent", "summaries")]
        self._cached = [self._often(self.tokens_cached.labels(source)) for source in ("expected", "reported")]

    def _often(self, counter: Counter) -> Counter | Sum:
        """A counter that each request adds to; what several workers share has to be in their folder at once, since any of them may be asked."""
        return counter if self._folder else self.registry.summed(counter)

    def count_spent(self, spent: Spent) -> None:
        """Add what requests and summaries cost."""
        for counter, cost in zip(self._costs, (spent.cost_all, spent.cost_sent, spent.cost_summaries), strict=True):
            if cost:
                counter.inc(cost)
        for counter, tokens in zip(self._cached, (spent.cached_expected, spent.reported_cached), strict=True):
            if tokens:
                counter.inc(tokens)
        self.tokens_reported.inc(spent.reported_prompt)

    def text(self) -> bytes:
        """The exposition text for `GET /metrics`: of all workers together, whichever is asked."""
        if self._folder is None:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together, str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(together)
