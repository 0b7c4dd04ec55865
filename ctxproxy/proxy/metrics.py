"""Counters and histograms in Prometheus' form; labels hold no text of a conversation and no credential."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    """One registry a program, so that tests and several apps in a process do not share numbers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("ctxproxy_requests", "Chat completion requests by outcome", ["outcome"], registry=self.registry)
        self.upstream_calls = Counter("ctxproxy_upstream_calls", "Calls to the upstream", ["purpose", "status"], registry=self.registry)
        self.tokens_in = Counter("ctxproxy_tokens_in", "Logical prompt tokens of all requests", registry=self.registry)
        self.tokens_sent = Counter("ctxproxy_tokens_sent", "Prompt tokens sent", registry=self.registry)
        self.stage_edits = Counter("ctxproxy_stage_edits", "Edits by stage", ["stage"], registry=self.registry)
        self.overflows = Counter("ctxproxy_overflows", "Context overflows by result", ["result"], registry=self.registry)
        self.summaries = Counter("ctxproxy_summaries", "Summaries by result", ["result"], registry=self.registry)
        self.failed_open = Counter("ctxproxy_failed_open", "Requests passed on untouched after a fault of ours", registry=self.registry)
        self.store_errors = Counter("ctxproxy_store_errors", "Store calls that failed", registry=self.registry)
        self.planning = Histogram(
            "ctxproxy_planning_seconds", "Time from the whole body to the upstream call", buckets=SECONDS, registry=self.registry
        )

    def text(self) -> bytes:
        """The exposition text for `GET /metrics`."""
        return generate_latest(self.registry)
