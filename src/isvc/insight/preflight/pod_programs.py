"""The programs in users' pods: whose images they are, what others would change, and who adds up metrics on Knative."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from isvc.insight.preflight.finding import Finding, ok, warning
from isvc.kube.objects import Object, dig
from isvc.serving.config import Config

QUEUE_PROXY_CONFIG: Final = "config-deployment"
_QUEUE_PROXY_KEYS: Final = ("queue-sidecar-image", "queueSidecarImage")
_AGGREGATOR: Final = "qpext"
_SECTIONS: Final = ("agent", "router", "storageInitializer")


def check_images(config: Config) -> Iterator[Finding]:
    images = {"agent": config.agent, "router": config.router, "storage initializer": config.storage_initializer}
    said = ", ".join(f"{name} {section.image}" for name, section in images.items())
    yield ok("pods", f"programs in pods: {said}")


def check_metric_aggregation(config: Config, knative: Object | None) -> Iterator[Finding]:
    """`knative` is Knative's ConfigMap that names the image of its queue-proxy; None where there is none."""
    if knative is None:
        return
    image = next((str(value) for key in _QUEUE_PROXY_KEYS if (value := dig(knative, "data", key))), "Knative's own")
    fact = "metrics of queue-proxy and model server are added up by KServe's queue-proxy (kserve/qpext), not by isvc"
    if _AGGREGATOR in image or config.metrics_aggregator.enable_metric_aggregation != "true":
        yield ok("metrics", f"{fact}; queue-proxy is {image}")
    else:
        remedy = (
            f"set queue-sidecar-image in ConfigMap {QUEUE_PROXY_CONFIG} of Knative, or enableMetricAggregation to false"
        )
        yield warning("metrics", f"{fact}; enableMetricAggregation is true, but queue-proxy is {image}", remedy)


def with_programs_of(chart: Mapping[str, str], config_map: Object) -> Object:
    """Returns a ConfigMap with the images and commands of the sections of the chart, and nothing else of it."""
    data = dict(config_map.get("data") or {})
    for section in _SECTIONS:
        ours = json.loads(chart[section])
        kept = {key: value for key, value in json.loads(data.get(section) or "{}").items() if key != "command"}
        program = {key: ours[key] for key in ("image", "command") if key in ours}
        data[section] = json.dumps({**kept, **program})
    return {**config_map, "data": data}
