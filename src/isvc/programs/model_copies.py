"""Counts the copies of cached models on nodes, as a metric that alerts look at."""

from __future__ import annotations

from typing import Final

from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES
from isvc.kube.objects import Object, dig
from isvc.toolkit.cache import Cache
from isvc.toolkit.metrics import Metrics

STATES: Final = ("available", "failed", "pending")


def count_copies(cache: Cache, metrics: Metrics) -> None:
    """Keeps the metric up to date with the statuses of all caches."""
    from prometheus_client import Gauge

    text = "Copies of cached models on nodes, by whether they are there, failed, or are still to come."
    gauge = Gauge("isvc_model_copies", text, ("state",), registry=metrics.registry)
    for state in STATES:
        gauge.labels(state)

    def count(before: Object | None, after: Object | None) -> None:
        was, now = copies_of(before), copies_of(after)
        for state in STATES:
            gauge.labels(state).inc(now[state] - was[state])

    for resource in (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES):
        cache.subscribe(resource, count)


def copies_of(cache: Object | None) -> dict[str, int]:
    """Returns how many copies of its model a cache counts in each state."""
    counts = dig(cache, "status", "copies") or {}
    available, failed = int(counts.get("available") or 0), int(counts.get("failed") or 0)
    pending = max(0, int(counts.get("total") or 0) - available - failed)
    return dict(zip(STATES, (available, failed, pending), strict=True))
