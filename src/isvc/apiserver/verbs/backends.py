"""Which port of which pod, or which node, a path with /proxy means."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

from isvc.apiserver.request import Call
from isvc.apiserver.verbs import read
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest, ServiceUnavailable
from isvc.kube.objects import Object, dig, labels_of, name_of
from isvc.kube.pods import port_of_pod
from isvc.kube.resource import ENDPOINT_SLICES, PODS, SERVICE_NAME_LABEL

_DEFAULT_PORT = 80


class Backend(NamedTuple):
    node: str
    tunnel: str = ""  # the path at which the node connects to a port of a pod; empty for the node itself
    tls: bool = False


def find(api: Api, call: Call) -> Backend:
    """Finds what is behind `name`, `name:port` or `scheme:name:port`, as in Kubernetes."""
    scheme, name, port = _parts(call.name)
    found = read.find(api, replace(call, name=name)).parse()
    match call.description.resource.plural:
        case "nodes":
            return Backend(name)
        case "services":
            pod, number = _behind(api, found, port)
        case _:
            pod, number = found, _declared_port(found, port)
    node = dig(pod, "spec", "nodeName")
    if not node:
        raise ServiceUnavailable(f"pod {name_of(pod)} does not have a host assigned")
    tunnel = f"/connect/{quote(call.namespace)}/{quote(name_of(pod))}?port={number}"
    return Backend(str(node), tunnel, scheme == "https")


def _parts(text: str) -> tuple[str, str, str]:
    match text.split(":"):
        case [name]:
            return "", name, ""
        case [name, port]:
            return "", name, port
        case [("" | "http" | "https") as scheme, name, port]:
            return scheme, name, port
    raise BadRequest(f'invalid request "{text}": expected name, name:port or scheme:name:port')


def _declared_port(pod: Object, port: str) -> int:
    """Returns the port asked for, or the first that a container declares."""
    if port.isascii() and port.isdigit():
        return int(port)
    if port:
        raise BadRequest(f'invalid port "{port}": the proxy of a pod takes a number')
    ports = (item["containerPort"] for each in dig(pod, "spec", "containers") or () for item in each.get("ports") or ())
    return next(ports, _DEFAULT_PORT)


def _behind(api: Api, service: Object, port: str) -> tuple[Object, int]:
    """Returns a ready pod of a Service, and its port for one of the Service."""
    name, namespace = name_of(service), service["metadata"]["namespace"]
    ports = dig(service, "spec", "ports") or []
    wanted = [each for each in ports if port in (each.get("name"), str(each["port"])) or (not port and len(ports) == 1)]
    if not wanted:
        raise ServiceUnavailable(f'no service port "{port}" found for service "{name}"')
    target = wanted[0].get("targetPort") or wanted[0]["port"]
    pods = [pod for each in _ready_pods(api, namespace, name) if (pod := api.store.get(str(PODS), namespace, each))]
    numbers = [(pod, number) for pod in (each.parse() for each in pods) if (number := port_of_pod(pod, target))]
    if not numbers:
        raise ServiceUnavailable(f'no endpoints available for service "{name}"')
    return random.choice(numbers)  # noqa: S311


def _ready_pods(api: Api, namespace: str, service: str) -> list[str]:
    slices = [entry.parse() for entry in api.store.list(str(ENDPOINT_SLICES), namespace)]
    return [
        reference["name"]
        for each in slices
        if labels_of(each).get(SERVICE_NAME_LABEL) == service
        for endpoint in each.get("endpoints") or ()
        if dig(endpoint, "conditions", "ready") is not False
        and (reference := endpoint.get("targetRef") or {}).get("kind") == "Pod"
    ]
