"""Services: what a component is reached through, and the headless ones by which a multi-node group finds itself."""

from __future__ import annotations

from typing import Final

from isvc.engine.plan import Child
from isvc.engine.policies import SERVICE_PORTS, SPEC_KEEPING_METADATA
from isvc.kube.objects import Object
from isvc.kube.resource import SERVICES
from isvc.serving import names
from isvc.serving.containers import TRANSFORMER, find_by_name
from isvc.serving.workload.component import Component, Worker
from isvc.serving.workload.deployment import DEFAULT_PORT

PORT: Final = 80
AGENT_PORT: Final = 9081
H2C: Final = "kubernetes.io/h2c"
GENERATION: Final = "isvc.generation"
_ROLE: Final = "multinode/role"


def services(component: Component, *, headless: bool) -> list[Child]:
    built = [_entrance(component, headless=headless)]
    if component.worker is not None:
        built += _group(component, component.worker)
    return built


def is_grpc(port: Object) -> bool:
    name = str(port.get("name", "")).lower()
    return port.get("appProtocol") == H2C or "grpc" in name or "h2c" in name


def http_target_port(service: Object) -> int:
    """Returns the port that the server itself listens on for HTTP; a headless Service does not translate ports."""
    for port in service.get("spec", {}).get("ports") or ():
        target = port.get("targetPort")
        if not is_grpc(port) and isinstance(target, int) and target > 0:
            return target
    return DEFAULT_PORT


def external_name(metadata: Object, host: str) -> Child:
    """Returns a Service that makes its own name an alias of a host's."""
    spec = {"type": "ExternalName", "externalName": host, "sessionAffinity": "None"}
    return Child(SERVICES, SERVICES.manifest(metadata, spec=spec), policy=SPEC_KEEPING_METADATA)


def _entrance(component: Component, *, headless: bool) -> Child:
    app = names.app(component.name)
    ports = _ports(component)
    if ports and (component.spec.batcher is not None or component.spec.logger is not None):
        ports[0]["targetPort"] = AGENT_PORT
    spec: Object = {"selector": {"app": app}, "ports": ports}
    if headless:
        spec["clusterIP"] = "None"
    return _service(component.metadata({**component.labels, "app": app}), spec)


def _ports(component: Component) -> list[Object]:
    containers = component.pod.get("containers") or []
    if not containers:
        return []
    container = find_by_name(containers, TRANSFORMER) or containers[0]
    if not container.get("ports"):
        return [{"name": component.name, "port": PORT, "targetPort": DEFAULT_PORT, "protocol": "TCP"}]
    first, *others = container["ports"]
    return [_port(first, PORT), *(_port(port, port["containerPort"]) for port in others)]


def _port(port: Object, number: int) -> Object:
    built: Object = {
        "name": port.get("name", ""),
        "port": number,
        "targetPort": port["containerPort"],
        "protocol": port.get("protocol") or "TCP",
    }
    if "grpc" in built["name"] or "h2c" in built["name"]:
        built["appProtocol"] = H2C
    return {key: value for key, value in built.items() if value != ""}


def _group(component: Component, worker: Worker) -> list[Child]:
    generation = str(worker.generation)
    parts = (
        ("head", names.head_service(component.name, worker.generation), names.app(component.name)),
        ("worker", names.worker_service(component.name, worker.generation), names.worker_app(component.name)),
    )
    built = []
    for role, name, app in parts:
        labels = {**component.labels, "app": names.app(component.name), GENERATION: generation, _ROLE: role}
        spec: Object = {
            "selector": {"app": app, GENERATION: generation},
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
        }
        built.append(_service(component.metadata(labels, name), spec))
    return built


def _service(metadata: Object, spec: Object) -> Child:
    return Child(SERVICES, SERVICES.manifest(metadata, spec=spec), policy=SERVICE_PORTS)
