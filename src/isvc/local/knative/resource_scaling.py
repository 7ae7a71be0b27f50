"""Revisions of the class `hpa.autoscaling.knative.dev`: scaled by CPU or memory, so never to zero."""

from __future__ import annotations

import math
from typing import Final

from isvc.kube.durations import seconds
from isvc.kube.objects import Object, annotations_of, labels_of, name_of, namespace_of
from isvc.kube.quantity import Notation, Quantity
from isvc.kube.resource import DEPLOYMENTS
from isvc.local.knative.kinds import deployment_name
from isvc.local.knative.settings import Scaling

CLASS: Final = "autoscaling.knative.dev/class"
BY_RESOURCES: Final = "hpa.autoscaling.knative.dev"
_NO_LIMIT: Final = 2**31 - 1


def is_scaled_by_resources(revision: Object) -> bool:
    return annotations_of(revision).get(CLASS) == BY_RESOURCES


def hpa_of(revision: Object, scaling: Scaling) -> Object:
    spec: Object = {
        "scaleTargetRef": DEPLOYMENTS.typed({"name": deployment_name(name_of(revision))}),
        "minReplicas": max(1, scaling.least),
        "maxReplicas": scaling.most or _NO_LIMIT,
    }
    if metric := _metric(annotations_of(revision)):
        spec["metrics"] = [{"type": "Resource", "resource": metric}]
    if window := seconds(annotations_of(revision).get("autoscaling.knative.dev/window", "")):
        rules = {"stabilizationWindowSeconds": int(window)}
        spec["behavior"] = {"scaleUp": rules, "scaleDown": rules}
    metadata = {"name": name_of(revision), "namespace": namespace_of(revision), "labels": labels_of(revision)}
    return {"metadata": metadata, "spec": spec}


def _metric(annotations: dict[str, str]) -> Object | None:
    """Returns the target as a percentage of the requested CPU, or in mebibytes; without one Kubernetes has its own."""
    target = annotations.get("autoscaling.knative.dev/target", "")
    if not target.replace(".", "", 1).isdigit():
        return None
    if annotations.get("autoscaling.knative.dev/metric", "cpu") == "memory":
        amount = str(Quantity(int(float(target)) * 2**20 * 10**9, Notation.BINARY))
        return {"name": "memory", "target": {"type": "AverageValue", "averageValue": amount}}
    return {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": math.ceil(float(target))}}
