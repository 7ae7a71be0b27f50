"""Prometheus metrics under the names that controller-runtime uses, so that dashboards fit both.

prometheus_client is imported when a Metrics is made, so that command lines do not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Histogram

    from isvc.toolkit.client.transport import Answered

_RECONCILE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_QUEUE_BUCKETS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000)
_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)  # client-go's
RESULTS = ("success", "error", "requeue", "requeue_after")


class Metrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
        from prometheus_client.platform_collector import PlatformCollector
        from prometheus_client.process_collector import ProcessCollector

        disable_created_metrics()  # type: ignore[no-untyped-call]  # series that Go's clients do not have
        self.registry = registry or CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=self.registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, labels, registry=self.registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(name, text, labels, registry=self.registry, buckets=buckets)

        runtime = "controller_runtime_"
        self.reconciles = counter(runtime + "reconcile_total", "Reconciles per controller.", "controller", "result")
        self.errors = counter(runtime + "reconcile_errors_total", "Failed reconciles per controller.", "controller")
        self.terminal = counter(runtime + "terminal_reconcile_errors_total", "Failures not retried.", "controller")
        self.panics = counter(runtime + "reconcile_panics_total", "Reconciles that crashed.", "controller")
        self.seconds = histogram(
            runtime + "reconcile_time_seconds", "Length of a reconcile.", _RECONCILE_BUCKETS, "controller"
        )
        self.workers = gauge(runtime + "max_concurrent_reconciles", "Workers per controller.", "controller")
        self.active = gauge(runtime + "active_workers", "Busy workers per controller.", "controller")
        self.webhook_requests = counter(
            runtime + "webhook_requests_total", "Admission requests by HTTP status.", "webhook", "code"
        )
        self.webhook_seconds = histogram(
            runtime + "webhook_latency_seconds", "Length of admission requests.", _RECONCILE_BUCKETS, "webhook"
        )
        self.depth = gauge("workqueue_depth", "Keys that wait.", "name", "controller")
        self.adds = counter("workqueue_adds_total", "Keys added.", "name", "controller")
        self.retries = counter("workqueue_retries_total", "Keys added after a failure.", "name", "controller")
        self.waited = histogram(
            "workqueue_queue_duration_seconds", "How long keys wait.", _QUEUE_BUCKETS, "name", "controller"
        )
        self.worked = histogram(
            "workqueue_work_duration_seconds", "How long keys are worked.", _QUEUE_BUCKETS, "name", "controller"
        )
        self.unfinished = gauge(
            "workqueue_unfinished_work_seconds", "Seconds of work under way, added up.", "name", "controller"
        )
        self.longest = gauge(
            "workqueue_longest_running_processor_seconds", "The longest work under way.", "name", "controller"
        )
        self.requests = counter("rest_client_requests_total", "API requests.", "code", "method", "host")
        self.request_seconds = histogram(
            "rest_client_request_duration_seconds", "Length of API requests.", _REQUEST_BUCKETS, "verb", "host"
        )
        self.events_dropped = counter("isvc_events_dropped_total", "Kubernetes events that were not written.", "reason")
        self.configuration_valid = gauge("isvc_configuration_valid", "1 while inferenceservice-config can be read.")
        certificate = "isvc_webhook_certificate_expiration_timestamp_seconds"
        self.certificate_expires = gauge(certificate, "When the webhooks' certificate ends, in seconds since 1970.")
        self.leading = gauge("leader_election_master_status", "1 on the leader.", "name")

    def count_answer(self, path: str, code: int, seconds: float) -> None:
        """Counts one webhook request; implements webhook.server.WebhookMeter."""
        self.webhook_requests.labels(path, str(code)).inc()
        self.webhook_seconds.labels(path).observe(seconds)

    def event_dropped(self, reason: str) -> None:
        self.events_dropped.labels(reason).inc()

    def text(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    def request_observer(self, host: str) -> RequestMeter:
        return RequestMeter(self, host)


class RequestMeter:
    """Counts API answers; the children are kept because looking labels up costs more than counting."""

    def __init__(self, metrics: Metrics, host: str) -> None:
        self._metrics, self._host = metrics, host
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def __call__(self, answer: Answered) -> None:
        method, status = answer.method, answer.status
        known = self._known.get((method, status))
        if known is None:
            counter = self._metrics.requests.labels(str(status), method, self._host)
            known = self._known[method, status] = counter, self._metrics.request_seconds.labels(method, self._host)
        known[0].inc()
        known[1].observe(answer.seconds)


class ControllerMeter:
    """The metrics of one controller's queue and workers. Implements queue.QueueMeter."""

    def __init__(self, metrics: Metrics, name: str, workers: int, running: Callable[[], list[float]]) -> None:
        """`running` returns for how long each key under way has been worked."""
        self._adds = metrics.adds.labels(name, name)
        self._retries = metrics.retries.labels(name, name)
        self._depth = metrics.depth.labels(name, name)
        self._waited = metrics.waited.labels(name, name)
        self._worked = metrics.worked.labels(name, name)
        self._results = {result: metrics.reconciles.labels(name, result) for result in RESULTS}
        self._errors = metrics.errors.labels(name)
        self._panics = metrics.panics.labels(name)
        self._seconds = metrics.seconds.labels(name)
        self._active = metrics.active.labels(name)
        metrics.terminal.labels(name)
        metrics.unfinished.labels(name, name).set_function(lambda: sum(running()))
        metrics.longest.labels(name, name).set_function(lambda: max(running(), default=0.0))
        metrics.workers.labels(name).set(workers)

    def observe_add(self, depth: int) -> None:
        self._adds.inc()
        self._depth.set(depth)

    def observe_retry(self) -> None:
        self._retries.inc()

    def observe_take(self, waited: float, depth: int) -> None:
        self._waited.observe(waited)
        self._depth.set(depth)
        self._active.inc()

    def observe_done(self, worked: float, depth: int) -> None:
        self._worked.observe(worked)
        self._depth.set(depth)
        self._active.dec()

    def observe_reconcile(self, result: str, seconds: float, *, crashed: bool = False) -> None:
        self._results[result].inc()
        self._seconds.observe(seconds)
        if result == "error":
            self._errors.inc()
        if crashed:
            self._panics.inc()
