"""`/metrics`: requests, their durations, streams and objects, under kube-apiserver's names.

Counting is a few dictionary operations for each request; the rest is computed when somebody asks.
"""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from isvc.apiserver.nonresource.discovery import VERSION
from isvc.apiserver.request import Request
from isvc.apiserver.resources.registry import Registry
from isvc.apiserver.store.store import Store
from isvc.apiserver.target import Target

if TYPE_CHECKING:
    from prometheus_client.core import Metric

BUCKETS: Final = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_CONNECTED = ("attach", "exec", "portforward", "proxy")


class Labels(NamedTuple):
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str


_NAMES: Final = Labels._fields


def labels_of(request: Request, registry: Registry) -> Labels:
    """Returns labels; what is not served shares one set, so that there are never more than there are resources."""
    target = request.target
    served = registry.find(target.group, target.version, target.plural) if target is not None else None
    if target is None or served is None:
        return Labels(request.method, "", "", "", request.path if request.path in _KNOWN_PATHS else "", "")
    subresource = target.subresource if served.has_subresource(target.subresource) else ""
    scope = "resource" if target.name or request.method == "POST" else "namespace" if target.namespace else "cluster"
    return Labels(_verb(request, target), target.group, target.version, target.plural, subresource, scope)


def _verb(request: Request, target: Target) -> str:
    if target.subresource in _CONNECTED:
        return "CONNECT"
    match request.method:
        case "GET" if not target.name:
            return "WATCH" if request.flag("watch") else "LIST"
        case "DELETE" if not target.name:
            return "DELETECOLLECTION"
        case "PATCH" if request.media_type.startswith("application/apply-patch"):
            return "APPLY"
    return request.method


_KNOWN_PATHS = ("/healthz", "/livez", "/readyz", "/metrics", "/version", "/api", "/apis", "/openapi/v2", "/openapi/v3")


class Metrics:
    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._requests: Counter[tuple[Labels, int]] = Counter()
        self._durations: dict[Labels, list[int]] = {}  # how many by bucket
        self._seconds: defaultdict[Labels, float] = defaultdict(float)

    def observe_latency(self, request: Request, status: int, stream: bool) -> None:
        """Records the time to the first byte; the length of a stream does not count."""
        labels = labels_of(request, self._registry)
        self._requests[labels, status] += 1
        if stream:
            return
        seconds = time.perf_counter() - request.began
        buckets = self._durations.get(labels)
        if buckets is None:
            buckets = self._durations[labels] = [0] * (len(BUCKETS) + 1)
        buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[labels] += seconds

    def text(self, streams: Iterable[Request]) -> bytes:
        """Returns all metrics; `streams` are the requests that are being answered at length."""
        from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_Collector(list(self._collect(streams))))
        return generate_latest(registry)

    def _collect(self, streams: Iterable[Request]) -> Iterator[Metric]:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
            InfoMetricFamily,
        )

        requests = CounterMetricFamily("apiserver_request", "Requests by their answer.", labels=[*_NAMES, "code"])
        for (labels, status), count in self._requests.items():
            requests.add_metric([*labels, str(status)], count)
        yield requests
        durations = HistogramMetricFamily("apiserver_request_duration_seconds", "Time to the answer.", labels=_NAMES)
        for labels, buckets in self._durations.items():
            durations.add_metric(labels, _cumulate(buckets), self._seconds[labels])
        yield durations
        running = GaugeMetricFamily("apiserver_longrunning_requests", "Watches and streams.", labels=_NAMES)
        for labels, count in Counter(labels_of(request, self._registry) for request in streams).items():
            running.add_metric(labels, count)
        yield running
        yield from self._objects()
        build = InfoMetricFamily("kubernetes_build", "Version of the API.")
        build.add_metric(
            [], {"git_version": VERSION["gitVersion"], "major": VERSION["major"], "minor": VERSION["minor"]}
        )
        yield build

    def _objects(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        stored = {each.stored for each in self._registry}
        counts = {each: self._store.count(str(each)) for each in stored}
        total = GaugeMetricFamily("apiserver_storage_objects", "Objects by resource.", labels=["resource"])
        by_group = GaugeMetricFamily("apiserver_resource_objects", "Objects by resource.", labels=["group", "resource"])
        for resource, count in sorted(counts.items(), key=lambda each: str(each[0])):
            total.add_metric([str(resource)], count)
            by_group.add_metric([resource.group, resource.plural], count)
        yield total
        yield by_group


def _cumulate(buckets: list[int]) -> list[tuple[str, float]]:
    totals = itertools.accumulate(buckets)
    return [(str(limit), total) for limit, total in zip((*BUCKETS, "+Inf"), totals, strict=True)]


class _Collector:
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics
