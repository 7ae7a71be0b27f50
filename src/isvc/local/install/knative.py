"""What an installation of Knative has: its namespace, the autoscaler's settings, and a name of its local gateway."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES, Resource
from isvc.local.knative.kinds import LOCAL_GATEWAY
from isvc.local.knative.settings import CONFIG_NAME, DEFAULTS
from isvc.serving.environment import KNATIVE_NAMESPACE
from isvc.serving.hosts import service_host

LOCAL_GATEWAY_HOST: Final = service_host(LOCAL_GATEWAY.name, LOCAL_GATEWAY.namespace)


def knative_objects() -> Iterable[tuple[Resource, Object]]:
    """Yields objects that are created once; what a user changes in them stays."""
    yield NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KNATIVE_NAMESPACE}}
    metadata = {"name": CONFIG_NAME, "namespace": KNATIVE_NAMESPACE}
    yield CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(DEFAULTS)}
