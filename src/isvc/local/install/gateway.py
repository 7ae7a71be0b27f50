"""The Gateway that routes of services are attached to, and its class."""

from __future__ import annotations

from typing import Final

from isvc.kube.objects import Object
from isvc.local.gateway.gateway_api.attachment import CONTROLLER

GATEWAY_NAME: Final = "kserve-ingress-gateway"
GATEWAY_CLASS: Final = "isvc"
_LISTENER: Final = "http"


def gateway_class() -> Object:
    spec = {"controllerName": CONTROLLER, "description": "The gateway of isvc up, on this machine"}
    return {"metadata": {"name": GATEWAY_CLASS}, "spec": spec}


def gateway(namespace: str, port: int) -> Object:
    """Returns the Gateway of all services; its one listener is the gateway's port."""
    listener = {"name": _LISTENER, "protocol": "HTTP", "port": port, "allowedRoutes": {"namespaces": {"from": "All"}}}
    spec = {"gatewayClassName": GATEWAY_CLASS, "listeners": [listener]}
    return {"metadata": {"name": GATEWAY_NAME, "namespace": namespace}, "spec": spec}


def at_port(live: Object, port: int) -> list[Object] | None:
    """Returns the listeners with this start's port; None if that changes nothing, as when a user removed ours."""
    before: list[Object] = live["spec"].get("listeners") or []
    after = [{**listener, "port": port} if listener.get("name") == _LISTENER else listener for listener in before]
    return after if after != before else None
