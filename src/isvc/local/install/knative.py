"""What an installation of Knative has: its namespace, the autoscaler's settings, and a gateway for cluster names.

The VirtualService of an InferenceService sends requests on to that gateway under the name of a component. Here it is
the same gateway once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, ENDPOINT_SLICES, NAMESPACES, SERVICES, Resource
from isvc.local.gateway.backends import SERVICE_NAME_LABEL
from isvc.local.knative.kinds import LOCAL_GATEWAY, SYSTEM_NAMESPACE
from isvc.local.knative.settings import CONFIG_NAME, DEFAULTS
from isvc.serving.hosts import service_host

LOCAL_GATEWAY_HOST: Final = service_host(LOCAL_GATEWAY.name, LOCAL_GATEWAY.namespace)


def knative_objects() -> Iterable[tuple[Resource, Object]]:
    """Created once; what a user changes in them stays."""
    for namespace in (SYSTEM_NAMESPACE, LOCAL_GATEWAY.namespace):
        yield NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    metadata = {"name": CONFIG_NAME, "namespace": SYSTEM_NAMESPACE}
    yield CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(DEFAULTS)}
    spec = {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}
    yield SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(), "spec": spec}


def local_gateway_endpoints(port: int) -> tuple[Resource, Object]:
    """Where the gateway listens this time."""
    labels = {SERVICE_NAME_LABEL: LOCAL_GATEWAY.name}
    return ENDPOINT_SLICES, {
        "apiVersion": ENDPOINT_SLICES.api_version,
        "kind": ENDPOINT_SLICES.kind,
        "metadata": {**_metadata(), "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    }


def _metadata() -> Object:
    return {"name": LOCAL_GATEWAY.name, "namespace": LOCAL_GATEWAY.namespace}
