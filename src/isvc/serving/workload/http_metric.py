"""Requests as a metric: KEDA's HTTP add-on counts them, and holds those that come while a component sleeps.

The add-on's interceptor stands in front of a component. It knows whom a request is for by its host, so each component
has a name of its own that leads there: an ExternalName Service. The component's own Service still leads to its pods,
which is where the interceptor sends what it let through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isvc.api.annotations import AUTOSCALER_CLASS, HTTP_METRIC, AutoscalerClass
from isvc.engine.plan import Child
from isvc.kube.objects import Object, dig
from isvc.serving import names
from isvc.serving.config.sections import ServiceAddress
from isvc.serving.hosts import CLUSTER_DOMAIN, service_host
from isvc.serving.thirdparty import INTERCEPTOR_ROUTES, REFERENCE_GRANTS
from isvc.serving.workload.component import Component, WorkloadRefused
from isvc.serving.workload.service import PORT, external_name, http_target_port, is_grpc

COLD_START_SECONDS: Final = 600
"""How long a request waits for the first pod if nothing is said: as long as Kubernetes waits for a Deployment."""
COOLDOWN_SECONDS: Final = 300
GRANTS: Final = {"app.kubernetes.io/managed-by": "isvc"}
"""The label by which our ReferenceGrants are found."""
_SYNTAX: Final = (
    "concurrency=<requests>, requestRate=<requests a second> or both, and cooldown=<seconds> and wait=<seconds>"
)
_TIMES: Final = {"cooldown": COOLDOWN_SECONDS, "wait": COLD_START_SECONDS}
_LARGEST: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class HttpMetric:
    """What each replica should have to do, and for how many seconds nothing has to come before the last one goes."""

    concurrency: int | None = None
    request_rate: int | None = None
    cooldown: int = COOLDOWN_SECONDS
    wait: int = COLD_START_SECONDS
    """For how many seconds a request waits for the first pod."""


def http_metric(component: Component) -> HttpMetric | None:
    """Returns by which requests a component is scaled; None where it does not ask for that."""
    text = component.annotations.get(HTTP_METRIC)
    if not text:
        return None
    if component.autoscaler != AutoscalerClass.KEDA:
        raise WorkloadRefused(f"the annotation {HTTP_METRIC} needs {AUTOSCALER_CLASS}: {AutoscalerClass.KEDA}")
    if component.worker is not None:
        raise WorkloadRefused(f"the annotation {HTTP_METRIC} is not for a predictor on several nodes")
    given = dict(part.strip().partition("=")[::2] for part in text.split(","))
    if not given.keys() <= {"concurrency", "requestRate", *_TIMES} or not given.keys() - _TIMES.keys():
        raise _malformed(text)
    numbers = {key: _number(value, text, least=0 if key == "cooldown" else 1) for key, value in given.items()}
    return HttpMetric(
        numbers.get("concurrency"), numbers.get("requestRate"), **{key: numbers.get(key, _TIMES[key]) for key in _TIMES}
    )


def asks_for_http_metric(*annotations: Mapping[str, str]) -> bool:
    """Returns whether the layers of annotations, of which later ones win, ask for it."""
    return bool({key: value for layer in annotations for key, value in layer.items()}.get(HTTP_METRIC))


def check_ports(service: Object) -> None:
    """The interceptor leads to one port, so a component that has two protocols cannot sleep without losing requests."""
    ports = dig(service, "spec", "ports") or ()
    if len({is_grpc(port) for port in ports}) > 1:
        raise WorkloadRefused(f"the annotation {HTTP_METRIC} is not for a component with an HTTP and a gRPC port")


def interceptor_route(
    component: Component, metric: HttpMetric, service: Object, public_hosts: Sequence[str], timeout: int | None
) -> Child:
    """Returns what the interceptor knows of a component. `timeout` is that of requests once a pod is ready."""
    headless = dig(service, "spec", "clusterIP") == "None"
    scaling: Object = {}
    if metric.concurrency is not None:
        scaling["concurrency"] = {"targetValue": metric.concurrency}
    if metric.request_rate is not None:
        scaling["requestRate"] = {"targetValue": metric.request_rate, "window": "1m", "granularity": "1s"}
    name = names.interceptor_alias(component.name)
    within = f"{name}.{component.namespace}"
    manifest = INTERCEPTOR_ROUTES.manifest(
        {"name": component.name, "namespace": component.namespace, "labels": dict(component.labels)},
        spec={
            "target": {"service": component.name, "port": http_target_port(service) if headless else PORT},
            "rules": [{"hosts": [within, f"{within}.svc", f"{within}.svc.{CLUSTER_DOMAIN}", *public_hosts]}],
            "scalingMetric": scaling,
            "timeouts": {"readiness": f"{metric.wait}s", "responseHeader": f"{timeout or 0}s"},
        },
    )
    return Child(INTERCEPTOR_ROUTES, manifest)


def alias(component: Component, interceptor: ServiceAddress) -> Child:
    """Returns the name under which a component is reached through the interceptor."""
    name, labels = names.interceptor_alias(component.name), dict(component.labels)
    metadata = {"name": name, "namespace": component.namespace, "labels": labels}
    return external_name(metadata, service_host(interceptor.name, interceptor.namespace))


def reference_grant(namespace: str, interceptor: ServiceAddress) -> Child:
    """Returns what lets HTTPRoutes of a namespace lead to the interceptor's. All services there share it."""
    manifest = REFERENCE_GRANTS.manifest(
        {"name": f"isvc-{namespace}", "namespace": interceptor.namespace, "labels": dict(GRANTS)},
        spec={
            "from": [{"group": REFERENCE_GRANTS.group, "kind": "HTTPRoute", "namespace": namespace}],
            "to": [{"group": "", "kind": "Service", "name": interceptor.name}],
        },
    )
    return Child(REFERENCE_GRANTS, manifest, owned=False)


def _number(value: str, text: str, least: int) -> int:
    number = int(value) if value.isascii() and value.isdigit() else -1
    if not least <= number <= _LARGEST:
        raise _malformed(text)
    return number


def _malformed(text: str) -> WorkloadRefused:
    return WorkloadRefused(f"the annotation {HTTP_METRIC} must be {_SYNTAX}, got {text!r}")
