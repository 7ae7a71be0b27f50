"""The Service through which gateways ask the endpoint picker."""

from __future__ import annotations

from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.metadata import child_metadata
from isvc.engine.plan import Child
from isvc.kube.objects import Object
from isvc.kube.resource import SERVICES
from isvc.serving.llm import labels, names

_PORTS: Final = frozenset({"grpc", "grpc-health", "metrics", "zmq"})


def picker_service(observed: Observed) -> Child:
    """Ports of the pod's containers, those of known names; of two containers the later one has it."""
    given = labels.labels(observed.name, labels.SCHEDULER)
    containers = ((observed.scheduler and observed.scheduler.template) or {}).get("containers") or ()
    ports = {port.get("name"): port for each in containers for port in each.get("ports") or ()}
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": child_metadata(observed, names.picker_service(observed.scheduler, observed.name), given),
        "spec": {"selector": given, "ports": [_port(ports[name]) for name in sorted(_PORTS & ports.keys())]},
    }
    return Child(SERVICES, manifest)


def _port(port: Object) -> Object:
    name = port["name"]
    return {"name": name, "port": port["containerPort"], "targetPort": name, "protocol": port.get("protocol", "TCP")}
