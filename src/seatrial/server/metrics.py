"""Figures of a server: totals of this process, and what Prometheus reads of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from seatrial.server.logs import occurrences

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds by which times are counted."""


class Counters:
    """Totals since the process began."""

    __slots__ = ("appended", "bytes_sent", "commit_counts", "commit_s", "delivered", "recovered")

    def __init__(self) -> None:
        self.appended = 0
        """Events that were committed here."""
        self.delivered = 0
        """Events that subscribers were given, each counted for each of them."""
        self.bytes_sent = 0
        """Bytes of streams."""
        self.recovered = 0
        """How often a recheck of the store found events of a run driven here of which no wake-up had come."""
        self.commit_counts = [0] * (len(SECONDS) + 1)
        """Appends by how long their commit took: up to each of the bounds, and beyond the last."""
        self.commit_s = 0.0
        """How long they took in all."""

    def committed(self, seconds: float) -> None:
        """Count an append that was acknowledged after so long."""
        self.commit_counts[bisect_left(SECONDS, seconds)] += 1
        self.commit_s += seconds


COUNTERS = Counters()


CONTENT_TYPE = CONTENT_TYPE_LATEST

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The figures of one server, in a registry of their own."""

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], float]]] | None = None) -> None:
        """`gauges`: for each name its meaning, and a function that gives its value."""
        self.registry = CollectorRegistry()
        self.in_progress = Gauge(
            "seatrial_http_requests_in_progress",
            "Requests that are being answered, streams too",
            registry=self.registry,
        )
        self._requests = Counter(
            "seatrial_http_requests",
            "Requests that were answered",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "seatrial_http_response_start_seconds",
            "From a request to the start of its response",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.registry.register(_Standing(gauges or {}))
        ProcessCollector(registry=self.registry)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. `route` is a template, so that there are as many series as routes."""
        self._requests.labels(method if method in _METHODS else "(other)", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self.registry)


class _Standing(Collector):
    """Figures that are kept elsewhere, and read when they are asked for."""

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        for name, (meaning, value) in self._gauges.items():
            yield GaugeMetricFamily(name, meaning, value())
        for name, meaning, total in (
            ("seatrial_events_appended", "Events that were committed", COUNTERS.appended),
            ("seatrial_events_delivered", "Events that subscribers were given", COUNTERS.delivered),
            ("seatrial_stream_bytes", "Bytes of streams that were sent", COUNTERS.bytes_sent),
            ("seatrial_feed_heals", "Wake-ups that were missed and made up for", COUNTERS.recovered),
        ):
            yield CounterMetricFamily(name, meaning, total)
        counts = list(accumulate(COUNTERS.commit_counts))
        bounds = [*map(str, SECONDS), "+Inf"]
        yield HistogramMetricFamily(
            "seatrial_append_seconds",
            "From handing events of a run to the store to their commit",
            buckets=list(zip(bounds, counts, strict=True)),
            sum_value=COUNTERS.commit_s,
        )
        happened = CounterMetricFamily(
            "seatrial_occurrences", "What the log has lines of, but for requests", labels=["event", "status"]
        )
        for labels, count in sorted(occurrences.items()):
            happened.add_metric(labels, count)
        yield happened
