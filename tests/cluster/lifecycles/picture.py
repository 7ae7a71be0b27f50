"""What a service looks like from outside, reduced to what must not depend on how it got there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.objects import Object, deep_copy, dig, name_of
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, INGRESSES, SERVICES, Resource
from isvc.serving.thirdparty import KNATIVE_SERVICES, VIRTUAL_SERVICES
from isvc.toolkit.client import Client

CHILDREN = (DEPLOYMENTS, SERVICES, HORIZONTAL_POD_AUTOSCALERS, INGRESSES, KNATIVE_SERVICES, VIRTUAL_SERVICES)
_SYSTEM = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "ownerReferences")


async def picture(client: Client, namespace: str, kinds: Sequence[Resource] = CHILDREN) -> Object:
    """The children and the status of all services of a namespace, whatever the namespace is called."""
    seen: Object = {}
    for resource in kinds:
        for child in (await client.list(resource, namespace)).items:
            seen[f"{resource.kind}.{resource.group}/{name_of(child)}"] = _child(child, namespace)
    for service in (await client.list(INFERENCE_SERVICES, namespace)).items:
        seen[f"status of {name_of(service)}"] = _status(service.get("status") or {}, namespace)
    return seen


def _child(obj: Object, namespace: str) -> Object:
    obj = deep_copy(obj)
    for field in _SYSTEM:
        obj["metadata"].pop(field, None)
    obj.pop("status", None)
    spec = obj.get("spec") or {}
    if obj["kind"] in ("Service", "Ingress", "HorizontalPodAutoscaler"):
        # As in KServe, these follow what they do; labels and annotations alone do not bring them up to date.
        for field in ("labels", "annotations"):
            obj["metadata"].pop(field, None)
    if obj["kind"] == "Service":
        for field in ("clusterIP", "clusterIPs"):
            spec.pop(field, None)
    if obj["kind"] == "Deployment":
        spec.pop("replicas", None)  # the autoscaler's
    return _anywhere(obj, namespace)


def _status(status: Object, namespace: str) -> Object:
    conditions = [
        (c["type"], c["status"], c.get("reason", ""), c.get("severity", "")) for c in status.get("conditions") or []
    ]
    components = deep_copy(status.get("components") or {})
    for component in components.values():
        component.pop("previousRolledoutRevision", None)  # a memory of the past, rightly
    return _anywhere(
        {
            "conditions": sorted(conditions),
            "components": components,
            "url": status.get("url"),
            "address": dig(status, "address", "url"),
            "mode": status.get("deploymentMode"),
            "runtime": status.get("clusterServingRuntimeName"),
        },
        namespace,
    )


def _anywhere(value, namespace: str):
    """The same under any namespace, and whichever number a revision has."""
    if isinstance(value, dict):
        return {key: _anywhere(inner, namespace) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_anywhere(inner, namespace) for inner in value]
    if isinstance(value, str):
        return re.sub(r"-\d{5}$", "-REVISION", value.replace(namespace, "NAMESPACE"))
    return value
