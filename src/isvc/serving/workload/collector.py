"""The OpenTelemetryCollector sidecar that hands a pod's own metrics to KEDA's scaler."""

from __future__ import annotations

from typing import Final

from isvc.engine.plan import Child
from isvc.engine.policies import SPEC
from isvc.kube.objects import Object
from isvc.serving.annotations import MODEL_METRICS_PORT
from isvc.serving.config import Config
from isvc.serving.thirdparty import OPENTELEMETRY_COLLECTORS
from isvc.serving.workload.component import Component

_STATEMENTS: Final = tuple(
    f'set(attributes["{name}"], resource.attributes["k8s.{name}.name"])' for name in ("namespace", "deployment", "pod")
)


def collector(component: Component, config: Config) -> Child | None:
    """Returns a collector for the metrics that the component scales on, if it scales on any of its own."""
    scaling = component.spec.auto_scaling
    metrics = [
        name
        for metric in (scaling.metrics if scaling else ())
        if metric.type == "PodMetric" and metric.podmetric and metric.podmetric.metric.backend == "opentelemetry"
        for name in metric.podmetric.metric.metric_names
    ]
    if not metrics:
        return None
    settings = config.opentelemetry_collector
    port = component.annotations.get(MODEL_METRICS_PORT, "8080")
    manifest = OPENTELEMETRY_COLLECTORS.manifest(
        component.metadata(labels={}),
        spec={
            "mode": "sidecar",
            "targetAllocator": {"prometheusCR": {}},
            "config": {
                "receivers": {"prometheus": {"config": {"scrape_configs": [_scrape(port, settings.scrape_interval)]}}},
                "processors": _processors(metrics),
                "exporters": {
                    "otlp": {
                        "endpoint": settings.metric_receiver_endpoint,
                        "compression": "none",
                        "tls": {"insecure": True},
                    }
                },
                "service": {
                    "pipelines": {
                        "metrics": {
                            "receivers": ["prometheus"],
                            "processors": ["resourcedetection/env", "transform", "filter/metrics"],
                            "exporters": ["otlp"],
                        }
                    }
                },
            },
        },
    )
    if resources := _resources(config):
        manifest["spec"]["resources"] = resources
    return Child(OPENTELEMETRY_COLLECTORS, manifest, policy=SPEC)


def _scrape(port: str, interval: str) -> Object:
    return {
        "job_name": "otel-collector",
        "scrape_interval": interval,
        "static_configs": [{"targets": [f"localhost:{port}"]}],
    }


def _processors(metrics: list[str]) -> Object:
    return {
        "resourcedetection/env": {"detectors": ["env"], "timeout": "2s", "override": False},
        "transform": {"metric_statements": [{"context": "datapoint", "statements": list(_STATEMENTS)}]},
        "filter/metrics": {"metrics": {"include": {"match_type": "strict", "metric_names": metrics}}},
    }


def _resources(config: Config) -> Object:
    given = config.opentelemetry_collector.resource.requirements
    chosen = {kind: {k: v for k, v in values.items() if v} for kind, values in given.items()}
    return {kind: values for kind, values in chosen.items() if values}
