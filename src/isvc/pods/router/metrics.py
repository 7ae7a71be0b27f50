"""How often and how long nodes and their steps were asked, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Outcome:
    """What became of a node or a step: the status of its answer, or else that there was none."""

    code = "error"


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._nodes = Histogram(
            "isvc_router_node_duration_seconds",
            "Time until a node of the graph answered, or began to",
            ("node", "code"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._steps = Histogram(
            "isvc_router_step_duration_seconds",
            "Time until a step of a node answered, or began to, retries included",
            ("node", "step", "code"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.retries = Counter(
            "isvc_router_step_retries",
            "Calls of a step's service that were made again",
            ("node", "step"),
            registry=self.registry,
        )

    def node(self, node: str) -> AbstractContextManager[Outcome]:
        return _timed(self._nodes, node)

    def step(self, node: str, step: str) -> AbstractContextManager[Outcome]:
        return _timed(self._steps, node, step)

    def text(self) -> bytes:
        return generate_latest(self.registry)


@contextmanager
def _timed(histogram: Histogram, *labels: str) -> Iterator[Outcome]:
    outcome, started = Outcome(), time.perf_counter()
    try:
        yield outcome
    finally:
        histogram.labels(*labels, outcome.code).observe(time.perf_counter() - started)
