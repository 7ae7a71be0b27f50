"""The ports of Services, and the endpoints that EndpointSlices have for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from isvc.kube.gourl import parse_address
from isvc.kube.objects import Object, dig, labels_of, namespace_of
from isvc.kube.resource import SERVICE_NAME_LABEL
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.serving.workload.service import is_grpc

SERVICE_OF_SLICE = "service"
READY_IN_SLICE = "ready-endpoint"


class Port(NamedTuple):
    """A port of a Service, and the name under which slices have it."""

    number: int
    name: str
    http2: bool
    is_h2c: bool = False  # HTTP/2 without TLS, by its appProtocol


def service_of_slice(endpoint_slice: Object) -> Iterable[str]:
    """Yields the index under which slices are found: `namespace/service`."""
    service = labels_of(endpoint_slice).get(SERVICE_NAME_LABEL)
    return [f"{namespace_of(endpoint_slice)}/{service}"] if service else []


def ready_in_slice(endpoint_slice: Object) -> Iterable[str]:
    """Yields the index under which a slice is found by each endpoint it offers: `host:port`."""
    names = {port.get("name") or "" for port in endpoint_slice.get("ports") or []}
    return {str(endpoint) for name in names for endpoint, ready in slice_endpoints([endpoint_slice], name) if ready}


def ports(service: Object) -> list[Port]:
    """Returns the ports that a Service is known by: its own, and of a headless one those of its pods."""
    declared = [item for item in dig(service, "spec", "ports") or () if item.get("protocol", "TCP") == "TCP"]
    found = {item["port"]: _port(item["port"], item) for item in declared if item.get("port")}
    if dig(service, "spec", "clusterIP") == "None":
        for item in declared:
            if isinstance(target := item.get("targetPort"), int):
                found.setdefault(target, _port(target, item))
    return list(found.values())


def _port(number: int, item: Object) -> Port:
    return Port(number, str(item.get("name") or ""), is_grpc(item), item.get("appProtocol") == "kubernetes.io/h2c")


def slice_endpoints(slices: Iterable[Object], port_name: str) -> list[tuple[Endpoint, bool]]:
    """Returns every endpoint of a port, and whether it is ready."""
    return [
        (Endpoint(address, port["port"]), dig(endpoint, "conditions", "ready") is not False)
        for item in slices
        for port in item.get("ports") or ()
        if (port.get("name") or "") == port_name and port.get("port")
        for endpoint in item.get("endpoints") or ()
        for address in endpoint.get("addresses") or ()
        if parse_address(address) is not None
    ]
