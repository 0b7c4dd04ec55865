"""Figures that are added up in plain numbers: whoever reads them finds them whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import Counter, Histogram

from ctxproxy.proxy import pending
from ctxproxy.proxy.metrics import Metrics
from ctxproxy.proxy.pending import Registry


def test_a_counter_has_all_amounts_whenever_it_is_read() -> None:
    registry = Registry()
    total = registry.summed(Counter("tokens", "Tokens", registry=registry))
    assert registry.get_sample_value("tokens_total") == 0
    for amount in (1, 2.5, 0):
        total.inc(amount)
    total.inc()
    assert registry.get_sample_value("tokens_total") == 4.5
    assert registry.get_sample_value("tokens_total") == 4.5
    total.inc(3)
    assert registry.get_sample_value("tokens_total") == 7.5


def test_a_histogram_has_all_values_and_holds_few_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "MOST_OBSERVED", 3)
    registry = Registry()
    seconds = registry.observed(Histogram("seconds", "Seconds", buckets=(1, 10), registry=registry))
    for value in (0.5, 2, 3, 4):
        seconds.observe(value)
        assert len(seconds._pending) < 3
    assert registry.get_sample_value("seconds_count") == 4
    assert registry.get_sample_value("seconds_bucket", {"le": "1.0"}) == 1
    assert registry.get_sample_value("seconds_sum") == 9.5


def test_the_text_holds_what_was_just_added() -> None:
    metrics = Metrics()
    metrics.tokens_in.inc(7)
    metrics.answered.inc()
    metrics.planning.observe(0.003)
    told = metrics.text().decode()
    assert "ctxproxy_tokens_in_total 7.0\n" in told
    assert 'ctxproxy_requests_total{outcome="answered"} 1.0\n' in told
    assert 'ctxproxy_planning_seconds_bucket{le="0.005"} 1.0\n' in told


def test_of_several_workers_each_amount_is_told_at_once(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path)
    metrics.tokens_in.inc(7)
    metrics.planning.observe(0.003)
    assert isinstance(metrics.tokens_in, Counter)
    assert isinstance(metrics.planning, Histogram)
