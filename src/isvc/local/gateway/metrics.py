"""What the gateway counts: requests, time and bytes by service. Served at `/-/metrics` on this machine's own names."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

PATH: Final = "/-/metrics"
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "isvc_gateway_requests", "Requests that were answered.", ["service", "code"], registry=self._registry
        )
        self._seconds = Histogram(
            "isvc_gateway_request_duration_seconds",
            "Time from a request's headers to the end of its answer.",
            ["service"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._sent = Counter(
            "isvc_gateway_response_bytes",
            "Bytes of answers: bodies, and the headers of those that are streamed.",
            ["service"],
            registry=self._registry,
        )
        self.in_flight = Gauge(
            "isvc_gateway_requests_in_flight", "Requests that are being answered.", registry=self._registry
        )
        self._known: dict[tuple[str, int], tuple[Counter, Histogram, Counter]] = {}

    def count(self, service: str, status: int, seconds: float, sent: int) -> None:
        """`service` is one that exists, or `-`: names that clients make up would never end."""
        found = self._known.get((service, status))
        if found is None:
            found = (
                self._requests.labels(service, str(status)),
                self._seconds.labels(service),
                self._sent.labels(service),
            )
            self._known[service, status] = found
        requests, duration, size = found
        requests.inc()
        duration.observe(seconds)
        size.inc(sent)

    def response(self) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
