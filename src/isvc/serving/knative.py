"""Knative Services: the revision's template, its scale annotations and the traffic split.

Scale settings travel as annotations of the revision template; a few annotations belong to the Service itself and are
moved up. Traffic goes to the latest revision, or is split between it and the last one that was fully rolled out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isvc.api.inferencegraph import InferenceGraphSpec
from isvc.api.inferenceservice.components import ComponentExtensionSpec
from isvc.engine.plan import Child
from isvc.engine.policies import KNATIVE_SERVICE
from isvc.kube.objects import Object, dig, without
from isvc.kube.quantity import Quantity
from isvc.serving.hosts import service_host
from isvc.serving.podspec import ZERO_IS_ABSENT
from isvc.serving.thirdparty import KNATIVE_SERVICES

VISIBILITY_LABEL = "networking.knative.dev/visibility"
CLUSTER_LOCAL = "cluster-local"
TAG_ROUTING_ANNOTATION = "serving.kserve.io/enable-tag-routing"
_SCALING = "autoscaling.knative.dev"
_INITIAL_SCALE = f"{_SCALING}/initial-scale"
ENABLE_PASSTHROUGH = "serving.knative.openshift.io/enablePassthrough"
LIFTED = (ENABLE_PASSTHROUGH, "serving.knative.dev/rollout-duration")


def scale_annotations(spec: ComponentExtensionSpec | InferenceGraphSpec, given: Mapping[str, str]) -> dict[str, str]:
    """Returns annotations with what a component says about its replicas; a class that the user chose stays."""
    annotations = {f"{_SCALING}/class": f"kpa.{_SCALING}", **given}
    if spec.scale_target is not None:
        annotations[f"{_SCALING}/target"] = str(spec.scale_target)
    if spec.scale_metric is not None:
        annotations[f"{_SCALING}/metric"] = spec.scale_metric
    annotations[f"{_SCALING}/min-scale"] = str(1 if spec.min_replicas is None else spec.min_replicas)
    if spec.max_replicas:
        annotations[f"{_SCALING}/max-scale"] = str(spec.max_replicas)
    return annotations


@dataclass(frozen=True, slots=True)
class Revision:
    """The template of a revision; `timeout` is seconds, also until the first byte where `first_byte` says so."""

    pod: Object
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    timeout: int | None = None
    first_byte: bool = False
    concurrency: int | None = None

    def template(self) -> Object:
        spec: Object = _spell_as_pod(self.pod)
        if self.timeout is not None:
            spec["timeoutSeconds"] = self.timeout
            if self.first_byte:
                spec["responseStartTimeoutSeconds"] = self.timeout
        if self.concurrency is not None:
            spec["containerConcurrency"] = self.concurrency
        return {"metadata": {"labels": dict(self.labels), "annotations": dict(self.annotations)}, "spec": spec}


def service(
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    revision: Revision,
    traffic: list[Object] | None = None,
    lifted: Collection[str] = LIFTED,
) -> Child:
    """Returns a Knative Service; annotations that are about the Service are lifted from the revision."""
    own = {key: value for key, value in revision.annotations.items() if key in lifted}
    template = revision.template()
    for key in own:
        del template["metadata"]["annotations"][key]
    metadata: Object = {"name": name, "namespace": namespace, "labels": dict(labels), "annotations": own}
    spec: Object = {"template": template}
    if traffic is not None:
        spec["traffic"] = traffic
    manifest = KNATIVE_SERVICES.manifest({key: value for key, value in metadata.items() if value}, spec=spec)
    return Child(KNATIVE_SERVICES, manifest, policy=KNATIVE_SERVICE)


def _spell_as_pod(pod: Object) -> Object:
    """Returns the pod as Kubernetes spells it: Knative keeps what it is given, and so does the comparison."""
    pod = _without_zeros(pod)
    spelled = {}
    for field in ("containers", "initContainers"):
        if pod.get(field):
            spelled[field] = [_with_amounts(container) for container in pod[field]]
    if pod.get("volumes"):
        spelled["volumes"] = [_with_size(volume) for volume in pod["volumes"]]
    return pod | spelled


def _without_zeros(value: Any, field: str = "") -> Any:
    """Drops what Kubernetes does not write down: empty lists, and zeros where zero is what absence means."""
    if isinstance(value, list):
        return [_without_zeros(item) for item in value]
    if not isinstance(value, dict):
        return value
    written = {
        key: _without_zeros(item, key)
        for key, item in value.items()
        if item != [] and not (key in ZERO_IS_ABSENT and not item)
    }
    return {"divisor": "0", **written} if field == "resourceFieldRef" else written


def _with_size(volume: Object) -> Object:
    limit = dig(volume, "emptyDir", "sizeLimit")
    if limit is None:
        return volume
    return {**volume, "emptyDir": {**volume["emptyDir"], "sizeLimit": str(Quantity.parse(limit))}}


def _with_amounts(container: Object) -> Object:
    resources: Object = container.get("resources") or {}
    amounts = {
        kind: {name: str(Quantity.parse(amount)) for name, amount in resources[kind].items()}
        for kind in ("limits", "requests")
        if resources.get(kind)
    }
    return {**container, "resources": resources | amounts} if amounts else container


def traffic(canary_percent: int | None, rolled_out: str, *, tagged: bool) -> list[Object]:
    """Sends everything to the latest revision, or a share of it beside the one that was last rolled out fully."""
    share = canary_percent if canary_percent is not None and rolled_out else 100
    latest: Object = {"latestRevision": True, "percent": share}
    if tagged:
        latest["tag"] = "latest"
    if not rolled_out or share >= 100:
        return [latest]
    return [latest, {"revisionName": rolled_out, "latestRevision": False, "percent": 100 - share, "tag": "prev"}]


def default_url(name: str, namespace: str, labels: Mapping[str, str], domains: Sequence[str]) -> str:
    """Returns the URL that Knative gives a Service unless its templates are changed."""
    if labels.get(VISIBILITY_LABEL) == CLUSTER_LOCAL:
        return f"http://{service_host(name, namespace)}"
    return f"http://{name}.{namespace}.{domains[0] if domains else 'example.com'}"


def checked_initial_scale(annotations: Mapping[str, str], allows_zero: Callable[[], bool]) -> dict[str, str]:
    """Drops an initial scale that Knative would refuse: no number, or a zero that it does not allow when asked."""
    value = annotations.get(_INITIAL_SCALE)
    if value is None:
        return dict(annotations)
    accepted = _is_integer(value) and (int(value) != 0 or allows_zero())
    return dict(annotations) if accepted else without(annotations, (_INITIAL_SCALE,))


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit()
