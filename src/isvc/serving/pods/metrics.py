"""Metrics of the model server through Knative's queue-proxy, and where Prometheus finds them."""

from __future__ import annotations

from typing import Final

from isvc.kube.objects import Object
from isvc.serving import annotations as names
from isvc.serving.config.sections import MetricsAggregatorConfig
from isvc.serving.containers import QUEUE_PROXY, ensure_list, find_by_name, merge_env, variable

METRICS_PATH: Final = "/metrics"
MODEL_SERVER_PORT: Final = "8080"
QUEUE_PROXY_PORT: Final = "9091"
AGGREGATE_PORT: Final = "9088"
AGGREGATE_PORT_NAME: Final = "aggr-metric"


def configure_metrics(pod: Object, config: MetricsAggregatorConfig) -> None:
    """Writes down what the pod or else the ConfigMap wants, and does it."""
    metadata = pod["metadata"]
    annotations: dict[str, str] = metadata.get("annotations") or {}
    metadata["annotations"] = annotations
    aggregate = annotations.setdefault(names.METRIC_AGGREGATION, config.enable_metric_aggregation) == "true"
    if aggregate:
        for container in pod["spec"]["containers"]:
            if container["name"] == QUEUE_PROXY:
                _aggregate(container, annotations)
    if annotations.setdefault(names.PROMETHEUS_SCRAPING, config.enable_prometheus_scraping) == "true":
        annotations[names.POD_METRICS_PORT] = AGGREGATE_PORT if aggregate else QUEUE_PROXY_PORT
        annotations[names.POD_METRICS_PATH] = METRICS_PATH


def _aggregate(queue_proxy: Object, annotations: dict[str, str]) -> None:
    port = annotations.get(names.MODEL_METRICS_PORT, MODEL_SERVER_PORT)
    path = annotations.get(names.MODEL_METRICS_PATH, METRICS_PATH)
    merge_env(
        queue_proxy,
        [
            variable("KSERVE_CONTAINER_PROMETHEUS_METRICS_PORT", port),
            variable("KSERVE_CONTAINER_PROMETHEUS_METRICS_PATH", path),
            variable("AGGREGATE_PROMETHEUS_METRICS_PORT", AGGREGATE_PORT),
        ],
    )
    ports = ensure_list(queue_proxy, "ports")
    if find_by_name(ports, AGGREGATE_PORT_NAME) is None:
        ports.append({"name": AGGREGATE_PORT_NAME, "containerPort": int(AGGREGATE_PORT), "protocol": "TCP"})
