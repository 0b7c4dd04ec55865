"""Figures that every request adds to, added up in plain numbers until somebody reads them: the library's locks and checks cost ten times as much."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import Metric

MOST_OBSERVED = 1000
"""Values of a histogram that are held back at most."""


class Sum:
    """A counter, told of its amounts when it is read."""

    __slots__ = ("_counter", "_pending")

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._pending = 0.0

    def inc(self, amount: float = 1) -> None:
        """Add an amount, 0 or more."""
        self._pending += amount

    def settle(self) -> None:
        """Tell the counter."""
        if self._pending:
            self._counter.inc(self._pending)
            self._pending = 0.0


class Observed:
    """A histogram, told of its values when it is read."""

    __slots__ = ("_histogram", "_pending")

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._pending: list[float] = []

    def observe(self, value: float) -> None:
        """Add a value."""
        self._pending.append(value)
        if len(self._pending) >= MOST_OBSERVED:
            self.settle()

    def settle(self) -> None:
        """Tell the histogram."""
        for value in self._pending:
            self._histogram.observe(value)
        self._pending.clear()


class Registry(CollectorRegistry):
    """A registry of one process, which is told of what is pending whenever it is read."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: list[Sum | Observed] = []

    def summed(self, counter: Counter) -> Sum:
        """The counter, to be added to by each request."""
        pending = Sum(counter)
        self._pending.append(pending)
        return pending

    def observed(self, histogram: Histogram) -> Observed:
        """The histogram, to be added to by each request."""
        pending = Observed(histogram)
        self._pending.append(pending)
        return pending

    def collect(self) -> Iterable[Metric]:
        """All metrics with their figures."""
        for pending in self._pending:
            pending.settle()
        return super().collect()
