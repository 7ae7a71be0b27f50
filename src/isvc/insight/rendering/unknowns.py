"""What cannot be known without a cluster, and is assumed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.insight.simulation.kinds import resource_of
from isvc.insight.simulation.platform import CONTROLLER
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.objects import Object
from isvc.kube.resource import SECRETS, SERVICE_ACCOUNTS
from isvc.serving.config import Config
from isvc.serving.environment import SYSTEM_NAMESPACE
from isvc.serving.thirdparty import GATEWAY_CLASSES, GATEWAYS, PROJECTS

_GATEWAY_CLASS: Final = "assumed"
_ASKED_FOR: Final = (SECRETS, SERVICE_ACCOUNTS)


def assumptions(simulation: Simulation, children: list[Object]) -> Iterator[str]:
    """Yields sentences for people."""
    kinds = {resource_of(child) for child in children}
    for project in PROJECTS:
        if kinds.intersection(project.resources):
            yield f"{project.name} is assumed to be installed"
    for resource, namespace, name in simulation.server.missed:
        if resource in _ASKED_FOR:
            yield f"{resource.kind} {namespace}/{name} is not given: it is assumed not to exist"


def default_gateway(config: Object) -> list[Object]:
    """Returns the gateway that a configuration names which can be parsed, and its class, which an installation has."""
    ingress = Config.parse(config.get("data") or {}).ingress
    place = ingress.kserve_ingress_gateway or "kserve/kserve-ingress-gateway"
    namespace, _, name = place.rpartition("/")
    listener = {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
    gateway = {"gatewayClassName": _GATEWAY_CLASS, "listeners": [listener]}
    return [
        GATEWAY_CLASSES.manifest({"name": _GATEWAY_CLASS}, spec={"controllerName": CONTROLLER}),
        GATEWAYS.manifest({"name": name, "namespace": namespace or SYSTEM_NAMESPACE}, spec=gateway),
    ]
